"""TLS for both transports, taken off in one place (AutoMTLS, decision D2).

The host makes a throw-away certificate and names it in PLUGIN_CLIENT_CERT; we make one and name it in the handshake
line. Go's certificates are P-521, for which gRPC's own TLS stack can't ask, so gRPC, too, is served behind this.
`TlsFilter` is sans-IO: bytes of the wire in, plain bytes out, and the other way round; one thread uses it. What must
always hold: no plain byte comes out before the host has shown the key of its certificate.
"""

import datetime as dt
import ssl
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rollouts_gwapi_plugin.errors import HandshakeError

if TYPE_CHECKING:
    from cryptography import x509

# A certificate for the life of one process; Go's lives 30 years, and clocks differ a little.
LIFETIME = dt.timedelta(days=365 * 30)
CLOCK_SKEW = dt.timedelta(seconds=30)
# As much as is taken out of the filter at once: one TLS record.
RECORD = 16_384


@dataclass(frozen=True)
class ServerIdentity:
    """What a listener needs: the context, and the certificate, as DER, for the handshake line."""

    context: ssl.SSLContext
    certificate: bytes

    def make_filter(self) -> "TlsFilter":
        """Return the server's end of a new connection."""
        return TlsFilter(self.context)


def server_identity(client_certificate: str) -> ServerIdentity:
    """Make a certificate of our own, and a context that lets in nobody but the owner of the client's.

    Raises:
        HandshakeError: PLUGIN_CLIENT_CERT is no certificate, or no file can be made to load our own from.

    """
    der, pem = _self_signed()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    # The host connects once; a ticket would only be a second way in.
    context.num_tickets = 0
    try:
        context.load_verify_locations(cadata=client_certificate)
    # A TypeError where a character is none of ASCII.
    except (ssl.SSLError, ValueError, TypeError) as error:
        raise HandshakeError(f"PLUGIN_CLIENT_CERT holds no PEM certificate: {error}") from error
    try:
        # `ssl` reads a key from files only; this one is ours alone and gone at once.
        with tempfile.NamedTemporaryFile(prefix="rollouts-gwapi-key-") as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(file.name)
    except OSError as error:
        raise HandshakeError(f"no temporary file for the TLS key: {error}; set TMPDIR to a writable folder") from error
    return ServerIdentity(context, der)


def _self_signed() -> tuple[bytes, bytes]:
    """Make the certificate that go-plugin makes, but P-256; return it as DER, and key and certificate as PEM."""
    # 100 ms to import, and never needed by the stock controller.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "localhost"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "HashiCorp"),
        ]
    )
    both_roles = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both_roles), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + certificate.public_bytes(serialization.Encoding.PEM)
    return certificate.public_bytes(serialization.Encoding.DER), pem


def _key_usage() -> "x509.KeyUsage":
    from cryptography import x509  # noqa: PLC0415 - as above

    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_agreement=True,
        key_cert_sign=True,
        content_commitment=False,
        data_encipherment=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


class TlsFilter:
    """The server's end of one TLS connection, without a socket."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.established = False
        self.peer_closed = False

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the wire and return the plain bytes in them, none before `established`.

        Raises:
            HandshakeError: The peer has not the right certificate, or does not speak TLS; `data_to_send` has the alert.

        """
        self._incoming.write(data)
        try:
            if not self.established:
                self._tls.do_handshake()
                self.established = True
            return self._read_all()
        except ssl.SSLWantReadError:
            return b""
        except ssl.SSLError as error:
            raise HandshakeError(_refusal(error, established=self.established)) from error

    def _read_all(self) -> bytes:
        plain = bytearray()
        try:
            while chunk := self._tls.read(RECORD):
                plain += chunk
            self.peer_closed = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.peer_closed = True
        return bytes(plain)

    def send(self, data: bytes) -> None:
        """Encrypt plain bytes; `data_to_send` has them."""
        self._tls.write(data)

    def close(self) -> None:
        """Tell the peer that nothing more comes."""
        if self.established:
            try:
                self._tls.unwrap()
            except ssl.SSLError:
                # The peer's own notice is not waited for.
                return

    def data_to_send(self) -> bytes:
        """Return the bytes that the wire must get now."""
        return self._outgoing.read()


def _refusal(error: ssl.SSLError, *, established: bool) -> str:
    if established:
        return f"the TLS connection broke: {error.reason or error}"
    return (
        f"refused a TLS client: {error.reason or error}; only the owner of the certificate in PLUGIN_CLIENT_CERT may"
        " connect"
    )
