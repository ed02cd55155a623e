"""A certificate for 127.0.0.1 and further names, made for one run."""

import datetime as dt
import ipaddress
import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_LIFETIME = dt.timedelta(days=30)
_SKEW = dt.timedelta(hours=1)


@dataclass(frozen=True)
class ServerCertificate:
    """The server's TLS settings and the certificate that clients have to trust."""

    context: ssl.SSLContext
    pem: str


def make_certificate(hostnames: Iterable[str] = ()) -> ServerCertificate:
    """Make a key and a self-signed certificate for 127.0.0.1, localhost and the hostnames."""
    # The import costs 100 ms, so only servers with TLS pay it.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "embedded-apiserver")])
    now = dt.datetime.now(dt.UTC)
    dns = [x509.DNSName(hostname) for hostname in ("localhost", *hostnames)]
    names = [*dns, x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now - _SKEW, now + _LIFETIME
    )
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # load_cert_chain reads files only; the folder is private and gone at once.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "server.pem")
        path.write_bytes(private + pem)
        context.load_cert_chain(path)
    return ServerCertificate(context, pem.decode())
