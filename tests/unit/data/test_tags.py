"""What stands before a function that travels."""

from daws.data.tags import name_in, named, pickle_in, root_of, rooted, split, tag_of

TAG = tag_of(7, b"d" * 16)


def test_what_stands_before_a_function_is_found_in_every_combination():
    for tag in (b"", TAG):
        plain = tag + named("double", b"code")
        for function in (plain, rooted(1 << 40, plain)):
            found, rest = split(function)
            assert (found, pickle_in(rest), name_in(function)) == (tag, b"code", "double")


def test_what_a_run_has_brought_in_goes_with_a_function_of_a_client():
    assert root_of(5, TAG + b"code") == 5
    assert root_of(1 << 60, rooted(5, TAG + b"code")) == 5
