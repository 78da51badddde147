"""The start of the fork server."""

import subprocess
import sys

PROGRAM = """
import sys

import daws

if __name__ == "__main__":
    sys.path += [f"/nowhere/{number}/{'x' * 100}" for number in range(8000)]
    with daws.Cluster(workers=1) as cluster:
        print(cluster.submit(abs, -7).result(), cluster.submit(len, sys.argv).result())
"""
ARGUMENTS = ["a" * 1000] * 1000


def test_a_long_path_and_many_arguments_reach_workers():
    program = [sys.executable, "-c", PROGRAM, *ARGUMENTS]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.returncode) == ("7 1001\n", 0), ran.stderr
