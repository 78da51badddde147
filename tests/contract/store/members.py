"""Rule 4, death, its first half: leases by the store's clock, and who is a member."""

from daws.wire.store import OK, REFUSED, STRUCK, Buried, EnrolNode, Lease, Leased, NodeEnrolled, UseStrategy, Watch
from tests.contract.store.desk import ANN, BOB, CAT, DAN, Contract, Desk, info


class MembersContract(Contract):
    def test_members_and_their_versions(self, desk: Desk):
        first = desk(Lease(ANN, 0, info(ANN)))
        assert isinstance(first, Leased) and first.members is not None
        assert first.members.nodes == (ANN,)
        assert desk(Lease(ANN, first.members.version)) == Leased()
        second = desk(Lease(BOB, 0, info(BOB)))
        assert isinstance(second, Leased) and second.members is not None
        assert second.members.nodes == (ANN, BOB) and second.members.version > first.members.version
        assert desk(Lease(ANN, first.members.version)) == second

    def test_who_watches_learns_of_the_members_without_being_one(self, desk: Desk):
        desk.join(ANN, BOB)
        seen = desk(Watch(0))
        assert isinstance(seen, Leased) and seen.members is not None
        assert seen.members.nodes == (ANN, BOB) and seen.orphans == ()
        assert desk(Watch(seen.members.version)) == Leased()
        desk.now_ns = self.lease_ns
        later = desk(Watch(seen.members.version))
        assert isinstance(later, Leased) and later.members is not None and later.members.nodes == ()

    def test_who_never_joined_has_no_lease(self, desk: Desk):
        assert desk(Lease(ANN, 0)) == STRUCK

    def test_leases_run_out_by_the_clock_of_the_store(self, desk: Desk):
        desk.join(ANN, BOB)
        desk.now_ns = self.lease_ns - 1
        assert isinstance(desk(Lease(BOB, 0)), Leased)
        desk.now_ns = self.lease_ns
        answer = desk(Lease(BOB, 0))
        assert isinstance(answer, Leased) and answer.members is not None
        assert answer.members.nodes == (BOB,) and answer.orphans == (ANN,)

    def test_a_late_renewal_is_struck(self, desk: Desk):
        desk.join(ANN, BOB)
        desk.now_ns = self.lease_ns - 1
        desk(Lease(BOB, 0))
        desk.now_ns = self.lease_ns
        assert desk(Lease(ANN, 1)) == STRUCK, "nobody had noticed before"
        assert desk(Lease(ANN, 0, info(ANN))) == STRUCK, "not even by joining anew"
        assert isinstance(desk(Lease(DAN, 0, info(DAN))), Leased), "but as a new incarnation"

    def test_the_dead_are_orphans_until_they_are_buried(self, desk: Desk):
        desk.join(ANN, BOB)
        desk.now_ns = self.lease_ns - 1
        desk(Lease(BOB, 0))
        desk.now_ns = self.lease_ns
        answer = desk(Lease(BOB, 0))
        assert isinstance(answer, Leased) and answer.orphans == (ANN,)
        assert desk(Buried(ANN)) == OK
        answer = desk(Lease(BOB, 0))
        assert isinstance(answer, Leased) and answer.orphans == ()
        assert desk(Lease(ANN, 0, info(ANN))) == STRUCK

    def test_burying_somebody_who_lives_is_no_death(self, desk: Desk):
        desk.join(ANN)
        assert desk(Buried(ANN)) == OK
        assert isinstance(desk(Lease(ANN, 0)), Leased)

    def test_leaving_makes_an_orphan_at_once(self, desk: Desk):
        desk.join(ANN, BOB)
        answer = desk(Lease(ANN, 0, leaving=True))
        assert isinstance(answer, Leased) and answer.orphans == (ANN,)
        assert desk(Lease(ANN, 0)) == STRUCK

    # -- numbers of nodes --------------------------------------------------------------------------------

    def test_each_node_gets_a_number_of_its_own_and_keeps_it_if_it_asks_again(self, desk: Desk):
        assert [desk(EnrolNode(nonce)) for nonce in (b"ann", b"bob")] == [NodeEnrolled(0), NodeEnrolled(1)]
        assert desk(EnrolNode(b"ann")) == NodeEnrolled(0)
        desk.join(0)
        desk(Lease(0, 0, leaving=True))
        desk(Buried(0))
        assert desk(EnrolNode(b"cat")) == NodeEnrolled(2), "whatever has become of the others"

    def test_many_numbers_are_all_different(self, desk: Desk):
        rows = [EnrolNode(b"%d" % number) for number in range(30)]
        assert desk.store.apply(0, rows, 0) == [NodeEnrolled(number) for number in range(30)]

    # -- the strategy ------------------------------------------------------------------------------------

    def test_a_new_strategy_is_a_new_version_of_the_members(self, desk: Desk):
        desk.join(ANN)
        seen = desk(Watch(0))
        assert isinstance(seen, Leased) and seen.members is not None and seen.members.strategy == ""
        version = seen.members.version
        assert desk(UseStrategy("flds", version)) == OK
        answer = desk(Lease(ANN, version))
        assert isinstance(answer, Leased) and answer.members is not None
        assert (answer.members.strategy, answer.members.nodes) == ("flds", (ANN,))
        assert answer.members.version > version
        assert desk(Lease(ANN, answer.members.version)) == Leased()
        assert desk(UseStrategy("flds", version)) == OK, "it is in use"
        assert desk(Watch(answer.members.version)) == Leased(), "so nothing has changed"
        desk.join(BOB)
        later = desk(Watch(0))
        assert isinstance(later, Leased) and later.members is not None and later.members.strategy == "flds"

    def test_a_strategy_is_chosen_by_those_who_know_the_one_in_use(self, desk: Desk):
        assert desk(UseStrategy("flds", 0)) == OK, "before any node has joined"
        first = desk(Watch(0))
        assert isinstance(first, Leased) and first.members is not None and first.members.strategy == "flds"
        assert desk(UseStrategy("rlds", 0)) == REFUSED
        assert desk(UseStrategy("rlds", first.members.version)) == OK
        assert desk(UseStrategy("flds", first.members.version)) == REFUSED, "a late copy, or another caller"
        desk.join(CAT)
        last = desk(Watch(0))
        assert isinstance(last, Leased) and last.members is not None and last.members.strategy == "rlds"
        assert desk(UseStrategy("flds", last.members.version)) == OK
