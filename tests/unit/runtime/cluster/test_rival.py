"""Another client of a session is alive if it goes on renewing its lease."""

from daws.model.session import SWEEPER, SessionEntry
from daws.runtime.cluster.rival import RENEWALS, Rival
from daws.wire.store import OK, SessionList


def seen(nonce: bytes, until_ns: int, ending: bool = False) -> SessionList:
    return SessionList((SessionEntry(3, "mine", True, nonce, 0, ending),), (3,), (until_ns,))


def test_a_client_that_goes_on_renewing_its_lease_is_alive():
    rival = Rival()
    looks = [rival.is_alive("mine", seen(b"one", until_ns)) for until_ns in range(RENEWALS + 1)]
    assert looks == [*[False] * RENEWALS, True]


def test_a_lease_that_became_longer_by_a_failover_is_no_sign_of_life():
    rival = Rival()
    assert not any(rival.is_alive("mine", seen(b"one", until_ns)) for until_ns in (1, 1, 1, 9, 9, 9, 9, 12))


def test_a_sweeper_that_comes_in_between_is_another_client():
    rival = Rival()
    looks = [seen(nonce, until_ns) for until_ns, nonce in enumerate((b"one", b"one", b"broom", b"broom", b"one"))]
    assert not any(rival.is_alive("mine", one) for one in looks)


def test_a_sweeper_that_renews_its_lease_is_no_client():
    rival = Rival()
    assert not any(rival.is_alive("mine", seen(b"x" + SWEEPER, until_ns)) for until_ns in range(3 * RENEWALS))


def test_sessions_of_others_and_those_that_end_do_not_count():
    rival = Rival()
    for until_ns in range(2 * RENEWALS):
        assert not rival.is_alive("other", seen(b"one", until_ns))
        assert not rival.is_alive("mine", seen(b"one", until_ns, ending=True))
        assert not rival.is_alive("mine", OK)
