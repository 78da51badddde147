"""Errors of the server, translated: those that time can mend, and those that it cannot."""

import hiredis

from daws.model.errors import DawsError, UnavailableError, UsageError

# Errors that servers send while they start, are replaced, hand keys over, or lack a replica or disk that they should
# have.
_PASSING = (
    "ASK",
    "BUSY",
    "CLUSTERDOWN",
    "ERR max number of clients",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "MOVED",
    "NOREPLICAS",
    "TRYAGAIN",
    "UNBLOCKED",
)
_REFUSING = ("NOAUTH", "WRONGPASS", "NOPERM", "ERR AUTH", "ERR Client sent AUTH", "ERR invalid password")


class Trouble(UnavailableError):
    """An error that may pass. `elsewhere`: another server may have become the one that takes writes."""

    def __init__(self, message: str, elsewhere: bool = True) -> None:
        super().__init__(message, retry=True)
        self.elsewhere = elsewhere


def translate(error: Exception, where: str) -> DawsError:
    """The error as one line that names the server and, if there is one, the cure."""
    if isinstance(error, DawsError):
        return error
    said = " ".join(str(error).split()) or type(error).__name__
    if "certificate verify failed" in said.lower():
        return UsageError(f"the store at {where} has a certificate that we do not trust: {said}; is ca_file right?")
    if isinstance(error, OSError):  # connections, names, time-outs
        return Trouble(f"the store at {where} does not answer: {said}")
    if not isinstance(error, hiredis.ReplyError):
        raise error
    if _begins(said, *_REFUSING):
        return UsageError(f"the store at {where} refuses us: {said}; check user name and password in its address")
    if _begins(said, "OOM"):
        return Trouble(f"the store at {where} is full: raise its maxmemory, or let sessions end", elsewhere=False)
    if _begins(said, "READONLY"):
        return Trouble(f"the store at {where} is a replica and takes no writes")
    if _begins(said, *_PASSING):
        return Trouble(f"the store at {where} does not answer: {said}")
    return UsageError(f"the store at {where} refused a command: {said}; it has to be Valkey, or Redis from 6.2 on")


def _begins(said: str, *codes: str) -> bool:
    """Whether an error begins with one of these codes. Servers before version 7 wrap errors of scripts."""
    return any(said.startswith(code) or f": -{code} " in said for code in codes)
