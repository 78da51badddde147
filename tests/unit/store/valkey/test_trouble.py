"""What servers answer, in words of our own."""

import hiredis
import pytest

from daws.model.errors import UsageError
from daws.store.valkey.trouble import Trouble, translate

WRAPPED = "ERR Error running script (call to f_12): @user_script:31: @user_script: 31: -"


@pytest.mark.parametrize(
    ("said", "kind", "shown"),
    [
        ("WRONGPASS invalid username-password pair or user is disabled.", UsageError, "check user name and password"),
        ("NOPERM this user has no permissions to run the 'evalsha' command", UsageError, "refuses us"),
        ("OOM command not allowed when used memory > 'maxmemory'.", Trouble, "raise its maxmemory"),
        (WRAPPED + "OOM command not allowed when used memory > 'maxmemory'.", Trouble, "raise its maxmemory"),
        ("READONLY You can't write against a read only replica.", Trouble, "takes no writes"),
        (WRAPPED + "READONLY You can't write against a read only replica.", Trouble, "takes no writes"),
        ("CLUSTERDOWN The cluster is down", Trouble, "does not answer"),
        ("ERR max number of clients reached", Trouble, "does not answer: ERR max number of clients reached"),
        ("ERR unknown command 'ASKING'", UsageError, "has to be Valkey"),
    ],
)
def test_what_time_can_mend_and_what_it_cannot(said: str, kind: type[Exception], shown: str):
    wrong = translate(hiredis.ReplyError(said), "here")
    assert type(wrong) is kind
    assert shown in str(wrong) and "here" in str(wrong) and "\n" not in str(wrong)


def test_only_a_server_that_is_full_is_no_reason_to_look_for_another_one():
    assert [translate(error, "").elsewhere for error in (hiredis.ReplyError("OOM"), OSError("gone"))] == [False, True]  # type: ignore[attr-defined]


def test_bugs_of_ours_are_not_taken_for_trouble():
    with pytest.raises(ZeroDivisionError):
        translate(ZeroDivisionError(), "here")
