"""The documentation is true: its Python runs, its commands are valid, its links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest

import daws
from daws.cli.asked import asked_of
from daws.cli.lists import show_strategies
from daws.cli.parser import make_parser
from daws.compare.cases import read_sizes, split_strategies
from daws.predict.asked import with_contexts
from daws.sim.simulate import check_runnable
from daws.store.memory import MemoryStore
from daws.strategy import answers, parse_strategy, registry
from daws.workloads import parse_workload

ROOT = Path(__file__).parents[2]
FROM_ROOT = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
FOLDERS = [ROOT / name for name in ("docs", "docs/api", "docs/internals")]
PAGES = sorted([*FROM_ROOT, *(page for folder in FOLDERS for page in folder.glob("*.md"))])
EXAMPLE_LINES_MAX = 40


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """The commands in blocks of `sh`, and of `bash`, which no test runs because they need several machines."""
    lines = [line for page in PAGES for block in blocks(page, "(?:ba)?sh") for line in block.splitlines()]
    return sorted({line.removeprefix(".venv/bin/") for line in lines if re.match(r"(\.venv/bin/)?daws [a-z]", line)})


@pytest.fixture
def restored_answers(monkeypatch):
    """Remove the answers that an example registers."""
    known = {decision: dict(found) for decision, found in registry._ANSWERS.items()}
    monkeypatch.setattr(registry, "_ANSWERS", known)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "README.md" and blocks(page, "python")], ids=lambda page: page.name
)
def test_python_runs(page, tmp_path, monkeypatch, capsys, restored_answers):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for number, block in enumerate(blocks(page, "python")):
        exec(compile(block, f"{page.name}, python block {number}", "exec"), names)
    assert capsys.readouterr().out


def test_the_example_answer_is_short_and_works(restored_answers):
    block = next(block for block in blocks(ROOT / "docs/strategies.md", "python") if "register(" in block)
    assert len(block.splitlines()) <= EXAMPLE_LINES_MAX
    exec(block, {"__name__": "example"})
    assert "steal-near" in answers("balance")
    assert parse_strategy("flds:balance=steal-near,patience=5").balance.patience == 5  # type: ignore[attr-defined]


@pytest.mark.parametrize("line", commands())
def test_commands_are_valid(line, capsys):
    """Check options, workloads and strategies of each command, without running it."""
    words = [word for word in shlex.split(line, comments=True) if word != "&"]
    arguments = make_parser().parse_args(words[1:])
    if "what" in arguments:
        parse_strategy(arguments.strategy)
        if not arguments.what.startswith("./") and not arguments.what.endswith(".py"):
            parse_workload(arguments.what)
        return
    if "workload" not in arguments:
        assert "name" not in arguments or show_strategies(arguments.name) == 0
        return
    if "sizes" in arguments:
        split_strategies(arguments.strategies)
        arguments.nodes = read_sizes(arguments.sizes)[-1]
    elif "strategy" in arguments:
        parse_strategy(arguments.strategy)
    members = MemoryStore(1, 1).join(asked_of(arguments).cluster().infos())
    kind = arguments.workload.partition(":")[0]
    if kind.startswith("./"):
        return  # a file of the reader's
    parse_workload(arguments.workload)
    small = "all-pairs:files=3" if kind == "all-pairs" else f"{kind}:tasks=20"
    check_runnable(with_contexts(parse_workload(small).build(1, 1, 0), arguments.context, "--context"), members)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    assert [target for target in targets if not target.startswith("http") and not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_begin_with_a_heading_and_a_sentence(page):
    heading, first, *_ = page.read_text().split("\n\n", 2)
    assert re.fullmatch(r"# .+", heading)
    assert not first.startswith(("```", "|", "- ", "#", ":::", "!["))


def test_the_reference_has_every_public_name():
    described = {
        name for page in (ROOT / "docs/api").glob("*.md") for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)
    }
    known_as = {"daws.Graph": "daws.graphs.TaskGraph"}
    names = [f"daws.{name}" for name in daws.__all__ if not name.startswith("_")]
    assert [name for name in names if known_as.get(name, name) not in described] == []
