"""The keys of a cluster: an authority of its own, and certificates for nodes and for clients. All that needs
`cryptography` is here; TLS itself is Python's.

A certificate says the cluster (O) and the role (OU). Clients' are good for dialling alone, so that nobody can pass for
a node with one.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from daws.model.errors import UnavailableError

if TYPE_CHECKING:
    from cryptography import x509

DAYS = 3650
EARLIER = timedelta(hours=1)
"""Clocks of machines differ: certificates begin a little before they are made."""


class Pair(NamedTuple):
    """A private key and its certificate, as PEM."""

    key: bytes
    certificate: bytes


def make_authority(cluster: str, days: float = DAYS) -> Pair:
    return _make(cluster, "authority", days, None)


def issue(authority: Pair, cluster: str, role: str, days: float = DAYS) -> Pair:
    """A key for a role, with a certificate by the authority."""
    return _make(cluster, role, days, authority)


def _make(cluster: str, role: str, days: float, authority: Pair | None) -> Pair:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID
    except ImportError as error:
        raise UnavailableError(
            "making keys needs the package cryptography: pip install 'daws[cluster]'", retry=False
        ) from error

    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(cluster, role)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER + min(timedelta(0), timedelta(days=days)))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(authority is None, 0 if authority is None else None), critical=True)
        .add_extension(_usage(signs=authority is None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if authority is None:
        signer, issuer = key, subject
    else:
        loaded = serialization.load_pem_private_key(authority.key, None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signer, issuer = loaded, x509.load_pem_x509_certificate(authority.certificate).subject
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if role != "client":
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
    )
    certificate = builder.issuer_name(issuer).sign(signer, hashes.SHA256())
    return Pair(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        certificate.public_bytes(serialization.Encoding.PEM),
    )


def _name(cluster: str, role: str) -> "x509.Name":
    from cryptography import x509

    return x509.Name(
        [
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, cluster),
            x509.NameAttribute(x509.NameOID.ORGANIZATIONAL_UNIT_NAME, role),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, f"daws {role}"),
        ]
    )


def _usage(signs: bool) -> "x509.KeyUsage":
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
