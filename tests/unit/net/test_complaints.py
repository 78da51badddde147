"""The log stays readable, whoever knocks."""

import logging

from daws.net.complaints import LINES_MAX, WINDOW_S, Complaints


def test_a_flood_becomes_a_few_lines_and_a_number(caplog):
    now_s = [0.0]
    complaints = Complaints(lambda: now_s[0])
    with caplog.at_level(logging.WARNING, "daws"):
        for number in range(LINES_MAX + 1234):
            complaints.warn(f"line {number}")
        assert [record.message for record in caplog.records] == [f"line {number}" for number in range(LINES_MAX)]
        caplog.clear()
        now_s[0] = WINDOW_S
        complaints.warn("later")
        complaints.warn("again")
    assert [record.message for record in caplog.records] == [
        "later (and 1,234 more before that were not written down)",
        "again",
    ]
