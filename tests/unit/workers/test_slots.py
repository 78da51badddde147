import pickle

from daws.workers.slots import Slot, filled


def test_slots_are_filled_wherever_they_are():
    data = pickle.dumps(([Slot(1), (Slot(0), Slot(1))], {"key": Slot(0)}))
    assert filled(["zero", "one"], pickle.loads, data) == (["one", ("zero", "one")], {"key": "zero"})


def test_loading_inside_of_loading():
    def load(data: bytes) -> object:
        inner = filled(["inner"], pickle.loads, pickle.dumps(Slot(0)))
        return inner, pickle.loads(data)

    assert filled(["outer"], load, pickle.dumps(Slot(0))) == ("inner", "outer")


def test_a_slot_says_what_it_is():
    assert repr(Slot(3)) == "Slot(3)"
