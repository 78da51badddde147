import pytest
from hypothesis import given
from hypothesis import strategies as st

from daws.model.errors import WorkloadError
from daws.workloads.parameters import Choice, Real, Values, Whole, read_values, written

PARAMETERS = (
    Whole("degree", 10, "children", high=1000),
    Whole("tasks", None, "tasks"),
    Real("length-ms", 50.0, "length", "ms", high=1e9),
    Choice("spread", "uniform", "how", ("uniform", "constant")),
)


def test_reads_typed_values():
    given = read_values("k", PARAMETERS, " degree=3, length-ms = 1.5 ,spread=constant,tasks=1e3")
    assert given == {"degree": 3, "length-ms": 1.5, "spread": "constant", "tasks": 1000}
    assert isinstance(given["tasks"], int)


def test_values_fall_back_to_defaults():
    values = Values(PARAMETERS, {"degree": 3})
    assert (values.whole("degree"), values.real("length-ms"), values.word("spread")) == (3, 50.0, "uniform")
    assert values.whole_or_none("tasks") is None
    assert str(values) == "degree=3 length-ms=50 spread=uniform"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("degre=3", "workload k has no key 'degre'; keys: degree, tasks, length-ms, spread"),
        ("degree", "workload k: expected key=value, not 'degree'; keys: degree, tasks, length-ms, spread"),
        ("", "workload k: expected key=value, not ''; keys: degree, tasks, length-ms, spread"),
        ("degree=", "workload k: expected key=value, not 'degree='; keys: degree, tasks, length-ms, spread"),
        ("degree=3,degree=3", "workload k: degree is given twice"),
        ("degree=0", "workload k: degree='0' is out of bounds; it must lie between 1 and 1000"),
        ("degree=-3", "workload k: degree='-3' is out of bounds; it must lie between 1 and 1000"),
        ("degree=1001", "workload k: degree='1001' is out of bounds; it must lie between 1 and 1000"),
        ("degree=2.5", "workload k: degree='2.5' is not a whole number"),
        ("degree=ten", "workload k: degree='ten' is not a whole number"),
        ("degree=1_0", "workload k: degree='1_0' is not a whole number"),
        ("degree=١", "workload k: degree='١' is not a whole number"),
        ("degree=1e400", "workload k: degree='1e400' is too large"),
        ("length-ms=nan", "workload k: length-ms='nan' is not a number"),
        ("length-ms=inf", "workload k: length-ms='inf' is not a number"),
        ("length-ms=-1", "workload k: length-ms='-1' is out of bounds; it must lie between 0 and 1000000000 ms"),
        ("spread=wide", "workload k: spread='wide' is not one of uniform, constant"),
    ],
)
def test_refuses_in_one_line(text: str, message: str):
    with pytest.raises(WorkloadError) as caught:
        read_values("k", PARAMETERS, text)
    assert str(caught.value) == message


@given(st.text())
def test_any_text_is_read_or_refused(text: str):
    try:
        read_values("k", PARAMETERS, "length-ms=" + text)
    except WorkloadError as error:
        assert len(str(error)) < 200
        assert "\n" not in str(error)


@given(st.floats(0, 1e9))
def test_written_numbers_read_back(number: float):
    assert Real("x", 0.0, "").read(written(number)) == number
