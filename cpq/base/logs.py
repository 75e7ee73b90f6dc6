"""Log lines to stderr, as text or JSON: one line per record, for any input, and never a secret."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Literal

from cpq.base import traces
from cpq.base.text import shown_on_one_line

_SECRET = re.compile(r"(?i)(bearer\s+|qw_tok-[a-z0-9]+_|whsec_|password[\"'=:\s]+|secret[\"'=:\s]+)[^\s\"',}]+")
_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def configure(level: str, style: Literal["text", "json"]) -> None:
    """Route all logging of the process through one handler on stderr; stdout belongs to the protocol."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if style == "json" else _TextLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(True)
    for noisy in ("mcp", "uvicorn.access", "httpx2", "alembic"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLevelName(level)))


class Sparse(logging.Filter):
    """Lets only some records of a logger pass each minute, and counts the others in the next one that passes.

    For what strangers can cause: a flood of refused requests must not fill the disk.
    """

    def __init__(self, per_minute: int) -> None:
        super().__init__()
        self._per_minute = per_minute
        self._minute = 0
        self._passed = self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        minute = int(record.created // 60)
        if minute != self._minute:
            self._minute, self._passed = minute, 0
        if self._passed >= self._per_minute:
            self._left_out += 1
            return False
        self._passed += 1
        if self._left_out:
            record.left_out, self._left_out = self._left_out, 0
        return True


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(
            {
                "ts": _moment(record),
                "level": record.levelname,
                "event": _safe(record.getMessage()),
                "logger": record.name,
                **_extras(record),
                **({"traceback": _hide(self.formatException(record.exc_info))} if record.exc_info else {}),
            },
            ensure_ascii=True,
            default=str,
        )


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        extras = "".join(f" {name}={value}" for name, value in _extras(record).items())
        line = f"{_moment(record)} {record.levelname:7} {record.name} {_safe(record.getMessage())}{extras}"
        return f"{line}\n{_hide(self.formatException(record.exc_info))}" if record.exc_info else line


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _extras(record: logging.LogRecord) -> dict[str, object]:
    given = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    if (trace := traces.current_id()) is not None:
        given["otel_trace_id"] = trace
    return {name: _safe(value) if isinstance(value, str) else value for name, value in given.items()}


def _safe(text: str) -> str:
    """The text without secrets and without characters that start a new line or change the reading direction."""
    return shown_on_one_line(_hide(text))


def _hide(text: str) -> str:
    return _SECRET.sub(r"\1[hidden]", text)
