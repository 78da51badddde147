"""The wheel works in empty environments on each Python that is here, with nothing but its own dependencies."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import daws

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
VERSIONS = ("3.11", "3.12", "3.13")
BASE = {"cloudpickle", "daws", "msgspec", "numpy", "uvloop"}
TIMEOUT_S = 120.0
UNWANTED = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")

COMMAND_AND_NODES = """
import daws

with daws.Cluster(workers=1) as cluster:
    print(cluster.run(["echo", "from a program"]).result().text)
with daws.Cluster(workers=1, nodes=2) as cluster:
    print(sum(cluster.gather([cluster.submit(pow, 2, n) for n in range(10)])))
print(daws.simulate("bot:tasks=50", nodes=2).tasks, "tasks were simulated")
print(daws.__file__)
"""


def run(*words: str | Path, folder: Path | None = None) -> str:
    """Run a program without the source tree on its path, and return all that it says."""
    environment = {name: text for name, text in os.environ.items() if name not in UNWANTED}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}"
    return done.stdout


def find_python(version: str) -> Path | None:
    """Find an interpreter of this version: on the path (where pyenv has stand-ins that may not run), or pyenv's own."""
    on_path = shutil.which(f"python{version}")
    candidates = [Path(on_path)] if on_path else []
    candidates += sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in candidates:
        if subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The wheel, made of the source archive. All processes of the tests share one."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "dist"
    with open(folder.with_name("dist.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            run(UV, "build", "--quiet", "--out-dir", folder.with_name("building"), ROOT)
            folder.with_name("building").rename(folder)
    (found,) = folder.glob("*.whl")
    return found


def ten_lines() -> str:
    found = re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_works_in_an_empty_environment(version: str, wheel: Path, tmp_path: Path):
    interpreter = find_python(version)
    if interpreter is None:
        pytest.skip(f"Python {version} is not here")
    home = tmp_path / "venv"
    run(UV, "venv", "--quiet", "--no-project", "--python", interpreter, home)
    python, command = home / "bin/python", home / "bin/daws"
    run(UV, "pip", "install", "--quiet", "--python", python, wheel)

    listed = json.loads(run(UV, "pip", "list", "--quiet", "--format", "json", "--python", python))
    assert {package["name"] for package in listed} == BASE

    work = tmp_path / "work"
    work.mkdir()
    assert run(command, "--version", folder=work).strip() == f"daws {daws.__version__}"
    assert "daws sim" in run(command, "--help", folder=work)
    assert "makespan" in run(command, "sim", "bot:tasks=100", "--nodes", "2", folder=work)

    (work / "squares.py").write_text(ten_lines())
    assert run(python, "squares.py", folder=work).split() == ["332833500", "333328333350000"]

    (work / "more.py").write_text(COMMAND_AND_NODES)
    shown = run(python, "more.py", folder=work)
    for words in ("from a program", "1023", "50 tasks were simulated", str(home / "lib" / f"python{version}")):
        assert words in shown


@pytest.mark.slow
def test_the_wheel_has_the_package_and_nothing_of_the_tests(wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.partition("/")[0] for name in names}
    assert folders == {"daws", "daws_studies", f"daws-{daws.__version__}.dist-info"}
    packed = {name.removeprefix("daws/") for name in names if name.startswith("daws/")}
    source = ROOT / "src/daws"
    assert packed == {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_changelog_has_a_section_for_this_version():
    text = (ROOT / "CHANGELOG.md").read_text()
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert sections[0] == "[Unreleased]"
    assert re.fullmatch(re.escape(f"[{daws.__version__}]") + r" - \d{4}-\d\d-\d\d", sections[1])
    parts = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert parts <= {"Added", "Changed", "Deprecated", "Fixed", "Removed", "Security"}
