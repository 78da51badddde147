"""The clock of the store's server."""

import os
import signal
import time
from pathlib import Path

import pytest

from daws.runtime.cluster.clock import STOP_NS, StandingClock
from tests.unit.runtime.cluster.machines import DEADLINE_S, Machines

LEASE_S = 3.0


def test_it_begins_with_the_time_of_day_and_stands_still_while_nobody_reads_it(monkeypatch: pytest.MonkeyPatch):
    now_ns, today_ns = 5_000_000_000, 1_700_000_000_000_000_000
    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ns)
    monkeypatch.setattr(time, "time_ns", lambda: today_ns)
    clock = StandingClock()
    monkeypatch.setattr(time, "time_ns", lambda: 0)  # it may be set back later
    found = []
    for passed_ns in (0, STOP_NS // 2, STOP_NS, 60 * STOP_NS, STOP_NS // 4):
        now_ns += passed_ns
        found.append(clock.now_ns() - today_ns)
    assert found == [0, STOP_NS // 2, STOP_NS * 3 // 2, STOP_NS * 5 // 2, STOP_NS * 11 // 4]


def test_a_store_that_was_stopped_for_longer_than_a_lease_declares_nobody_dead(tmp_path: Path):
    with Machines(tmp_path, lease_s=LEASE_S) as machines:
        for _ in range(2):
            machines.node()
        before = machines.wait_for(2).nodes
        with machines.connect() as cluster:
            os.kill(machines.store.pid, signal.SIGSTOP)
            time.sleep(2 * LEASE_S)  # this is how long it is stopped
            os.kill(machines.store.pid, signal.SIGCONT)
            assert cluster.gather([cluster.submit(abs, -number) for number in range(20)], timeout=DEADLINE_S) == [
                *range(20)
            ]
            assert machines.members().nodes == before
