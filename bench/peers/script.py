"""`python -m bench.peers.script SYSTEM`: a script of 100 tasks, timed from outside."""

import sys

from bench.peers.systems import system_named
from bench.peers.tasks import no_op


def main() -> None:
    system = system_named(sys.argv[1])(2)
    results = system.gather([system.submit(no_op) for _ in range(100)])
    assert results == [None] * 100
    system.close()


if __name__ == "__main__":
    main()
