"""Two who meet: they agree on who they are, or both learn in the same words why not."""

import sys

import pytest

from daws.model.errors import PeerError
from daws.net.handshake import Handshake, Hello

NODE = Hello("lab", "node", 4)


def meet(one: Handshake, other: Handshake, piece: int = 1000) -> list[str]:
    """Let both talk to the end, in pieces; what each of them says was wrong, if anything."""
    errors = ["", ""]
    ends = (one, other)
    pipes = [bytearray(other.greeting()), bytearray(one.greeting())]  # to each of them
    while any(pipes):
        for number, end in enumerate(ends):
            room = end.room
            part = bytes(pipes[number][: min(piece, len(room))])
            del pipes[number][: len(part)]
            room[: len(part)] = part
            if part and not errors[number]:
                try:
                    pipes[1 - number] += end.arrived(len(part))
                except PeerError as error:
                    errors[number] = str(error)
    return errors


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_they_know_each_other(piece: int):
    client = Hello("lab", "client", -3)
    one, other = Handshake(NODE), Handshake(client, node=4)
    assert meet(one, other, piece) == ["", ""]
    assert (one.peer, other.peer) == (client, NODE)
    assert NODE.python == sys.version_info[:2]
    assert list(map(str, (NODE, client, Hello("lab", "store")))) == ["node 4", "a client", "the store"]


@pytest.mark.parametrize(
    ("hello", "names", "cure"),
    [
        (Hello("lab", "node", 5, protocol=9), "protocol 9", ": install the same version of daws on both sides"),
        (
            Hello("lab", "node", 5, python=(3, 99)),
            "Python 3.99",
            ": use the same version, because values travel pickled",
        ),
        (Hello("other", "node", 5), "'other'", ""),
        (Hello("lab", "node", 5, purpose="objects"), "'objects'", ""),
    ],
)
def test_what_differs_is_named_on_both_sides(hello: Hello, names: str, cure: str):
    for error in meet(Handshake(NODE), Handshake(hello)):
        assert names in error and error.endswith(cure) and "\n" not in error
        assert "node 4" in error and "node 5" in error


def test_who_refuses_says_why_to_the_other():
    errors = meet(Handshake(NODE, roles=["client"]), Handshake(Hello("lab", "node", 5)))
    assert errors == [
        "node 5 has no keys for this role, but those of client",
        "it refuses: node 5 has no keys for this role, but those of client",
    ]
    errors = meet(Handshake(Hello("lab", "client"), node=7), Handshake(NODE))
    assert errors[0] == "node 7 is not here any more, but node 4"
    assert errors[1] == f"it refuses: {errors[0]}"


def test_words_are_cut_rather_than_too_long():
    long = "x" * 64
    errors = meet(Handshake(Hello(long, "node", 2**62)), Handshake(Hello("y" * 64, "node", -(2**62))))
    assert all(errors)


def test_recorded_answers_are_good_for_nobody_else():
    nonces = iter((b"a" * 16, b"b" * 16))
    first = Handshake(NODE, nonce=next(nonces))
    client = Handshake(Hello("lab", "client"))
    recorded = client.greeting()
    client.room[:] = first.greeting()
    recorded += client.arrived(len(first.greeting()))
    second = Handshake(NODE, nonce=next(nonces))
    view = memoryview(recorded)
    with pytest.raises(PeerError, match="recorded"):
        while view:
            room = second.room
            count = len(room)
            room[:] = view[:count]
            view = view[count:]
            second.arrived(count)
    assert second.peer is None


def test_strangers_are_noticed_by_their_first_bytes():
    for word in (b"GET ", b"\x16\x03\x01", b"dawn", b"\0"):
        end = Handshake(NODE)
        end.room[: len(word)] = word
        with pytest.raises(PeerError, match="does not speak the protocol of daws"):
            end.arrived(len(word))


def test_unknown_roles_are_refused():
    end = Handshake(NODE)
    greeting = bytearray(Handshake(Hello("lab", "store")).greeting())
    greeting[24] = 200
    end.room[:] = greeting
    assert b"role 200 has no keys for this role" in end.arrived(len(greeting))
