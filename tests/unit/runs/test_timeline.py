"""Rows of several nodes as columns."""

from daws.runs.timeline import Timeline
from daws.wire.notes import News, Row

FIRST: Row = (42, 3, 0, 1, 10_000, 10_500, 2, 30, 1003, 1)
SECOND: Row = (43, 4, 1, 0, 10_100, 10_200, 1, 0, 0, 0)


def test_rows_come_back_as_they_were_added():
    timeline = Timeline()
    timeline.add(News(0, (FIRST,), 2, 10))
    timeline.add(News(1, (SECOND,), 3, 20))
    assert list(timeline.rows()) == [FIRST, SECOND]
    assert (timeline.count, timeline.bytes_total, timeline.busy_count) == (2, 1033, 5)
    assert (list(timeline.end_ns), list(timeline.is_good)) == ([10_500, 10_200], [1, 0])
    timeline.add(News(1, (), 0, 25))
    assert (timeline.count, timeline.busy_count, timeline.moved_bytes) == (2, 2, 35)


def test_kinds_have_names():
    timeline = Timeline()
    timeline.learn(3, "len")
    assert [timeline.name_of(kind) for kind in (3, 4)] == ["len", "function 4"]
