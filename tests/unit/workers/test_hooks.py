"""What a set-up sets in its module is there for tasks of scripts, whose functions travel by value."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import functools, json, sys
import daws

model = None
untouched = "as it was"

def init(value=7):
    global model, extra
    model, extra = [value], value

def helper():
    return model

def use(*_):
    return extra, model, helper(), untouched

def stop(path):
    with open(path, "a") as file:
        file.write(f"{extra}\\n")

class Job:
    def run(self, x):
        return extra, model, helper(), untouched

found = []
for setup in (init, functools.partial(init, 7), lambda: init(7)):
    teardown = functools.partial(stop, "stopped")
    with daws.Cluster(setup=setup, teardown=teardown, **json.loads(sys.argv[1])) as cluster:
        found += [cluster.submit(use).result(), *cluster.map(use, range(2))]
        found += [cluster.submit(functools.partial(use, 1)).result(), cluster.submit(Job().run, 1).result()]
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    "cluster", [{"workers": 1}, {"workers": 1, "kind": "threads"}, {"workers": 1, "node": "process"}], ids=str
)
def test_tasks_see_what_the_set_up_has_set(cluster, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), json.dumps(cluster)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == [[7, [7], [7], "as it was"]] * 15
    assert (tmp_path / "stopped").read_text() == "7\n" * 3
