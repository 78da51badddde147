"""The lint for prose finds what it should, and nothing in sentences that are good."""

import ast

import pytest

from tests.house.plainwords import (
    CLAUSE_WORDS,
    SENTENCE_WORDS,
    broken_rules,
    docstrings,
    findings,
    has_dialect,
    messages,
    sentences,
    words_of,
)

# The pairs of bad and better sentences come from the plan that asked for plain words.
BAD = [
    ("Who has the threads, and talks to the node.", "opener"),
    ("What is submitted has to reach the store before its client goes, and for that a node.", "opener"),
    ("Whoever asks for one that is not there ends with `Missing`.", "opener"),
    ("Whatever is left of them.", "opener"),
    ("So many parts came before: the file is whole.", "opener"),
    ("Nobody needs this run any more, which waits: let it come to its end.", "opener"),
    ("Others hear of them in this order.", "opener"),
    ("*Who* asks is told.", "opener"),
    (
        "Instead of the token of a call: there is none, and the one that is to leave at the end of this step.",
        "fragment",
    ),
    ("Of these edges.", "fragment"),
    ("For the run that this thread is on.", "fragment"),
    ("As it would be typed.", "fragment"),
    ("It stays: a task may have put a stream of its own around it.", "fragment"),
    ("among records, what stands for one that does not exist.", "fragment"),
    ("Keeps one link per peer.", "verb"),
    ("Is told what was sent to executors and what they reported.", "verb"),
    ("Its exit code.", "pronoun"),
    ("The number is drawn anew.", "dialect"),
    ("The tasks that nobody\nneeds.", "dialect"),
    ("The time for so many tasks.", "dialect"),
    ("The objects that a task lets go of.", "dialect"),
    ("The " + "very " * SENTENCE_WORDS + "long sentence.", "length"),
]
GOOD = [
    "The call that leaves with this step; its token is not known yet.",
    "Did the store reject this row, so that there is nothing to keep?",
    "A refused Create counts as accepted: another node created the task, but that write may be lost.",
    "`close()` waits until the store has accepted every task, which needs at least one node.",
    "Send a batch of rows to the store.",
    "`what` is the name of a field.",
    "Whether the task has ended.",
    "`nobody` is the name of a user.",
    "The node anewly called.",
    "Which moved data is kept?",
    "Is the task on this node?",
    "If the server is gone, raise `UnavailableError`.",
]


@pytest.mark.parametrize(("sentence", "rule"), BAD)
def test_a_bad_first_sentence_is_found(sentence: str, rule: str):
    assert rule in broken_rules(sentence, is_first=True, kind="function")


@pytest.mark.parametrize("sentence", GOOD)
def test_a_good_sentence_is_not(sentence: str):
    assert broken_rules(sentence, is_first=True, kind="function") == []
    assert broken_rules(sentence) == []


def test_fragments_and_verbs_are_looked_for_in_first_sentences_alone():
    assert broken_rules("It keeps one link per peer.") == []
    assert broken_rules("Returns None if there is none.") == []
    assert broken_rules("Keeps one link per peer.", is_first=True, kind="module") == []


def test_subjects_come_early():
    assert broken_rules("For each of the objects that it reads, the node asks the store.") == ["subject"]
    assert broken_rules("For most tasks, the node asks the store.") == []
    assert broken_rules("With a long list of words and no comma nothing can be said.") == []
    assert broken_rules("With a long list the node gets a copy, and nothing can be said.") == []
    assert broken_rules("With a long list that a node has made, the client waits.") == ["subject"]
    assert broken_rules("If all results are the same, the report has one.") == []
    assert broken_rules(f"If {'the same ' * (CLAUSE_WORDS // 2)}thing happens, the node stops.") == ["subject"]


def test_sentences_may_begin_with_the_name_of_the_program_or_end_in_bold():
    assert sentences("A file is cut off. daws drops it.") == ["A file is cut off.", "daws drops it."]
    assert sentences("**It is copied.** A task sees it.") == ["**It is copied.", "A task sees it."]


def test_openers_count_in_every_sentence():
    source = '"""A module. Whoever imports it pays."""\n\n\ndef door():\n    """Open the door. So it is open."""\n'
    assert [(one.line, one.name, one.rule) for one in findings(ast.parse(source))] == [
        (1, "module", "opener"),
        (1, "module", "dialect"),
        (5, "door", "opener"),
    ]


def test_docstrings_of_modules_classes_functions_and_values():
    source = '''"""The module."""

LIMIT = 3
"""The limit."""
"no docstring"


class House:
    """The house."""

    size: int = 0
    """The size."""

    async def enter(self):
        """Enter."""
        x = 1
        "nor is this"

        def inner():
            """Inside."""
'''
    found = [(name, kind, text) for _, name, kind, text in docstrings(ast.parse(source))]
    assert found == [
        ("module", "module", "The module."),
        ("LIMIT", "value", "The limit."),
        ("House", "class", "The house."),
        ("size", "value", "The size."),
        ("House.enter", "function", "Enter."),
        ("inner", "function", "Inside."),
    ]


def test_messages_are_strings_of_several_words():
    source = '"""The module."""\nfail(f"{task} waits for {nobody} of them", "b", other="so many tasks")\n'
    found = [text for _, text in messages(ast.parse(source))]
    assert sorted(found) == [" of them", " waits for ", "so many tasks"]
    assert [text for text in found if has_dialect(text)] == ["so many tasks"]


def test_sentences_end_at_full_stops_bullets_and_blank_lines():
    text = """A thing, e.g. this one. It is 1.5 times as `fast. As` that! At most 3. Or more.

    Two of them:
    - the first
      goes on
    - The second. And more

    Last? Yes.
    """
    assert sentences(text) == [
        "A thing, e.g. this one.",
        "It is 1.5 times as `fast. As` that!",
        "At most 3.",
        "Or more.",
        "Two of them:",
        "the first goes on",
        "The second.",
        "And more",
        "Last?",
        "Yes.",
    ]


def test_code_and_tables_are_no_prose():
    text = """Use it like this:

        What is code? So is this.

    Then:

    >>> Who
    'answer'

    ```
    Nobody reads this. Others neither.
    ```
    | Who | What |
    | --- | ---- |

    End.
    """
    assert sentences(text) == ["Use it like this:", "Then:", "End."]


def test_backticks_make_one_word():
    assert len(words_of("A `Graph of many tasks` — and no more.")) == 5
