"""Settings that hold for all tests."""

import pytest
from hypothesis import settings

# The suites that several files share do not look like tests: let them explain their assertions all the same.
pytest.register_assert_rewrite("tests.contract")

# No deadline: two busy cores make any single example slow now and then, which says nothing about the code.
settings.register_profile("daws", deadline=None, print_blob=True)
settings.load_profile("daws")
