"""What went wrong between us and the server, in words of our own: what time can mend, and what it cannot."""

import hiredis

from daws.model.errors import DawsError, UnavailableError, UsageError

# What servers say while they start, are replaced, or have no replica or disk that they were told to have.
_PASSING = ("BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOREPLICAS", "TRYAGAIN", "UNBLOCKED")
_REFUSING = ("NOAUTH", "WRONGPASS", "NOPERM", "AUTH <password>", "Client sent AUTH", "invalid password")


class Trouble(UnavailableError):
    """It may pass. `elsewhere`: another server may have become the one that takes writes."""

    def __init__(self, message: str, elsewhere: bool = True) -> None:
        super().__init__(message, retry=True)
        self.elsewhere = elsewhere


def translate(error: Exception, where: str) -> DawsError:
    """One line that names the server and, where there is one, the cure. (Old servers wrap what a script met.)"""
    if isinstance(error, DawsError):
        return error
    said = " ".join(str(error).split()) or type(error).__name__
    if "certificate verify failed" in said.lower():
        return UsageError(f"the store at {where} has a certificate that we do not trust: {said}; is ca_file right?")
    if isinstance(error, OSError):  # connections, names, time-outs
        return Trouble(f"the store at {where} does not answer: {said}")
    if not isinstance(error, hiredis.ReplyError):
        raise error
    if any(word in said for word in _REFUSING):
        return UsageError(f"the store at {where} refuses us: {said}; check user name and password in its address")
    if "OOM command not allowed" in said:
        return Trouble(f"the store at {where} is full: raise its maxmemory, or let sessions end", elsewhere=False)
    if "READONLY" in said:
        return Trouble(f"the store at {where} is a replica and takes no writes")
    if any(word in said for word in _PASSING):
        return Trouble(f"the store at {where} does not answer: {said}")
    return UsageError(
        f"the store at {where} cannot do what is asked: {said}; it has to be Valkey, or Redis from 6.2 on"
    )
