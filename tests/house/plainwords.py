"""A lint for the prose of docstrings: `findings(module)` names sentences that are hard to read.

The lint reads text, not grammar, so its rules are simple. A sentence that passes may still be bad.

- **opener**: no sentence begins with a bare word of `BARE` ("What", "Who", "So", …). These words hide the noun.
- **fragment**: the first sentence says what the thing is or does. It does not begin with a word of `FRAGMENTS` ("Of",
  "For", "It", …), which continues the name of the thing instead of describing it.
- **verb**: the first sentence of a function or class is imperative ("Send a row") or a noun phrase ("The rows of a
  call"). It does not begin with a verb in the third person (`THIRD_PERSON`).
- **subject**: the subject comes within the first `SUBJECT_WORDS` words. A sentence that begins with a preposition
  (`PREPOSITIONS`) has its subject after the first comma. If a verb comes before that comma, and before any "that",
  "which" or "who", the subject is somewhere before the verb, and the lint cannot tell where. A sentence that begins
  with a conjunction (`CONJUNCTIONS`: "If", "When", …) has a first subject at once, so up to `CLAUSE_WORDS` words may
  come before its comma.
- **pronoun**: the first sentence names its noun. It does not begin with "Its" or "Their".
- **length**: no sentence has more than `SENTENCE_WORDS` words.
- **dialect**: no word of `DIALECT`. Each of them is old, or hides a noun, and has a plain replacement. This rule holds
  for `messages` as well.

A question ("Did the store reject this row?") may begin as it likes. Text between backticks counts as one word.
Examples, indented blocks, tables and sections with arguments are left out.

`python -m tests.house.plainwords [PACKAGE …]` lists findings, `--count` counts them by package. A page such as
`docs/live.md` and a folder such as `studies` may be given as well.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SUBJECT_WORDS = 6
CLAUSE_WORDS = 14
SENTENCE_WORDS = 32
SOURCE = Path(__file__).parents[2] / "src" / "daws"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BARE = _words("what who whom whose whoever whatever whichever so nobody others")
PREPOSITIONS = _words(
    """of for with without by from in on at to into among between beside besides instead within under over about through
    during per like unlike out"""
)
CONJUNCTIONS = _words("if when whenever while where wherever once unless until because since although as after before")
FRAGMENTS = PREPOSITIONS | _words(
    "as that which than and or but also it they them these those such not until since because"
)
PRONOUNS = _words("its their")
DIALECT = {
    "albeit": "although",
    "all else": "everything else",
    "anew": "again",
    "anybody": "any node, any task: name the noun",
    "as ever": "as before",
    "be it": "whether",
    "be they": "whether",
    "for good": "for ever",
    "hear of": "learn of",
    "heard of": "known",
    "hears of": "learns of",
    "in vain": "without a result",
    "let go of": "release",
    "lets go of": "releases",
    "letting go of": "releasing",
    "lest": "so that … not",
    "nobody": "no node, no task: name the noun",
    "somebody": "a node, a task: name the noun",
    "so many": "this many, or the number",
    "thereof": "of it",
    "to no avail": "without a result",
    "told of": "informed of",
    "whatever": "every … that, any",
    "whence": "from where",
    "whereby": "by which",
    "whoever": "the node that, the task that: name the noun",
    "yet to": "not … yet",
}
"""Words and phrases that a reader with school English stumbles over, and what to write instead."""
THIRD_PERSON = _words(
    """answers appends asks begins brings builds calls carries changes checks closes collects comes copies counts
    creates decides decodes does draws drops encodes ends fetches fills finds forgets frees gets gives goes
    hands has hears holds is keeps knows learns leaves lets lists loads looks makes marks moves notes notices
    opens parses puts raises reads receives refuses removes replaces reports returns runs says sends serves
    sets shows sits splits starts stays stops takes tells tries turns unpickles waits walks watches wraps
    writes"""
)
VERBS = THIRD_PERSON | _words("are was were have had can may must will would does do did")
_DIALECT = re.compile(rf"\b({'|'.join(DIALECT)})\b", re.IGNORECASE)
_CODE = re.compile(r"`+[^`]*`+")
_NO_STOPS = re.compile(r"`[^`]*`|\b(e\.g|i\.e|vs|etc|cf|al|Fig|Sec|No|pp|ca|approx)\.(?=\s)")
_HIDDEN = {".": "\x00", "!": "\x01", "?": "\x02"}
_SHOWN = {ord(hidden): stop for stop, hidden in _HIDDEN.items()}
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"'”*]*\s+(?=[`\"'“(*\[]*(?:[A-Z0-9`]|daws\b))")
_BULLET = re.compile(r"^\s*([-*•]|\d+\.)\s+")
_NO_PROSE = re.compile(r"\s*(>>>|\||#|(Args|Arguments|Attributes|Examples?|Parameters|Raises|Returns|Yields):\s*$)")


class Finding(NamedTuple):
    """A sentence that breaks a rule, with its place in the file."""

    line: int
    name: str
    rule: str
    sentence: str


def findings(module: ast.Module) -> list[Finding]:
    """All findings in the docstrings of a module, in the order of the file."""
    found = []
    for line, name, kind, text in docstrings(module):
        for number, sentence in enumerate(sentences(text)):
            found += [Finding(line, name, rule, sentence) for rule in broken_rules(sentence, number == 0, kind)]
    return found


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str, str, str]]:
    """Line, name, kind and text of each docstring. The kind is module, class, function or value.

    A string right behind an assignment is the docstring of that value.
    """
    yield from _docstrings_of(tree, "", "module")


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each string with several words that is no docstring: messages, help texts, parts of them."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs]
    for node in constants:
        if isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def has_dialect(text: str) -> bool:
    """Whether a text has a word of `DIALECT` outside of backticks."""
    return _DIALECT.search(_CODE.sub("`code`", text)) is not None


def sentences(text: str) -> list[str]:
    """The sentences of a docstring, without code and tables. A bullet or a blank line ends a sentence."""
    return [sentence for paragraph in _paragraphs(text) for sentence in _split(paragraph)]


def words_of(sentence: str) -> list[str]:
    """The words of a sentence. Text between backticks is one word; dashes and other lone signs are none."""
    return [word for word in _CODE.sub("`code`", sentence).split() if re.search(r"\w", word)]


def broken_rules(sentence: str, is_first: bool = False, kind: str = "value") -> list[str]:
    """The names of the rules that a sentence breaks."""
    words = words_of(sentence)
    if not words:
        return []
    first = "" if words[0].startswith("`") else re.sub(r"^\W+|\W+$", "", words[0]).lower()
    broken = []
    if sentence.endswith("?"):
        pass
    elif first in BARE:
        broken.append("opener")
    elif is_first and (first in FRAGMENTS or (first and words[0].islower())):
        broken.append("fragment")
    elif is_first and first in PRONOUNS:
        broken.append("pronoun")
    elif is_first and kind in ("function", "class") and first in THIRD_PERSON:
        broken.append("verb")
    elif _is_late(first, words):
        broken.append("subject")
    if len(words) > SENTENCE_WORDS:
        broken.append("length")
    if has_dialect(sentence):
        broken.append("dialect")
    return broken


def _is_late(first: str, words: list[str]) -> bool:
    """Whether the main clause begins too late, as far as the first comma shows that."""
    comma = next((number for number, word in enumerate(words, 1) if word.endswith((",", ":", ";"))), 0)
    if first in CONJUNCTIONS:
        return comma >= CLAUSE_WORDS
    return first in PREPOSITIONS and comma >= SUBJECT_WORDS and not _has_verb(words[:comma])


def _has_verb(words: list[str]) -> bool:
    """Whether there is a well-known verb before any relative clause."""
    for word in words:
        bare = word.rstrip(",:;").lower()
        if bare in VERBS:
            return True
        if bare in ("that", "which", "who", "whose"):
            return False
    return False


def _docstrings_of(node: ast.AST, name: str, kind: str) -> Iterator[tuple[int, str, str, str]]:
    body: list[ast.stmt] = getattr(node, "body", [])
    before: ast.stmt | None = None
    for number, statement in enumerate(body):
        text = _text_of(statement)
        if text is not None and number == 0:
            yield statement.lineno, name or "module", kind, text
        elif text is not None and isinstance(before, ast.Assign | ast.AnnAssign) and kind != "function":
            yield statement.lineno, _target(before), "value", text
        elif isinstance(statement, ast.ClassDef):
            yield from _docstrings_of(statement, statement.name, "class")
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{name}.{statement.name}" if kind == "class" else statement.name
            yield from _docstrings_of(statement, inner, "function")
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            yield from _docstrings_of(statement, name, "value")
        before = statement


def _text_of(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        value = statement.value.value
        return value if isinstance(value, str) else None
    return None


def _target(statement: ast.Assign | ast.AnnAssign) -> str:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    return ast.unparse(target)


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs and bullets of a docstring, each as one line."""
    for block in _prose_blocks(text):
        lines: list[str] = []
        for line in block:
            if _BULLET.match(line) and lines:
                yield " ".join(lines)
                lines = []
            lines.append(_BULLET.sub("", line, count=1).strip())
        yield " ".join(lines)


def _prose_blocks(text: str) -> Iterator[list[str]]:
    """Lines up to the next blank one. Doctests, tables, sections of arguments and indented text are left out."""
    for block in _blocks(text):
        if not _NO_PROSE.match(block[0]) and not block[0].startswith("    "):
            yield block


def _blocks(text: str) -> Iterator[list[str]]:
    block: list[str] = []
    is_fenced = False
    for line in [*_dedented(text), ""]:
        is_fence = line.lstrip().startswith("```")
        if line and not is_fence and not is_fenced:
            block.append(line)
        elif block:
            yield block
            block = []
        is_fenced ^= is_fence


def _dedented(text: str) -> list[str]:
    first, *rest = text.splitlines() or [""]
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return [first.strip(), *(line[margin:].rstrip() for line in rest)]


def _split(paragraph: str) -> list[str]:
    """The sentences of a paragraph. Stops of abbreviations and of code end none."""
    kept = _NO_STOPS.sub(lambda match: re.sub(r"[.!?]", lambda stop: _HIDDEN[stop.group(0)], match.group(0)), paragraph)
    parts = _SENTENCE_END.split(kept)
    return [part.translate(_SHOWN).strip() for part in parts if part.strip()]


def package_of(path: Path) -> str:
    """The package of a source file below `daws`, or the file's own name if it is in none."""
    inside = path.relative_to(SOURCE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def main(arguments: list[str]) -> None:
    packages = [one for one in arguments if not one.startswith("--")]
    counts: Counter[tuple[str, str]] = Counter()
    for path in sorted(SOURCE.rglob("*.py")):
        package = package_of(path)
        if packages and not any(one in (package, str(path.relative_to(SOURCE))) for one in packages):
            continue
        for found in findings(ast.parse(path.read_text())):
            counts[package, found.rule] += 1
            if "--count" not in arguments:
                print(f"{path.relative_to(SOURCE)}:{found.line}: {found.name}: {found.rule}: {found.sentence}")
    for package in sorted({package for package, _ in counts}):
        rules = {rule: count for (one, rule), count in sorted(counts.items()) if one == package}
        print(package, sum(rules.values()), rules)


if __name__ == "__main__":
    main(sys.argv[1:])
