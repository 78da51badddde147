"""Lines of text for a shell: the shell that runs them, and the message about a pipeline that failed.

Lines run with `pipefail`: a pipeline fails if any of its members does, not only the last. bash does that, and tells how
each member ended. The system's `sh` is used if there is no bash. If that does not know `pipefail`, a line on stderr
says once that pipes are not checked.

A member that writes to a reader that has read enough, as in `yes | head -n 1`, is ended by SIGPIPE. This is no failure
in bash, if the last member ended well and no part of the line was skipped because of it.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache

from daws.workers.programs import find_program, signal_name

REPORT_FD = 73
"""Where bash writes how the members of its last pipeline ended. A number that scripts do not use themselves."""
REPORT_BYTES_MAX = 1 << 16
NAME = "command"
"""The name of the shell in its messages ($0)."""
SH = "/bin/sh"
SIGNAL_BASE = 128
"""A shell adds it to the number of a signal that has ended a program."""
MEMBER_CHARACTERS_MAX = 100

# ERR is not raised by a pipeline on which the rest of the line depends (`a | b && c`, `if a | b`), nor is anything run
# after it with `set -e`: there, 141 stays what it is. BASH_COMMAND tells whether the ERR was that of the last pipeline.
_TRAPS = (
    "trap 'daws_error=\"${PIPESTATUS[*]} $BASH_COMMAND\"' ERR; "
    'trap \'daws_code=$? daws_all="${PIPESTATUS[*]}" daws_end="${PIPESTATUS[*]} $BASH_COMMAND"; trap - ERR; '
    f'echo "$daws_all" 2> /dev/null >&{REPORT_FD} || :; '
    f'if [[ $daws_code = {SIGNAL_BASE + signal.SIGPIPE} && ${{daws_error-}} = "$daws_end" && $- != *e* && '
    f'$daws_all =~ ^("{SIGNAL_BASE + signal.SIGPIPE} "|"0 ")+0$ ]]; then exit 0; fi; exit "$daws_code"\' EXIT'
)
_TRAP_LINES = 1
_WHERE = re.compile(rf"^{NAME}: (?:-c: )?line (\d+): ", re.MULTILINE)


def argv_of_line(line: str) -> tuple[list[str], bool]:
    """The program to start for a line, and whether it will report how the members of its last pipeline ended."""
    found, has_report = _shell()
    return [*found, "-c", f"{_TRAPS}\n{line}" if has_report else line, NAME], has_report


@lru_cache(maxsize=1)
def _shell() -> tuple[tuple[str, ...], bool]:
    """A shell with its options, and whether it is bash."""
    for path in (os.environ.get("PATH", os.defpath), os.defpath):
        try:
            return (find_program("bash", path), "-o", "pipefail"), True
        except OSError:
            continue
    if not subprocess.run([SH, "-o", "pipefail", "-c", ":"], capture_output=True, check=False).returncode:
        return (SH, "-o", "pipefail"), False
    print(
        f"daws: there is no bash, and {SH} knows no pipefail: of a pipe, only the last program is checked",
        file=sys.stderr,
    )
    return (SH,), False


def statuses_in(report: bytes, code: int) -> tuple[int, ...]:
    """How the members of the pipeline ended that gave a shell its exit code; empty if that is not known."""
    try:
        found = tuple(map(int, report.split(b"\n")[-2].split())) if b"\n" in report else ()
    except ValueError:
        return ()
    failed = [status for status in found if status]
    return found if failed and failed[-1] == code else ()  # else `exit` was called, or no pipeline was last


def said_of_members(line: str, statuses: Sequence[int]) -> str:
    """The members of a pipeline that failed, and how; empty if the line has only one program that could have failed."""
    failed = [(at, status) for at, status in enumerate(statuses) if status]
    if len(failed) > 1:  # members without a reader were ended by the failure of another
        failed = [one for one in failed if one[1] != SIGNAL_BASE + signal.SIGPIPE] or failed
    if len(statuses) < 2 or not failed:
        return ""
    alike = [members for members in pipelines(line) if len(members) == len(statuses)]
    names = alike[0] if len(alike) == 1 else None
    said = []
    for at, status in failed:
        name = f"`{_short(names[at])}`" if names else f"program {at + 1} of {len(statuses)} in the pipe"
        said.append(f"{name} {said_of_code(status)}")
    text = " and ".join(said)
    if failed[0][1] == SIGNAL_BASE + signal.SIGPIPE:
        text += ": its reader stopped early; if that is intended, begin the line with 'set +o pipefail;'"
    return text


def said_of_code(code: int) -> str:
    """An exit code as a shell has it."""
    if SIGNAL_BASE < code < SIGNAL_BASE + signal.NSIG:
        return f"was killed by {signal_name(code - SIGNAL_BASE)} (code {code})"
    return f"exited with code {code}"


def without_our_lines(stderr: str, line: str) -> str:
    """Messages of the shell with the numbers of the user's own lines, or without any if there is one line."""

    def renumbered(found: re.Match[str]) -> str:
        number = int(found[1]) - _TRAP_LINES
        return f"line {number}: " if "\n" in line.strip() else ""

    return _WHERE.sub(renumbered, stderr)


def _short(text: str) -> str:
    return text if len(text) <= MEMBER_CHARACTERS_MAX else f"{text[: MEMBER_CHARACTERS_MAX - 1]}…"


_TOKENS = re.compile(
    r"""
      \\.                                # an escaped character
    | '[^']*'                            # quoted text
    | "(?:\\.|[^"\\])*"
    | `(?:\\.|[^`\\])*`
    | (?P<remark>(?:^|(?<=\s))\#[^\n]*)
    | >\| | [<>]& | &>                   # redirections
    | \|\| | && | \|& | [|;&\n(){}]      # what stands between commands
    | [^\\'"`|;&\n(){}<>\#]+ | .
    """,
    re.VERBOSE | re.DOTALL,
)


def pipelines(line: str) -> list[list[str]]:
    """The pipelines of a line, each as its members; those in brackets are part of a member. The result is a good guess,
    without a shell."""
    found: list[list[str]] = [[""]]
    depth = 0
    for match in _TOKENS.finditer(line):
        token = match[0]
        if token in ("(", "{"):
            depth += 1
        elif token in (")", "}"):
            depth -= 1
        if depth or token in (")", "}"):
            found[-1][-1] += token
        elif token in ("|", "|&"):
            found[-1].append("")
        elif token in ("||", "&&", ";", "&", "\n"):
            found.append([""])
        elif not match["remark"]:
            found[-1][-1] += token
    members = [[member.strip() for member in pipeline] for pipeline in found]
    return [pipeline for pipeline in members if any(pipeline)]
