"""Answers wait until what they tell is safe, many for one write."""

import asyncio
import threading
from functools import partial

import pytest

from daws.model.errors import StoreFullError
from daws.store.log import CallFiles, GroupSync, LoggedStore, StoreSettings, open_store
from daws.wire.store import Lease
from tests.unit.store.log.worlds import info


class Counted:
    """Files that count how often they are written, in which thread, and may be full for some times."""

    def __init__(self, files: CallFiles) -> None:
        self.files = files
        self.writes = 0
        self.threads: set[int] = set()
        self.full = 0
        self._write = files.write
        files.write = self.write  # type: ignore[method-assign]

    def write(self) -> None:
        self.threads.add(threading.get_ident())
        if self.full:
            self.full -= 1
            raise StoreFullError("no room")
        self.writes += 1
        self._write()


@pytest.fixture
def opened(tmp_path):
    store, files = open_store(tmp_path / "store", StoreSettings(), 0)
    yield store, files
    files.close()


def join(store: LoggedStore, node: int) -> None:
    store.apply(0, [Lease(node, 0, info(node))], 0)


def test_many_answers_wait_for_one_write_in_another_thread(opened):
    store, files = opened
    counted = Counted(files)
    heard: list[int] = []

    async def talk() -> None:
        group = GroupSync(asyncio.get_running_loop(), files, delay_s=0)
        told = asyncio.Event()
        for node in range(5):
            join(store, node)
            group.when_safe(partial(heard.append, node))
        group.when_safe(told.set)  # who only looks has seen them too
        assert heard == []
        await told.wait()
        assert heard == [0, 1, 2, 3, 4] and files.safe == 5
        group.when_safe(lambda: heard.append(5))
        assert heard[-1] == 5, "nothing is under way: at once"

    asyncio.run(talk())
    assert counted.writes == 1 and threading.get_ident() not in counted.threads


def test_what_comes_while_others_are_written_is_next(opened):
    store, files = opened
    order: list[str] = []

    async def talk() -> None:
        group = GroupSync(asyncio.get_running_loop(), files, delay_s=0)
        told = asyncio.Event()

        def first() -> None:
            order.append("first")
            join(store, 2)
            group.when_safe(told.set)
            order.append("asked")

        join(store, 1)
        group.when_safe(first)
        await told.wait()
        assert files.safe == 2

    asyncio.run(talk())
    assert order == ["first", "asked"]


def test_answers_wait_while_there_is_no_room_and_that_is_said_once(opened, monkeypatch, caplog):
    store, files = opened
    monkeypatch.setattr("daws.store.log.group.RETRY_S", 0)
    counted = Counted(files)
    counted.full = 3

    async def talk() -> None:
        group = GroupSync(asyncio.get_running_loop(), files, delay_s=0)
        told = asyncio.Event()
        join(store, 1)
        group.when_safe(told.set)
        await told.wait()

    asyncio.run(talk())
    assert counted.full == 0 and counted.writes == 1
    assert [record.message for record in caplog.records] == ["no room"]


def test_closing_lets_all_answers_go(opened):
    store, files = opened
    heard: list[int] = []

    async def talk() -> None:
        group = GroupSync(asyncio.get_running_loop(), files, delay_s=3600)
        join(store, 1)
        group.when_safe(lambda: heard.append(1))
        group.close()
        assert heard == [1] and files.safe == 1

    asyncio.run(talk())
