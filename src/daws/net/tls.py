"""Errors of a handshake, of TLS or of daws, in words for people."""

import errno
import ssl

from daws.model.errors import PeerError

_ALERT = "_ALERT_"
_NOT_TLS = frozenset(["HTTP_REQUEST", "WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"])
_GONE = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
_HUNG_UP = (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED, errno.ENOTCONN)


def is_final(error: BaseException) -> bool:
    """Would a retry fail in the same way? Not if the peer just closed the connection."""
    return isinstance(error, (ssl.SSLError, PeerError)) and not isinstance(error, _GONE)


def reason_of(error: BaseException) -> str:
    """The reason of an error in one line, with "it" for the peer."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not one of this cluster's: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and not isinstance(error, _GONE):
        return _words(error.reason or "")
    if isinstance(error, (*_GONE, ConnectionResetError)) or getattr(error, "errno", None) in _HUNG_UP:
        return "it closed the connection during the handshake; one of the sides may have the keys of another cluster"
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _words(reason: str) -> str:
    """A reason of OpenSSL, which is in capitals joined by underscores, as a sentence."""
    if _ALERT in reason:
        alert = reason.partition(_ALERT)[2].replace("_", " ").lower()
        return f"it refuses the certificate of this side: {alert}"
    if reason in _NOT_TLS:
        return "it does not speak TLS"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "it has no certificate"
    return f"TLS failed: {reason.replace('_', ' ').lower() or 'the connection broke'}"
