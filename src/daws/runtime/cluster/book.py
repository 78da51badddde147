"""The file that the server of a store keeps beside it: how many nodes there were, and which sessions there are.

The file is small, and is written anew under its name whenever something in it changes. Numbers of nodes are set aside
many at a time, so most starts of nodes write nothing. A number is never given twice, whatever happens to the server.

While the disk is full, no further numbers can be set aside, and no session can be opened. All other changes stay in
memory, and are written when there is room.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from daws.model.errors import StoreFullError, UnavailableError
from daws.model.task import NodeId

NODES_AT_ONCE = 1000
VERSION = 1


class Entry(msgspec.Struct):
    """One session. `since` is when it was opened, in seconds as `time.time` has them."""

    number: int
    name: str
    kept: bool
    since: float


class _Page(msgspec.Struct):
    version: int = VERSION
    nodes: int = 0
    sessions_ever: int = 0
    sessions: list[Entry] = []


class Book:
    def __init__(self, path: Path | None, durable: bool = True, first_session: int = 1) -> None:
        """Read the file, if it exists. With `path=None` nothing outlives the process. A `durable` file survives a crash
        of the machine. Sessions are numbered from `first_session` on."""
        self._path = path
        self._durable = durable
        self._first_session = first_session
        self._page = _Page()
        self._is_late = False
        if path is not None and path.exists():
            try:
                self._page = msgspec.json.decode(path.read_bytes(), type=_Page)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise UnavailableError(f"{path} cannot be read: {error}; it was not written by daws", False) from error
            if self._page.version != VERSION:
                raise UnavailableError(
                    f"{path} has version {self._page.version}, this daws knows {VERSION}: use the daws that wrote it",
                    retry=False,
                )
        self._next_node = self._page.nodes
        self.sessions: dict[int, Entry] = {one.number: one for one in self._page.sessions}

    def new_node(self) -> NodeId:
        node = self._next_node
        if node >= self._page.nodes:
            before, self._page.nodes = self._page.nodes, node + (NODES_AT_ONCE if self._durable else 1)
            try:
                self._write()
            except StoreFullError:
                self._page.nodes = before
                raise
        self._next_node += 1
        return node

    def open(self, name: str, kept: bool, since: float) -> Entry:
        """A new session; without a name it gets one."""
        self._page.sessions_ever += 1
        number = self._first_session + self._page.sessions_ever - 1
        entry = self.sessions[number] = Entry(number, name or f"session-{number}", kept, since)
        try:
            self._write()
        except StoreFullError:
            del self.sessions[number]
            raise
        return entry

    def keep(self, entry: Entry, kept: bool) -> None:
        if entry.kept is not kept:
            entry.kept = kept
            self._write_soon()

    def end(self, number: int) -> None:
        if self.sessions.pop(number, None) is not None:
            self._write_soon()

    def named(self, name: str) -> Entry | None:
        for entry in self.sessions.values():
            if entry.name == name:
                return entry
        return None

    def write_again(self) -> None:
        """Write the changes for which there was no room, if there are any."""
        if self._is_late:
            self._write_soon()

    def _write_soon(self) -> None:
        """Write the file, or note that it is late if the disk is full. No caller depends on it."""
        self._is_late = True
        with suppress(StoreFullError):
            self._write()
            self._is_late = False

    def _write(self) -> None:
        if self._path is None:
            return
        self._page.sessions = list(self.sessions.values())
        part = self._path.with_name(f"{self._path.name}.part")
        try:
            with open(part, "wb") as file:
                file.write(msgspec.json.encode(self._page))
                file.flush()
                if self._durable:
                    os.fsync(file.fileno())
            os.replace(part, self._path)
        except OSError as error:
            raise StoreFullError(f"{self._path} cannot be written: {error.strerror}; make room there") from error
