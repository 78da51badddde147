import numpy as np
import pytest

from daws.data.codec import dumps
from daws.data.files import ObjectFiles
from daws.data.session import Session
from daws.data.values import Ref, value_of


def test_values_that_came_inside_are_the_callers_own():
    data = dumps(np.arange(5))
    value = value_of(Ref(1, len(data), data))
    value += 1
    assert value.tolist() == [1, 2, 3, 4, 5]


def test_values_in_files_are_mapped_unless_a_copy_is_wanted(session: Session):
    files = ObjectFiles(*session.node_folders(0), limit_bytes=1 << 30)
    size = files.put(1, np.arange(100_000))
    ref = Ref(1, size, path=files.path(1))
    with pytest.raises(ValueError, match="read-only"):
        value_of(ref)[0] = 1
    value_of(ref, copy=True)[0] = 1
    assert value_of(ref)[0] == 0
