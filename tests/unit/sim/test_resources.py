import pytest

from daws.model.errors import UsageError
from daws.sim.resources import KNOWN, parse_queue, parse_queues


def test_known_ones():
    for name, queue in KNOWN.items():
        assert parse_queue(name) == queue and queue.name == name
        assert queue.resource.wait_s(64) > 0
    # By the published monthly and daily means, small jobs wait longer on Gordon and large ones on Stampede.
    gordon, stampede = KNOWN["gordon"].resource, KNOWN["stampede"].resource
    assert gordon.wait_s(64) > stampede.wait_s(64)
    assert gordon.wait_s(1024) < stampede.wait_s(1024)


def test_known_ones_can_be_changed():
    queue = parse_queue(" gordon: wait-s=600 , spread=0, jitter=0 ")
    assert (queue.cores, queue.resource.wait_s(8), queue.resource.wait_s(1024)) == (16, 600, 600)
    assert parse_queue("gordon:cores=8").waits == KNOWN["gordon"].waits


def test_one_of_your_own():
    queue = parse_queue("mine:nodes=32,cores=8,wait-s=120,walltime-h=0.5")
    assert (queue.nodes, queue.cores, queue.walltime_s, queue.waits.mean_s(1)) == (32, 8, 1800, 120)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected NAME"),
        ("Mine:wait-s=1", "expected NAME"),
        ("mine", "the waits of 'mine' are not known, give wait-s=…; known are stampede, gordon"),
        ("mine:", "not ''"),
        ("mine:wait=5", "not 'wait=5'"),
        ("mine:wait-s=soon", "wait-s='soon' is not a number"),
        ("mine:wait-s=5,cores=1.5", "cores='1.5' is not a whole number"),
        ("mine:wait-s=5,cores=0", "cores lies between 1 and 100000"),
        ("mine:wait-s=-1", "wait-s"),
        ("mine:wait-s=nan", "wait-s"),
        ("mine:wait-s=5,wait-s=6", "wait-s is given twice"),
        ("x" * 1000 + ":cores=1", "expected NAME"),
    ],
)
def test_refusals_are_one_line(text: str, message: str):
    with pytest.raises(UsageError) as caught:
        parse_queue(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_names_are_unique():
    with pytest.raises(UsageError, match="'gordon' is given twice"):
        parse_queues(["gordon", "stampede", "gordon:cores=3"])
