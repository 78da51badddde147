"""The file of runs: nothing that is done is done again, and nothing else gets in."""

from pathlib import Path

import pytest

from daws.compare.cases import Case, CaseResult
from daws.compare.results import Results, default_path
from daws.model.errors import UnavailableError, UsageError

SETTINGS: dict[str, object] = {"workload": "bot", "cores": None, "set": ["a=1"]}


def run_of(seed: int = 0) -> CaseResult:
    return CaseResult("daws", 4, seed, 10, 2.0, 1.0, "work", 0.5, 0.6, 7, 0.1)


def test_what_was_added_is_there_again(tmp_path):
    path = tmp_path / "r.jsonl"
    with Results(path, SETTINGS) as results:
        results.add(run_of(0))
        results.add(run_of(1))
    with Results(path, SETTINGS) as results:
        assert results.runs == {run_of(seed).case: run_of(seed) for seed in (0, 1)}
        cases = [Case("daws", 4, seed) for seed in range(3)]
        assert results.missing(cases) == cases[2:]
        results.add(run_of(2))
    assert path.read_bytes().count(b"\n") == 4


@pytest.mark.parametrize("cut", [1, 30])
def test_half_a_line_is_forgotten(tmp_path, cut):
    path = tmp_path / "r.jsonl"
    with Results(path, SETTINGS) as results:
        results.add(run_of(0))
        results.add(run_of(1))
    path.write_bytes(path.read_bytes()[:-cut])
    with Results(path, SETTINGS) as results:
        assert list(results.runs.values()) == [run_of(0)]
        results.add(run_of(1))
    with Results(path, SETTINGS) as results:
        assert len(results.runs) == 2


def test_half_a_first_line_is_a_file_that_has_only_begun(tmp_path):
    path = tmp_path / "r.jsonl"
    with Results(path, SETTINGS):
        pass
    whole = path.read_bytes()
    for length in (0, 5, 25, len(whole) - 1):
        path.write_bytes(whole[:length])
        with Results(path, SETTINGS) as results:
            assert not results.runs
        assert path.read_bytes() == whole


def test_other_settings_are_refused_and_named(tmp_path):
    path = tmp_path / "r.jsonl"
    with Results(path, SETTINGS):
        pass
    with (
        pytest.raises(UsageError, match=r"other settings \(cores was null, not 4\)"),
        Results(path, SETTINGS | {"cores": 4}),
    ):
        pass


@pytest.mark.parametrize("text", ["something else", "something else\n", "[1]\n", '{"a": 1}\n'])
def test_other_files_are_refused_and_left_alone(tmp_path, text):
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match="no file of 'daws compare'"), Results(path, SETTINGS):
        pass
    assert path.read_text() == text


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "r.jsonl"
    with Results(path, SETTINGS) as results:
        results.add(run_of())
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.raises(UsageError, match="line 3 cannot be read"), Results(path, SETTINGS):
        pass


def test_two_at_a_time_are_refused(tmp_path):
    path = tmp_path / "r.jsonl"
    with Results(path, SETTINGS), pytest.raises(UsageError, match="right now"), Results(path, SETTINGS):
        pass


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(UsageError, match="cannot be written"), Results(tmp_path / "no" / "r.jsonl", SETTINGS):
        pass
    for device in (tmp_path, Path("/dev/full")):
        with pytest.raises(UsageError, match="no file of"), Results(device, SETTINGS):
            pass


def test_a_full_disk_is_an_error_in_one_line(tmp_path):
    with Results(tmp_path / "r.jsonl", SETTINGS) as results, open("/dev/full", "wb", buffering=0) as full:
        room, results._file = results._file, full
        with pytest.raises(UnavailableError, match="No space left"):
            results.add(run_of())
        results._file = room


def test_the_default_name_is_that_of_the_settings():
    one = default_path("./data/mon tage.xml:x", SETTINGS)
    assert one == default_path("./data/mon tage.xml:x", dict(reversed(SETTINGS.items())))
    assert one.name.startswith("compare-mon-tage-xml-") and one.suffix == ".jsonl"
    assert one != default_path("./data/mon tage.xml:x", SETTINGS | {"cores": 2})
