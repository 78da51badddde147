"""Records of a worker, in a process of its own: `logging` is the test's here."""

import subprocess
import sys

BEGIN = """
import sys
assert "logging" not in sys.modules
from msgspec import msgpack
from daws.workers import logs
from daws.workers.logs import Logs

sent, clock = [], [100.0]
logs.monotonic = lambda: clock[0]
ours = Logs("worker-7", lambda what, text: sent.append((what, msgpack.decode(text))))
ours.begin()

def said():
    found = [one["msg"] for _, one in sent]
    sent.clear()
    return found
"""


def told_by(code: str) -> list[str]:
    run = subprocess.run([sys.executable, "-c", BEGIN + code], capture_output=True, text=True, timeout=60, check=False)
    assert not run.returncode, run.stderr
    return run.stdout.splitlines()


def test_a_worker_does_not_import_logging_and_sends_records_once_it_is_imported():
    code = """
print("logging" in sys.modules, len(sys.meta_path))
import logging
print(len(sys.meta_path), logging.root.handlers[0].__class__.__name__)
logging.getLogger("x").info("no")
logging.getLogger("x").warning("yes %d", 1, extra={"huge": 1 << 70, "bad": Bad()})
print(sent[0][1]["processName"], sent[0][1]["huge"], sent[0][1]["bad"], said())
"""
    bad = """
class Bad:
    def __repr__(self):
        raise ValueError
"""
    found = told_by(bad + code)
    before, after = found[0].split(" ")[1], found[1].split(" ")[0]
    assert found[0].startswith("False") and int(before) == int(after) + 1
    assert found[1].endswith("SendingHandler")
    assert found[2] == f"worker-7 {1 << 70} <Bad> ['yes 1']"


def test_levels_of_one_client_are_taken_back_for_the_next():
    code = """
ours.use(msgpack.encode({"": 20, "x": 10, logs.DISABLE: 5}))
import logging
log = logging.getLogger("x")
log.debug("one"); log.log(5, "never"); logging.info("two"); print(said(), logging.root.manager.disable)
ours.use(b"")
log.debug("three"); logging.info("four"); logging.warning("five"); print(said(), logging.root.manager.disable)
"""
    assert told_by(code) == ["['one', 'two'] 5", "['five'] 0"]


def test_a_flood_of_records_is_bounded():
    code = """
import logging
for number in range(5000):
    logging.warning("number")
print(len(said()))
clock[0] += 1.0
logging.warning("later")
print(said())
"""
    assert told_by(code) == [
        "2000",
        "['3,000 log records were left out: a worker sends 2,000 of them in a second', 'later']",
    ]


def test_records_that_were_left_out_are_told_at_the_end_of_a_run_once_a_second_and_at_tear_down():
    code = """
import logging
def flood(count):
    for number in range(count):
        logging.warning("number")
ours.end_run()
flood(5000); said()
ours.end_run(); print(said())
flood(10); ours.end_run(); print(said())
clock[0] += 1.0
ours.end_run(); print(said())
flood(2001); said(); ours.end_run(); print(said())
ours.tell_lost(); ours.tell_lost(); print(said())
"""
    left_out = "['{} log records were left out: a worker sends 2,000 of them in a second']"
    assert told_by(code) == [left_out.format("3,000"), "[]", left_out.format(10), "[]", left_out.format(1)]


def test_who_configures_logging_has_its_way_and_so_has_who_catches_warnings():
    code = """
import logging, warnings
warnings.warn("sent")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn("caught")
print([what for what, _ in sent], len(caught)); sent.clear()
logging.basicConfig(stream=sys.stdout, level=10, format="%(message)s")
logging.debug("printed")
print(sent)
"""
    assert told_by(code) == ["[4] 1", "printed", "[]"]
