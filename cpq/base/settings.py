"""All settings, read once: flags override the environment, the environment overrides the `.env` file."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from operator import ge, gt, le
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from cpq.base import cortex_config, tenant_folders
from cpq.base.env_file import HOME_DEFAULT, read_variables
from cpq.base.errors import Code, CpqError, nearest
from cpq.base.webhooks import Webhook, read_secrets, read_webhooks

_ABOUT_DEALS = ("quotes", "deals", "agreements", "approvals", "insight")
TOOLSETS = (*_ABOUT_DEALS, "equipment", "past_quotes", "docs", "context", "web")
"""All toolsets, in the order a client sees them."""

GUIDE = Path(__file__).parent.parent / "guide"
"""The product's own documentation, as Markdown."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Host names that only this machine can reach."""


def _toolsets(text: str) -> str:
    for name in (part.strip() for part in text.split(",")):
        if name not in (*TOOLSETS, "all"):
            raise ValueError(f"{name!r} is not a toolset; known: {', '.join(TOOLSETS)}, all")
    return text


def _webhooks(text: str) -> str:
    read_webhooks(text)
    return text


def _address(text: str) -> str:
    """The address of the console or of the sign-in provider."""
    parts = urlsplit(text)
    is_local = parts.hostname in LOOPBACK
    if not parts.hostname or parts.scheme not in (("http", "https") if is_local else ("https",)):
        raise ValueError("must start with https://; http:// is allowed only for this machine")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("must not contain a user, query or fragment")
    return text.rstrip("/")


def _secrets(text: str) -> str:
    read_secrets(text)
    return text


def _hosts(text: str) -> str:
    for part in filter(None, map(str.strip, text.split(","))):
        if not re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?", part):
            raise ValueError(f"{part!r} is not a host such as wiki.local or 10.0.0.5:8080")
    return text


class SettingError(ValueError):
    """A value that a setting does not allow; the text names the variable and never holds a secret."""

    def __init__(self, variable: str, message: str) -> None:
        super().__init__(message)
        self.variable = variable


def setting(
    default: Any,
    *,
    variable: str,
    description: str,
    check: Callable[[str], str] | None = None,
    among: tuple[str, ...] = (),
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
) -> Any:
    """A field of `Settings`: its variable, what it means, and what is allowed."""
    bounds = {"at least": at_least, "at most": at_most, "more than": above}
    known: dict[str, Any] = {"variable": variable, "description": description, "check": check, "among": among}
    return field(default=default, metadata={**known, "bounds": bounds})


@dataclass(frozen=True)
class Settings:
    """The settings of a process, each with its variable; the descriptions fill the table of the guide.

    A plain class: every command reads the settings first, and pydantic alone takes a tenth of a second to import.
    """

    home: Path = setting(
        HOME_DEFAULT, variable="CPQ_HOME", description="folder for the embedded database, PDFs and indexes"
    )
    tenant: str = setting(
        tenant_folders.MAIN_TENANT,
        check=tenant_folders.checked_id,
        variable="CPQ_TENANT",
        description="the tenant of commands, of `cpq serve` over stdio, and of callers with the shared token",
    )
    tenants_loaded_max: int = setting(
        100,
        at_least=1,
        at_most=100_000,
        variable="CPQ_TENANTS_LOADED_MAX",
        description="of how many tenants beside `main` a server holds policies, settings and indexes in memory",
    )
    database_url: str = setting(
        "",
        variable="CPQ_DATABASE_URL",
        description="`postgresql+psycopg://…` for many workers; an SQLite file otherwise",
    )
    database_connections_max: int = setting(
        70,
        at_least=2,
        at_most=1000,
        variable="CPQ_DATABASE_CONNECTIONS_MAX",
        description="maximum connections of one process to PostgreSQL; a third of them is for reads",
    )
    database_answer_seconds: float = setting(
        15,
        at_least=1,
        at_most=600,
        variable="CPQ_DATABASE_ANSWER_SECONDS",
        description="seconds that PostgreSQL may take for one statement or commit; then its connection is given up",
    )
    database_pooler: Literal["none", "transaction"] = setting(
        among=("none", "transaction"),
        default="none",
        variable="CPQ_DATABASE_POOLER",
        description="`transaction` behind PgBouncer in transaction mode: session settings come with each transaction",
    )
    database_prepare_threshold: int = setting(
        5,
        at_least=0,
        at_most=1000,
        variable="CPQ_DATABASE_PREPARE_THRESHOLD",
        description="after how many uses a statement is prepared; 0 prepares none, as PgBouncer before 1.21 needs it",
    )
    audit_key_file: Path | None = setting(
        None,
        variable="CPQ_AUDIT_KEY_FILE",
        description="the key that signs the audit record: a file outside the database that only you can read",
    )
    audit_key_command: str = setting(
        "",
        variable="CPQ_AUDIT_KEY_COMMAND",
        description="a command that prints that key, for example of a vault; it runs without a shell",
    )
    policies_dir: Path | None = setting(None, variable="CPQ_POLICIES_DIR", description="your own policies")
    policies_adopt: Literal["auto", "manual"] = setting(
        among=("auto", "manual"),
        default="auto",
        variable="CPQ_POLICIES_ADOPT",
        description="`auto`: changed policies are used within a second; `manual`: only after `cpq policy adopt`",
    )
    templates_dir: Path | None = setting(None, variable="CPQ_TEMPLATES_DIR", description="your own PDF templates")
    docs_dir: Path | None = setting(
        None, variable="CPQ_DOCS_DIR", description="root folder of the docs toolset; without one it has this guide"
    )
    docs_dirs: str = setting(
        check=tenant_folders.checked,
        default="",
        variable="CPQ_DOCS_DIRS",
        description="root folders of the docs toolset for other tenants, `acme=/srv/acme/docs`, as a comma list; "
        "a tenant without one has no pages",
    )
    chunks_dir: Path | None = setting(
        None,
        variable="CPQ_CHUNKS_DIR",
        description="root folder of the context toolset; else `CORTEX_CHUNKS_DIR`, or what `.cortex/config.yml` says",
    )
    search_score_min: float = setting(
        0.0,
        at_least=0,
        at_most=1,
        variable="CPQ_SEARCH_SCORE_MIN",
        description="docs and context leave out hits below this score",
    )
    toolsets: str = setting(
        check=_toolsets,
        default="quotes",
        variable="CPQ_TOOLSETS",
        description=f"comma list of: {', '.join(TOOLSETS)}; or `all`",
    )
    key_retention_days: int = setting(
        30, at_least=1, variable="CPQ_KEY_RETENTION_DAYS", description="how many days an idempotency key is kept"
    )
    query_retention_days: int = setting(
        90,
        at_least=0,
        at_most=3650,
        variable="CPQ_QUERY_RETENTION_DAYS",
        description="how many days the queries of searches are kept for tuning, at most 100,000 of them; 0 keeps none",
    )
    quote_lines_max: int = setting(
        500,
        at_least=1,
        at_most=10_000,
        variable="CPQ_QUOTE_LINES_MAX",
        description="maximum lines of a quote created or changed by a tool",
    )
    quote_text_max: int = setting(
        250_000,
        at_least=1_000,
        at_most=10_000_000,
        variable="CPQ_QUOTE_TEXT_MAX",
        description="maximum characters of all notes and attributes of a quote together, by a tool",
    )
    pdf_lines_max: int = setting(
        5_000,
        at_least=1,
        at_most=10_000,
        variable="CPQ_PDF_LINES_MAX",
        description="maximum lines of a quote in a PDF; `executive_summary` has no limit",
    )
    pdf_timeout_seconds: float = setting(
        90, above=0, at_most=3600, variable="CPQ_PDF_TIMEOUT", description="seconds for one PDF, then `TIMEOUT`"
    )
    caller_mb_per_day: int = setting(
        5_000,
        at_least=0,
        variable="CPQ_CALLER_MB_PER_DAY",
        description="how many MB a caller may store in a day of UTC, then `RATE_LIMITED`; 0 means no limit",
    )
    hidden_changes_per_quote: int = setting(
        25,
        at_least=0,
        variable="CPQ_HIDDEN_CHANGES_PER_QUOTE",
        description="how often in a day of UTC it may change for a caller who may not see margins whether costs or "
        "margins of a quote need an approval, then `RATE_LIMITED`; 0 means no limit",
    )
    hidden_changes_per_day: int = setting(
        1_000,
        at_least=0,
        variable="CPQ_HIDDEN_CHANGES_PER_DAY",
        description="the same from answer to answer, over all quotes that the caller prices",
    )
    disk_free_mb_min: int = setting(
        200,
        at_least=0,
        variable="CPQ_DISK_FREE_MB_MIN",
        description="with fewer free MB than this on the disk of `CPQ_HOME` callers can only read; 0 means no limit",
    )
    webhooks: str = setting(
        check=_webhooks,
        default="",
        variable="CPQ_WEBHOOKS",
        description="comma list of addresses that receive every event, `https://…` or `name=https://…`",
    )
    webhook_secret: str = setting(
        check=_secrets,
        default="",
        variable="CPQ_WEBHOOK_SECRET",
        description="signs events: `whsec_` and base64 of 24 to 64 bytes; a comma list while you change it",
    )
    web_allowed_hosts: str = setting(
        check=_hosts,
        default="",
        variable="CPQ_WEB_ALLOWED_HOSTS",
        description="comma list of private hosts that may be fetched, `wiki.local` or `10.0.0.5:8080`",
    )
    web_pause_seconds: float = setting(
        1,
        at_least=0,
        at_most=60,
        variable="CPQ_WEB_PAUSE_SECONDS",
        description="pause between two requests to the same web site",
    )
    web_fresh_hours: float = setting(
        24,
        at_least=0,
        at_most=8760,
        variable="CPQ_WEB_FRESH_HOURS",
        description="how long `answer` uses a page before it fetches the page again",
    )
    web_page_bytes_max: int = setting(
        10_000_000,
        at_least=1_000,
        at_most=100_000_000,
        variable="CPQ_WEB_PAGE_BYTES_MAX",
        description="larger pages are refused",
    )
    transport: Literal["stdio", "streamable-http"] = setting(
        among=("stdio", "streamable-http"),
        default="stdio",
        variable="MCP_TRANSPORT",
        description="`stdio` or `streamable-http`",
    )
    stateless: bool = setting(
        False,
        variable="MCP_STATELESS",
        description="`true` behind a load balancer: clients of older protocol revisions get no session, and any server "
        "answers any of their calls",
    )
    workers: int = setting(
        1,
        at_least=1,
        at_most=64,
        variable="MCP_WORKERS",
        description="processes that serve HTTP together; with more than one, no client gets a session. SIGHUP replaces "
        "them one after the other",
    )
    host: str = setting("127.0.0.1", variable="MCP_HOST", description="HTTP bind address")
    port: int = setting(8765, at_least=0, at_most=65535, variable="MCP_PORT", description="HTTP port")
    allowed_hosts: str = setting(
        "",
        variable="MCP_ALLOWED_HOSTS",
        description="comma list of further Host names clients may use, `cpq.example.com` or with `:port`",
    )
    console_url: str = setting(
        check=_address,
        default="",
        variable="CPQ_CONSOLE_URL",
        description="the server's address for browsers, `https://cpq.example.com`; else its own address",
    )
    console_idle_minutes: int = setting(
        30,
        at_least=1,
        at_most=720,
        variable="CPQ_CONSOLE_IDLE_MINUTES",
        description="minutes without activity after which a person is signed out",
    )
    oidc_issuer: str = setting(
        check=_address,
        default="",
        variable="CPQ_OIDC_ISSUER",
        description="your OpenID Connect provider, to sign people in to the console",
    )
    oidc_client_id: str = setting(
        "", variable="CPQ_OIDC_CLIENT_ID", description="the console's client id at the provider"
    )
    oidc_client_secret: str = setting(
        "", variable="CPQ_OIDC_CLIENT_SECRET", description="the console's client secret at the provider"
    )
    oidc_claim: str = setting(
        "email",
        variable="CPQ_OIDC_CLAIM",
        description="the claim that holds a person's name as in `cpq token`; addresses in lower case",
    )
    oidc_trust_email: bool = setting(
        False,
        variable="CPQ_OIDC_TRUST_EMAIL",
        description="`true` for a provider that sends no `email_verified` and gives nobody another person's address",
    )
    auth_token: str = setting(
        "",
        variable="MCP_AUTH_TOKEN",
        description="one shared bearer token (caller `agent:mcp`), in addition to those of `cpq token`",
    )
    tool_timeout_seconds: float = setting(
        120,
        above=0,
        at_most=3600,
        variable="MCP_TOOL_TIMEOUT",
        description="seconds for one tool call, then `TIMEOUT`",
    )
    response_token_budget: int = setting(
        30_000,
        at_least=1000,
        variable="MCP_RESPONSE_TOKEN_BUDGET",
        description="maximum tokens of a long text answer",
    )
    rate_limit_per_minute: int = setting(
        600,
        at_least=0,
        variable="MCP_RATE_LIMIT_PER_MINUTE",
        description="calls per caller (token bucket); 0 means no limit",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        among=("DEBUG", "INFO", "WARNING", "ERROR"),
        default="INFO",
        variable="MCP_LOG_LEVEL",
        description="level of the log, which goes to stderr only",
    )
    log_format: Literal["text", "json"] = setting(
        among=("text", "json"), default="text", variable="MCP_LOG_FORMAT", description="`json` for JSON lines"
    )

    def __post_init__(self) -> None:
        """Read each value from text where it is text; ValueError names the variable and what is wrong."""
        for one in fields(self):
            object.__setattr__(self, one.name, _value(one, getattr(self, one.name)))

    def model_copy(self, *, update: Mapping[str, Any]) -> Settings:
        """The settings with some of them changed."""
        return replace(self, **update)

    @property
    def serves_deals(self) -> bool:
        """Whether a server of these settings has tools about deals, or the console."""
        return self.transport != "stdio" or not set(_ABOUT_DEALS).isdisjoint(self.enabled_toolsets)

    @property
    def enabled_toolsets(self) -> tuple[str, ...]:
        wanted = {part.strip() for part in self.toolsets.split(",")}
        # `all` leaves out a toolset whose folder is not set; a toolset that is named is always enabled.
        roots = {"docs": Path() if self.has_own_pages else None, "context": self.chunks_dir}
        everything = {name for name in TOOLSETS if roots.get(name, Path()) is not None} if "all" in wanted else set()
        return tuple(name for name in TOOLSETS if name in wanted | everything)

    @property
    def has_own_pages(self) -> bool:
        """Whether a tenant has a folder of pages for the docs toolset."""
        return bool(self.docs_dir or self.docs_dirs)

    @property
    def docs_roots(self) -> dict[str, Path]:
        """The root folder of the docs toolset of each tenant that has one; our guide where the main one has none."""
        return {tenant_folders.MAIN_TENANT: self.docs_dir or GUIDE} | tenant_folders.read_tenant_folders(self.docs_dirs)

    @property
    def webhook_list(self) -> tuple[Webhook, ...]:
        return read_webhooks(self.webhooks)

    @property
    def webhook_keys(self) -> tuple[bytes, ...]:
        return read_secrets(self.webhook_secret)

    @property
    def is_private(self) -> bool:
        """Whether only this machine can reach the server: its address is loopback, and it has no other name."""
        has_proxy = bool(self.console_url) and urlsplit(self.console_url).hostname not in LOOPBACK
        return self.host in LOOPBACK and not self.allowed_hosts and not has_proxy

    @property
    def console_address(self) -> str:
        """The address of the console for browsers."""
        name = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - compared, not bound
        bracketed = f"[{name}]" if ":" in name else name
        return self.console_url or f"http://{bracketed}:{self.port}"

    @property
    def is_sqlite(self) -> bool:
        return not self.database_url or self.database_url.startswith("sqlite")

    @property
    def sqlite_path(self) -> Path:
        if self.database_url:
            return Path(self.database_url.partition(":///")[2])
        return self.home / "quotewright.db"

    @property
    def database_name(self) -> str:
        """The database's name for people: the file, or the address without its password."""
        if self.is_sqlite:
            return str(self.sqlite_path)
        # Up to the last @, because an address that cannot be parsed may hold a password anywhere before it.
        without_password = re.sub(r"(?s)^([\w+.-]+:/+)?([^:/@]*):.*@", r"\1\2:***@", self.database_url)
        return re.sub(r"(?i)(password=)[^&]*", r"\1***", without_password)


def read_settings(
    environ: Mapping[str, str] | None = None, *, env_file: Path | None = None, home: Path | None = None, **flags: Any
) -> Settings:
    """The settings of this process: flags override the environment, which overrides the operator's file.

    A flag of None and an empty variable count as not given.
    """
    variables = read_variables(os.environ if environ is None else environ, env_file, home)
    flags["home"] = home
    known = {one.metadata["variable"]: one.name for one in fields(Settings)}
    given: dict[str, Any] = {name: variables[variable] for variable, name in known.items() if variables.get(variable)}
    cortex = cortex_config.read(variables, Path())
    if "chunks_dir" not in given and cortex.chunks_dir:
        given["chunks_dir"] = cortex.chunks_dir
    given |= {name: value for name, value in flags.items() if value is not None}
    try:
        settings = Settings(**given)
    except SettingError as error:
        raise CpqError(Code.VALIDATION_ERROR, str(error), field=error.variable) from None
    if cortex.refused and "context" in settings.enabled_toolsets:
        name, reason = cortex.refused
        raise CpqError(
            Code.VALIDATION_ERROR,
            f"{reason}, but texts are embedded in this process, in {cortex_config.DIMENSIONS} dimensions.",
            field=name,
            hint=f"Remove it from {name}, or leave the toolset context out of CPQ_TOOLSETS.",
        )
    if settings.webhooks and not settings.webhook_secret:
        raise CpqError(
            Code.VALIDATION_ERROR,
            "CPQ_WEBHOOKS is set, but CPQ_WEBHOOK_SECRET is not: a receiver could not verify our events.",
            field="CPQ_WEBHOOK_SECRET",
            hint="Create one: echo whsec_$(openssl rand -base64 32)",
        )
    if settings.oidc_issuer and not settings.oidc_client_id:
        raise CpqError(
            Code.VALIDATION_ERROR,
            "CPQ_OIDC_ISSUER is set, but CPQ_OIDC_CLIENT_ID is not.",
            field="CPQ_OIDC_CLIENT_ID",
            hint="Register the console with the provider; it gives you a client id and a secret.",
        )
    return settings


TOKEN_VARIABLE = "CPQ_TOKEN"  # noqa: S105 - its name
"""The token of the person who types a command. Only the shell has it: a file of settings is no proof of a person."""


def strange_variables(*, env_file: Path | None = None, home: Path | None = None) -> list[str]:
    """A warning for each unknown `CPQ_*` variable, with the closest known name, and for a file that has no effect."""
    known = {str(one.metadata["variable"]) for one in fields(Settings)}
    known |= {TOKEN_VARIABLE} & set(os.environ)
    given = read_variables(os.environ, env_file, home)
    strange = sorted(name for name in given if name.startswith("CPQ_") and name not in known)
    near = {name: nearest(name, known) for name in strange}
    warnings = [
        f"{name} is not a setting and has no effect" + (f"; did you mean {near[name][0]}?" if near[name] else "")
        for name in strange
    ]
    cortex = cortex_config.read(given, Path())
    return [*warnings, cortex.warning] if cortex.warning and not given.get("CPQ_CHUNKS_DIR") else warnings


def shipped(folder: str) -> Path:
    """A folder that ships with the product: next to the packages in a checkout, inside them in a wheel."""
    package = Path(__file__).parent.parent
    outside, inside = package.parent / folder, package / "_shipped" / folder
    return inside if inside.is_dir() else outside


def _value(one: Field[Any], value: object) -> object:
    """The value of a setting in its type; SettingError when it is not allowed."""
    variable, check, among = one.metadata["variable"], one.metadata["check"], one.metadata["among"]
    try:
        made = _READERS.get(str(one.type), _same)(value)
        if among and made not in among:
            raise ValueError(f"is one of {', '.join(among)}")
        for words, bound in one.metadata["bounds"].items():
            if bound is not None and not _IS_WITHIN[words](made, bound):
                raise ValueError(f"must be {words} {bound}")
        return check(made) if check and made else made
    except ValueError as error:
        raise SettingError(variable, f"{variable}: {error}") from None


def _whole(value: object) -> int:
    if isinstance(value, int | str) and re.fullmatch(r"[+-]?[0-9]{1,18}", str(value).strip()):
        return int(value)
    raise ValueError(f"{value!r} is not a whole number")


def _number(value: object) -> float:
    try:
        made = float(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is not a number") from None
    if not math.isfinite(made):
        raise ValueError(f"{value!r} is not a number")
    return made


def _switch(value: object) -> bool:
    word = str(value).strip().lower()
    if word not in _SWITCHES:
        raise ValueError(f"{value!r} is neither true nor false")
    return _SWITCHES[word]


def _folder(value: object) -> object:
    return Path(value) if isinstance(value, str) else value


def _same(value: object) -> object:
    return value


_READERS: dict[str, Callable[[object], object]] = {
    "int": _whole,
    "float": _number,
    "bool": _switch,
    "Path": _folder,
    "Path | None": _folder,
}
_IS_WITHIN: dict[str, Callable[[Any, Any], bool]] = {"at least": ge, "at most": le, "more than": gt}
_SWITCHES = {**dict.fromkeys(("true", "1", "yes", "on"), True), **dict.fromkeys(("false", "0", "no", "off"), False)}
