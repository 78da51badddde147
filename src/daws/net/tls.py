"""What went wrong in TLS, in words."""

import ssl

_ALERT = "_ALERT_"


def reason_of(error: BaseException) -> str:
    """One line about an error of a connection, TLS or not."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not one of this cluster's: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return _words(error.reason or "")
    if isinstance(error, ConnectionResetError):
        return "it hung up before it had said who it is; its keys may be those of another cluster"
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _words(reason: str) -> str:
    if _ALERT in reason:
        alert = reason.partition(_ALERT)[2].replace("_", " ").lower()
        return f"it refuses the certificate of this side: {alert}"
    if reason in ("HTTP_REQUEST", "WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"):
        return "it does not speak TLS"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "it has no certificate"
    return f"TLS failed: {reason.replace('_', ' ').lower() or 'the connection broke'}"
