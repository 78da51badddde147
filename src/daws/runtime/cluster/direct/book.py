"""The sessions of a cluster, as notes beside its store: opened, taken over from clients that are gone, ended."""

import msgspec

from daws.store.valkey.notes import ENDED, NAMES, SESSIONS, ClusterNotes

OPEN, ENDING = 0, 1


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One session. `nonce` is its client's, empty when it has none; `since` is when it was opened, in seconds as
    `time.time` has them."""

    number: int
    name: str
    kept: bool
    since: float
    nonce: bytes = b""
    state: int = OPEN


_decoder = msgspec.msgpack.Decoder(Entry)
encode = msgspec.msgpack.Encoder().encode


def decode(noted: bytes) -> Entry:
    return _decoder.decode(noted)


class SessionBook:
    def __init__(self, notes: ClusterNotes) -> None:
        self._notes = notes

    async def named(self, name: str) -> Entry | None:
        (number,) = await self._notes.get(NAMES, [name])
        entry = await self.entry(int(number)) if number else None
        if number and entry is None:  # the server has forgotten it
            await self._notes.swap(NAMES, name, number, b"")
        return entry

    async def entry(self, number: int) -> Entry | None:
        (noted,) = await self._notes.get(SESSIONS, [number])
        return decode(noted) if noted else None

    async def open(self, name: str, kept: bool, since: float, nonce: bytes) -> Entry | None:
        """Open a session; without a name it gets one. None if there is a session of that name already."""
        number = await self._notes.new_number("session")
        entry = Entry(number, name or f"session-{number}", kept, since, nonce)
        if not await self.restore(entry):
            return None
        return entry

    async def restore(self, entry: Entry) -> bool:
        """Write an entry that is new, or that the server may have forgotten. False if another session has its name."""
        mine = b"%d" % entry.number
        await self._notes.swap(SESSIONS, entry.number, b"", encode(entry))
        if await self._notes.swap(NAMES, entry.name, b"", mine) != mine:
            await self._notes.swap(SESSIONS, entry.number, encode(entry), b"")
            return False
        return True

    async def change(self, entry: Entry, **fields: object) -> Entry | None:
        """Change an entry, and return the new one. None if another process has changed it meanwhile."""
        wanted = msgspec.structs.replace(entry, **fields)
        now = await self._notes.swap(SESSIONS, entry.number, encode(entry), encode(wanted))
        return wanted if now == encode(wanted) else None

    async def end(self, entry: Entry) -> None:
        """Remove a session from the notes, and note that it has ended."""
        await self._notes.put(ENDED, (entry.number, b"1"))
        await self._notes.swap(NAMES, entry.name, b"%d" % entry.number, b"")
        await self._notes.drop(SESSIONS, [entry.number])
        await self._notes.drop("seen", [entry.number])
