"""The cluster's certificate authority, the API server's certificate, the administrator's, and the token key.

Written once into a folder. They have the extensions that strict verification asks for (key identifiers, key usage), as
kubeadm's have: a client that trusts `ca.crt` needs nothing loosened.
"""

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from e2e.cluster.settings import API_ADDRESS, NODE_ADDRESS

_LIFETIME = dt.timedelta(days=30)
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SERVER_ADDRESSES = ("127.0.0.1", API_ADDRESS, NODE_ADDRESS)


def write_all(folder: Path) -> None:
    """Write ca, apiserver, admin (`.crt`, `.key`) and the service accounts' sa.key and sa.pub."""
    folder.mkdir(parents=True, exist_ok=True)
    authority_key = _new_key(folder / "ca.key")
    name = _name("kubernetes")
    builder = _builder(name, authority_key, issuer=name, issuer_key=authority_key)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    authority = builder.add_extension(_usage(authority=True), critical=True).sign(authority_key, hashes.SHA256())
    _write(folder / "ca.crt", authority)
    server = x509.SubjectAlternativeName(
        [
            *(x509.DNSName(host) for host in _SERVER_NAMES),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in _SERVER_ADDRESSES),
        ]
    )
    _issue(folder, "apiserver", _name("kube-apiserver"), (authority, authority_key), names=server)
    _issue(folder, "admin", _name("kubernetes-admin", "system:masters"), (authority, authority_key))
    tokens = _new_key(folder / "sa.key")
    (folder / "sa.pub").write_bytes(
        tokens.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def _issue(
    folder: Path,
    stem: str,
    name: x509.Name,
    authority: tuple[x509.Certificate, ec.EllipticCurvePrivateKey],
    names: x509.SubjectAlternativeName | None = None,
) -> None:
    key = _new_key(folder / f"{stem}.key")
    builder = _builder(name, key, issuer=authority[0].subject, issuer_key=authority[1])
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(authority=False), critical=True)
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH if names is None else ExtendedKeyUsageOID.SERVER_AUTH
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    _write(folder / f"{stem}.crt", builder.sign(authority[1], hashes.SHA256()))


def _builder(
    name: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str, organization: str = "") -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organization:
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def _new_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    path.touch(mode=0o600)
    # Kubernetes reads EC keys of service accounts in the traditional form only.
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return key


def _write(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
