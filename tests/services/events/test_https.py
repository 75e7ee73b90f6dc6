"""Webhooks over TLS: a real certificate, an unknown one, one for another host, and a receiver that speaks no TLS."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cpq.base.settings import Settings
from cpq.services.events import delivery
from tests.support.engine import Tools, open_app
from tests.support.quotes import sent_quote
from tests.support.webhook_receiver import SECRET, Receiver


def certificate(folder: Path, host: x509.GeneralName) -> tuple[Path, ssl.SSLContext]:
    """A certificate that vouches for itself: the file to trust it by, and what a server needs."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook receiver")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([host]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted, secret = folder / "trusted.pem", folder / "secret.pem"
    trusted.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain) + trusted.read_bytes()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(secret)
    return trusted, context


@pytest.mark.parametrize(
    ("host", "is_trusted", "speaks_tls", "said"),
    [
        ("127.0.0.1", True, True, None),
        ("127.0.0.1", False, True, "SSLCertVerificationError"),
        ("127.0.0.2", True, True, "SSLCertVerificationError"),
        ("127.0.0.1", True, False, "SSLError"),
    ],
)
def test_an_event_goes_over_https_only_to_whom_the_certificate_names(
    store: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    is_trusted: bool,
    speaks_tls: bool,
    said: str | None,
):
    trusted, context = certificate(tmp_path, x509.IPAddress(ip_address(host)))
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    with Receiver(tls=context if speaks_tls else None) as receiver:
        url = receiver.url.replace("http://", "https://")
        app = open_app(store.model_copy(update={"webhooks": f"crm={url}", "webhook_secret": SECRET}))
        sent_quote(Tools(app))
        [attempt] = delivery.deliver_due(app)
        app.close()
    if said is None:
        assert attempt.answer.startswith("200")
        assert [one.event["type"] for one in receiver.accepted] == ["quote.sent"]
        assert receiver.accepted[0].is_signed()
    else:
        assert attempt.answer.startswith(said)
        assert receiver.received == []
