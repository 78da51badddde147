"""Every command and every program of the README runs as written, one after the other, in an empty folder."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 240.0
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALL = re.compile(r"^(?:python -m )?pip install (.*?)(?:\s+#.*)?$")


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text())


def installs(page: str) -> list[str]:
    """The requirements that pip is told to install."""
    lines = [line for language, block in blocks(page) if language == "sh" for line in block.splitlines()]
    return [shlex.split(found[1])[0] for line in lines if (found := INSTALL.match(line))]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a reader who has installed daws; nodes that were started are gone afterwards."""
    folder = tmp_path / "work"
    folder.mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    mark = f"readme-{os.getpid()}"
    yield {**os.environ, "PATH": path, "PWD": str(folder), "README_TEST": mark}
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and f"README_TEST={mark}".encode() in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            continue


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def run(language: str, block: str, environment: dict[str, str]) -> str:
    if language == "sh":
        # pip is not asked for what is installed already, and several tests may make a cluster at once.
        lines = [line for line in block.splitlines() if not INSTALL.match(line)]
        block = "\n".join(lines).replace("cluster init ./lab", f"cluster init ./lab --port {free_port()}")
        # Each block has a shell of its own. The next one is told the processes that this one has started.
        started = Path(environment["PWD"]).parent / "started"
        if "kill %1 %2" in block:
            block = block.replace("%1 %2", " ".join(started.read_text().split()))
        if "&\n" in f"{block}\n" or " & " in block:
            block += f"\njobs -p > {shlex.quote(str(started))}"
        command = ["sh", "-eu", "-c", block]
    else:
        ten_lines = not any(Path(environment["PWD"]).glob("*.py"))
        script = Path(environment["PWD"]) / ("squares.py" if ten_lines else "program.py")
        script.write_text(block)
        command = [sys.executable, str(script)]
    with open(Path(environment["PWD"]).parent / "out", "w+") as out:  # not a pipe, which nodes would keep open
        done = subprocess.run(
            command,
            cwd=environment["PWD"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        )
        out.seek(0)
        said = out.read()
    assert done.returncode == 0, f"{block}\n{said}"
    assert "Traceback" not in said, f"{block}\n{said}"
    return said


@pytest.mark.slow
def test_the_readme_runs_as_written(shell: dict[str, str]):
    said = [run(language, block, shell) for language, block in blocks("README.md")]
    shown = "\n".join(said)
    for word in ("332833500", "333328333350000", "[1, 2, 4, 8, 16, 32, 64, 128, 256, 512]", "no schedule can beat"):
        assert word in shown
    for name in ("graph.json", "busy.png"):
        assert (Path(shell["PWD"]) / name).stat().st_size > 1000


@pytest.mark.slow
def test_the_checks_of_an_installation_run_as_written(shell: dict[str, str]):
    shown = "\n".join(run(language, block, shell) for language, block in blocks("docs/install.md"))
    assert "1024" in shown and "makespan" in shown and re.search(r"^daws \d", shown, re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_what_pip_is_told_to_install_is_there(page: str):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in installs(page):
        found = re.fullmatch(r"([a-z]+)(?:\[([a-z,]+)\])?", requirement)
        assert found is not None and found[1] == project["name"], requirement
        assert set((found[2] or "plot").split(",")) <= set(project["optional-dependencies"]), requirement
    assert installs(page)


def test_what_a_user_needs_comes_before_simulation_and_research():
    readme = (ROOT / "README.md").read_text()
    places = [
        readme.index(text) for text in ("pip install daws", "## Ten lines", "](docs/images/", "## Several machines")
    ]
    places += [readme.index(text) for text in ("## When not to use daws", "daws.simulate(", "## Read on")]
    assert places == sorted(places)


def test_the_ten_lines_are_ten():
    block = next(block for language, block in blocks("README.md") if language == "python")
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
