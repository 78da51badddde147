"""What a failover could still lose, as replicas catch up and time passes."""

from daws.store.valkey.safety import SETTLE_S, ReplicaOffsets, Safety, read_replicas


def test_an_update_is_safe_when_all_replicas_have_it_and_disks_had_their_time():
    safety = Safety(0)
    safety.learn(5, ReplicaOffsets(100, (90, 100)), 0.0)
    safety.learn(5, ReplicaOffsets(100, (99, 100)), SETTLE_S)
    assert safety.safe == 0, "one of them has not all of it"
    safety.learn(7, ReplicaOffsets(140, (100, 110)), SETTLE_S)
    assert safety.safe == 5
    safety.learn(7, ReplicaOffsets(150, (140, 150)), SETTLE_S + 0.1)
    assert safety.safe == 5, "too early to be on disk"
    safety.learn(7, ReplicaOffsets(150, (140, 150)), 2 * SETTLE_S)
    assert safety.safe == 7


def test_nothing_is_safe_while_replicas_are_missing_that_were_asked_for():
    safety = Safety(1)
    safety.learn(5, ReplicaOffsets(100, ()), 0.0)
    safety.learn(5, ReplicaOffsets(100, ()), 10 * SETTLE_S)
    assert safety.safe == 0
    safety.learn(5, ReplicaOffsets(100, (100,)), 11 * SETTLE_S)
    assert safety.safe == 5


def test_after_a_loss_it_counts_anew():
    safety = Safety(0)
    safety.learn(5, ReplicaOffsets(0, ()), 0.0)
    safety.learn(5, ReplicaOffsets(0, ()), SETTLE_S)
    assert safety.safe == 5
    safety.begin_anew()
    safety.learn(1, ReplicaOffsets(0, ()), 2 * SETTLE_S)
    assert safety.safe == 0


def test_what_a_server_says_of_its_replicas():
    said = (
        b"# Replication\r\nrole:master\r\nconnected_slaves:2\r\n"
        b"slave0:ip=10.0.0.2,port=6379,state=online,offset=70,lag=1\r\n"
        b"slave1:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=80,lag=0\r\nmaster_repl_offset:84\r\nslave_expires:3\r\n"
    )
    assert read_replicas(said) == ReplicaOffsets(84, (70, 0)), "one that is not online has nothing"
