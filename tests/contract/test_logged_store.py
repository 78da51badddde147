"""The contract of stores, on the store with a log; and whatever a test did to it, its log leads to the same state."""

from pathlib import Path
from typing import Any

import pytest

from daws.store.log import LoggedStore, StoreSettings, open_store
from tests.contract.store_suite import StoreContract
from tests.contract.test_memory_store import snapshot


class TestLogged(StoreContract):
    direct = False
    shards = 1
    retired_max = 0

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Any:
        self.folder = tmp_path / "store"
        self.made: list[tuple[LoggedStore, StoreSettings]] = []
        yield
        for number, (store, settings) in enumerate(self.made):
            self._comes_back(store, settings, number)

    def make(self, **options: Any) -> LoggedStore:
        shards = options.get("shards", self.shards)
        settings = StoreSettings(shards, self.lease_ns, direct=self.direct, retired_max=self.retired_max)
        store, _ = open_store(self.folder / str(len(self.made)), settings, 0, durable=False)
        self.made.append((store, settings))
        return store

    def snapshot(self, store: Any) -> object:
        return snapshot(store)

    def _comes_back(self, store: LoggedStore, settings: StoreSettings, number: int) -> None:
        store.log.close()  # type: ignore[attr-defined]
        again, files = open_store(self.folder / str(number), settings, 0, durable=False)
        files.close()
        store.leases = dict(again.leases)  # all of them are fresh
        assert [*store.leases] == [*again.leases] and snapshot(again) == snapshot(store)


class TestLoggedShards(TestLogged):
    shards = 3


class TestLoggedDirect(TestLogged):
    direct = True
    shards = 3
