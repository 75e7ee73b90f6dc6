"""The key that signs the audit record. It is kept outside the database, in a file or behind a command."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import shlex
import subprocess
from pathlib import Path

from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings
from cpq.base.trusted_file import trusted_text

FILE, COMMAND = "CPQ_AUDIT_KEY_FILE", "CPQ_AUDIT_KEY_COMMAND"
COMMAND_SECONDS_MAX = 30
KEY_BYTES_MIN = 32
_HOW = "It has a line for each key, base64 of at least 32 bytes: openssl rand -base64 32"


class AuditKey:
    """Signs with the newest key, and knows the signatures of the older ones."""

    def __init__(self, *keys: bytes) -> None:
        assert keys, "there is a key to sign with"
        self._keys = keys

    def sign(self, kind: str, content: str) -> str:
        """The HMAC-SHA256 of a text; `kind` keeps a signature of one thing from counting for another."""
        return _signature(self._keys[0], kind, content)

    def has_signed(self, kind: str, content: str, signature: str) -> bool:
        given = signature.encode(errors="replace")
        return any(hmac.compare_digest(_signature(key, kind, content).encode(), given) for key in self._keys)


def read_audit_key(settings: Settings) -> AuditKey | None:
    """The key of this installation, None when it has none; VALIDATION_ERROR when it cannot be had."""
    text = audit_key_text(settings)
    return None if text is None else _parsed(FILE if settings.audit_key_file else COMMAND, text)


def audit_key_text(settings: Settings) -> str | None:
    """What the file or the command gives: a secret."""
    if settings.audit_key_file and settings.audit_key_command:
        raise _refused(COMMAND, f"{FILE} and {COMMAND} are both set.", "Unset one of them.")
    if settings.audit_key_file:
        return _file_text(settings.audit_key_file)
    return _output(settings.audit_key_command) if settings.audit_key_command else None


def _file_text(path: Path) -> str:
    try:
        return trusted_text(path, "key file", is_secret=True)
    except OSError:
        raise _refused(FILE, f"There is no key file {path}.", _HOW) from None


def _output(command: str) -> str:
    try:
        ran = subprocess.run(  # noqa: S603 - the operator's own command, without a shell
            shlex.split(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_SECONDS_MAX, check=True
        )
    except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
        code = getattr(error, "returncode", None)
        reason = type(error).__name__ if code is None else f"exit code {code}"
        raise _refused(COMMAND, f"The command of {COMMAND} failed ({reason}).", "Run it by hand.") from None
    return ran.stdout.decode(errors="replace")


def _parsed(variable: str, text: str) -> AuditKey:
    """The keys of the lines, the newest first. A refusal never holds a key."""
    keys = []
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            keys.append(base64.b64decode(line, validate=True))
        except (binascii.Error, ValueError):
            keys.append(b"")
    if not keys or min(map(len, keys)) < KEY_BYTES_MIN:
        raise _refused(variable, f"{variable} gives no key that can sign the audit record.", _HOW)
    return AuditKey(*keys)


def _signature(key: bytes, kind: str, content: str) -> str:
    return hmac.new(key, f"{kind}\0{content}".encode(errors="surrogatepass"), hashlib.sha256).hexdigest()


def _refused(variable: str, message: str, hint: str) -> CpqError:
    return CpqError(Code.VALIDATION_ERROR, message, field=variable, hint=hint)
