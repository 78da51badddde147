"""Settings that hold for all tests."""

from hypothesis import settings

# No deadline: two busy cores make any single example slow now and then, which says nothing about the code.
settings.register_profile("daws", deadline=None, print_blob=True)
settings.load_profile("daws")
