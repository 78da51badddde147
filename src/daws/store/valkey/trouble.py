"""What went wrong between us and the server, in words of our own: what time can mend, and what it cannot."""

from redis import exceptions as redis_errors

from daws.model.errors import DawsError, UnavailableError, UsageError

_PATIENCE = (
    redis_errors.ConnectionError,
    redis_errors.TimeoutError,
    redis_errors.BusyLoadingError,
    redis_errors.ClusterDownError,
    redis_errors.ClusterError,
    redis_errors.SlotNotCoveredError,
    redis_errors.MasterDownError,
    redis_errors.TryAgainError,
    redis_errors.MovedError,
    redis_errors.AskError,
    OSError,
    TimeoutError,
)
_REFUSED = (redis_errors.AuthenticationError, redis_errors.AuthorizationError, redis_errors.NoPermissionError)
# Answers that come as plain errors, by their first word.
_PASSING_CODES = ("NOREPLICAS", "MISCONF", "UNBLOCKED", "BUSY", "NOMASTERLINK", "LOADING", "CLUSTERDOWN")


class Trouble(UnavailableError):
    """It may pass. `elsewhere`: another server may have become the one that takes writes."""

    def __init__(self, message: str, elsewhere: bool = True) -> None:
        super().__init__(message, retry=True)
        self.elsewhere = elsewhere


def translate(error: Exception, where: str) -> DawsError:
    """One line that names the server and, where there is one, the cure."""
    said = _one_line(error)
    if isinstance(error, _REFUSED) or said.startswith(("NOAUTH", "WRONGPASS", "NOPERM")):
        return UsageError(f"the store at {where} refuses us: {said}; check user name and password in its address")
    if isinstance(error, redis_errors.OutOfMemoryError) or said.startswith(
        ("OOM", "command not allowed when used mem")
    ):
        return Trouble(f"the store at {where} is full: raise its maxmemory, or let sessions end", elsewhere=False)
    if isinstance(error, redis_errors.ReadOnlyError) or said.startswith("READONLY"):
        return Trouble(f"the store at {where} is a replica and takes no writes")
    if "certificate verify failed" in said.lower():
        return UsageError(f"the store at {where} has a certificate that we do not trust: {said}; is ca_file right?")
    if isinstance(error, _PATIENCE) or said.startswith(_PASSING_CODES):
        return Trouble(f"the store at {where} does not answer: {said}")
    return UsageError(
        f"the store at {where} cannot do what is asked: {said}; it has to be Valkey or Redis 6.2 or later"
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
