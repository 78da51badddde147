import pickle

from daws.workers.slots import Slot, fill_file, filled


class AsItIs:
    """Inputs are their own values."""

    def value(self, one: object) -> object:
        return one

    def file(self, one: object, name: str) -> object:
        return name, one


READER = AsItIs()


def test_slots_are_filled_wherever_they_are():
    data = pickle.dumps(([Slot(1), (Slot(0), Slot(1))], {"key": Slot(0)}))
    assert filled(["zero", "one"], READER, pickle.loads, data) == (["one", ("zero", "one")], {"key": "zero"})


def test_files_are_told_their_names():
    assert filled(["zero", "one"], READER, lambda _: fill_file(1, "x.txt"), b"") == ("x.txt", "one")


def test_loading_inside_of_loading():
    def load(data: bytes) -> object:
        inner = filled(["inner"], READER, pickle.loads, pickle.dumps(Slot(0)))
        return inner, pickle.loads(data)

    assert filled(["outer"], READER, load, pickle.dumps(Slot(0))) == ("inner", "outer")


def test_a_slot_says_what_it_is():
    assert repr(Slot(3)) == "Slot(3)"
