"""Connections: addresses, TLS, and servers that say nothing or nonsense."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from daws.model.errors import UsageError
from daws.model.task import TaskSpec
from daws.store.valkey import link as module
from daws.store.valkey.link import Access, ServerAddress, connect, read_url, shown
from daws.store.valkey.server import Address
from daws.store.valkey.store import ValkeyStore
from daws.wire.store import Submit
from tests.valkey import LocalServer, make_certificate

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.mark.parametrize(
    ("url", "place", "access"),
    [
        ("redis://localhost", ServerAddress("localhost", 6379), Access()),
        ("redis://[::1]:7000/3", ServerAddress("::1", 7000), Access(database=3)),
        ("redis://:p%40ss@host", ServerAddress("host", 6379), Access(password="p@ss")),
        ("rediss://me:secret@host:7000", ServerAddress("host", 7000), Access("me", "secret")),
        ("unix:///run/a%20b?db=2", ServerAddress("/run/a b"), Access(database=2)),
    ],
)
def test_addresses(url: str, place: ServerAddress, access: Access):
    assert read_url(url) == (place, access, url.startswith("rediss"))


@pytest.mark.parametrize("url", ["", "localhost", "http://host", "redis://host:port", "redis://host/x", "redis://[::1"])
def test_what_is_no_address_is_refused(url: str):
    with pytest.raises(UsageError, match="no address of a store"):
        read_url(url)


def test_what_is_shown_of_an_address_is_not_secret():
    assert shown("redis://me:se@cret@host:1/2") == "redis://host:1/2"
    assert shown("redis://host") == "redis://host"
    with pytest.raises(UsageError) as caught:
        read_url("http://me:secret@host")
    assert "secret" not in str(caught.value)


@contextlib.asynccontextmanager
async def served(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    at_work: set[asyncio.Task[None]] = set()

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at_work.add(asyncio.current_task())  # type: ignore[arg-type]
        with contextlib.suppress(OSError):
            await serve(reader, writer)
        with contextlib.suppress(OSError):
            writer.close()
            await writer.wait_closed()

    async with await asyncio.start_server(serve_one, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*at_work)


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch):
    async def run() -> None:
        over = asyncio.Event()

        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await over.wait()

        async with served(say_nothing) as port:
            link = await connect(ServerAddress("127.0.0.1", port), Access())
            monkeypatch.setattr(module, "ANSWER_S", 0.05)
            asked = [asyncio.ensure_future(link.ask(("PING",))) for _ in range(3)]
            for answer in await asyncio.gather(*asked, return_exceptions=True):
                assert isinstance(answer, TimeoutError)
            with pytest.raises(ConnectionError):
                await link.ask(("PING",))
            over.set()

    asyncio.run(run())


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"+OK\r\n+AND\r\n+MORE\r\n", b"*99999999999\r\n"]
)
def test_what_answers_nonsense_is_no_server(answer: bytes):
    async def run() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            writer.write(answer)
            await reader.read()

        async with served(talk) as port:
            link = await connect(ServerAddress("127.0.0.1", port), Access())
            with contextlib.suppress(ConnectionError):
                await link.ask(("PING",))
            with pytest.raises(ConnectionError):
                await link.ask(("PING",))

    asyncio.run(run())


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A certificate of ours, and another one."""
    for name in ("ours", "other"):
        make_certificate(tmp_path, name)
    return tmp_path


def test_by_tls_both_sides_know_each_other(keys: Path, shared: LocalServer, name: str):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(keys / "ours.pem"))
    context.load_cert_chain(keys / "ours.pem", keys / "ours.key")
    context.verify_mode = ssl.CERT_REQUIRED

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """What lies between us and a server that knows no TLS."""

        async def copy(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(1 << 16):
                    to.write(data)
            to.close()

        inner_reader, inner_writer = await asyncio.open_unix_connection(str(shared.socket))
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

    async def run() -> None:
        async with served(carry, context) as port:
            url = f"rediss://127.0.0.1:{port}"
            ours = (str(keys / "ours.pem"), str(keys / "ours.pem"), str(keys / "ours.key"))
            store = await ValkeyStore.open(Address((url,), name, *ours), patience_s=5.0)
            assert await store.call(0, [Submit(TaskSpec(1), (), 1)]) == [None]
            await store.close()
            for stranger in (("", *ours[1:]), (str(keys / "other.pem"), *ours[1:])):
                with pytest.raises(UsageError, match="certificate that we do not trust"):
                    await ValkeyStore.open(Address((url,), name, *stranger), patience_s=0.1)
            with pytest.raises(UsageError, match="cannot read"):
                await ValkeyStore.open(Address((url,), name, str(keys / "missing.pem")), patience_s=0.1)

    asyncio.run(run())
