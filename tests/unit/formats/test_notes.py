from daws.formats.notes import RepairNotes


def test_each_sort_is_one_line_with_its_count():
    notes = RepairNotes()
    notes.add("control", 1200)
    notes.add("runtime-negative")
    notes.add("cores", 0)
    assert notes.lines() == ("1 negative runtime taken as 0 s", "1,200 edges without data")
