"""The table of commands; and names that it repeats so that it need not import where they come from."""

import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from daws.cli import main, messages, options, parser
from daws.cli.lists import QUESTIONS
from daws.client import connect
from daws.sim.profiles import PROFILES
from daws.strategy import DECISIONS, DEFAULT

ROOT = Path(__file__).parents[3]


def test_defaults_are_those_of_the_layers_below():
    assert options.STRATEGY == DEFAULT
    assert tuple(PROFILES) == options.PROFILES
    assert tuple(QUESTIONS) == DECISIONS
    assert options.CLUSTER == connect.CLUSTER


@pytest.mark.parametrize("name", parser.COMMANDS)
def test_a_command_is_a_module_whose_help_has_examples_that_can_be_typed(name: str):
    command = import_module(f"daws.cli.{name}")
    assert command.ABOUT.endswith(".")
    found = [line.strip() for line in command.EXAMPLES.splitlines() if line.startswith(f"  daws {name}")]
    assert command.EXAMPLES.startswith("examples:\n") and found
    for line in found:
        words = shlex.split(re.split(r" {2,}", line)[0])
        assert parser.make_parser().parse_args(words[1:]).run is command.run


def test_commands_are_listed_in_the_help_and_in_the_docs():
    listed = parser.make_parser().format_help()
    page = (ROOT / "docs" / "cli.md").read_text()
    for name, line in parser.COMMANDS.items():
        assert f"    {name} " in listed and line.split()[0] in listed
        assert f"`{name}`" in page


def test_exit_codes_are_in_the_help_and_in_the_docs():
    codes = {0, *(value for name, value in vars(messages).items() if name.startswith("EXIT_") and type(value) is int)}
    listed = re.findall(r"^  (\d+)  ", parser.make_parser().format_help(), re.MULTILINE)
    written = re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE)
    assert sorted(codes) == [*map(int, listed)] == [*map(int, written)]


def test_only_the_module_of_the_command_is_imported():
    script = (
        "import sys\nfrom daws.cli.parser import COMMANDS, make_parser\nmake_parser().parse_args(['sim', 'bot'])\n"
        "print(*[name for name in COMMANDS if f'daws.cli.{name}' in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "sim\n"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("node --workers 2", "there is no option --workers; did you mean --executors? (see 'daws node --help')"),
        (
            "node /tmp",
            "there is one argument too many: '/tmp'; the folder of a cluster is given by --cluster /tmp (see ",
        ),
        ("drain 3 4", "there is one argument too many: '4' (see 'daws drain --help')"),
        ("sim bot --sede=3", "there is no option --sede; did you mean --seed? (see 'daws sim --help')"),
        ("sim bot --unlike", "there is no option --unlike (see 'daws sim --help')"),
        ("stop", "there is no command 'stop'; Ctrl-C ends 'daws node', 'daws drain' a node elsewhere (see "),
        ("nodess", "there is no command 'nodess'; did you mean 'nodes'? (see 'daws --help')"),
        ("cluster start", "there is no command 'start'; there are init, show (see 'daws cluster --help')"),
    ],
)
def test_what_is_not_there_is_refused_with_what_may_have_been_meant(
    typed: str, said: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as refused:
        parser.make_parser().parse_args(typed.split())
    assert refused.value.code == 2
    assert capsys.readouterr().err.startswith(f"daws: error: {said}")


@pytest.mark.parametrize("command", [[], ["drain"], ["cluster", "init"]], ids=" ".join)
def test_help_is_a_command(command: list[str], capsys: pytest.CaptureFixture[str]):
    said = []
    for words in (["help", *command], [*command, "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        said.append(capsys.readouterr())
        assert not ended.value.code
    assert said[0] == said[1] and said[0].out.startswith(" ".join(["usage: daws", *command]))


def test_help_for_no_command_names_the_one_that_was_meant(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["help", "drein"])
    assert "there is no command 'drein'; did you mean 'drain'?" in capsys.readouterr().err


def test_defaults_of_sim():
    arguments = parser.make_parser().parse_args(["sim", "bot"])
    assert (arguments.strategy, arguments.profile, arguments.seed) == ("daws", "measured", 0)
    assert (arguments.group, arguments.settings, arguments.context, arguments.plot) == ([], [], [], None)
