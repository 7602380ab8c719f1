"""The checks of a single value of the environment.

Each check raises ValueError with a reason, which never quotes the value. `flaw_of` examines the raw
text, and `expected_of` describes the right values of a variable for the refusal and for the docs.
"""

from __future__ import annotations

import re
import stat
from decimal import Decimal
from ipaddress import ip_address, ip_network
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import psycopg
import redis
from psycopg.conninfo import conninfo_to_dict
from pydantic.fields import FieldInfo

from medproc import addresses

MAX_CHARACTERS = 4096
_LOOPBACK_NAMES = frozenset({"localhost", ".localhost"})
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$&'*+.^_`|~-]+")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_MOST_DIGITS = 18
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SSL_MODES = frozenset({"disable", "allow", "prefer", "require", "verify-ca", "verify-full"})
_WHOLE_OPTIONS = frozenset(
    {
        "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval",
        "keepalives_count", "port", "tcp_user_timeout",
    }
)  # fmt: skip
_REDIS_OPTIONS = frozenset({"client_name", "db", "password", "socket_timeout", "username"})
_OUR_ENTRIES = frozenset({"files", "instance", "logs", "secret-key", "servers", "uploads"})
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,255}")
"""A scope of OAuth 2.0 (RFC 6749, 3.3)."""
_IN_THE_CLEAR = "a secret would travel in the clear"
_ESCAPE = "write special characters of a user or a password as %XX"


SKIPPABLE = ("pass1_5", "pass2", "pass3")
"""The passes that an installation can do without; a test compares the names with `Step`."""


def check_passes(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of passes without repeats. Raises ValueError for any other name."""
    if not set(names) <= set(SKIPPABLE):
        raise ValueError("names a pass that cannot be skipped")
    return tuple(dict.fromkeys(names))


ROLES = ("viewer", "operator", "reviewer", "administrator")
"""The roles of the console; a test compares the names with `Role`."""
_PAIR = re.compile(rf"=(?:{'|'.join(ROLES)})\W")
"""A pair inside a group: something other than a comma separates two pairs."""


def check_issuer(value: str) -> str:
    """Accept the address of an OpenID provider: https, and http for this machine alone."""
    parts = _https_parts(value, "anybody on the way could log in")
    if _has_log_in(parts):
        raise ValueError("holds a log-in")
    if value.endswith("/.well-known/openid-configuration"):
        raise ValueError("names the configuration; the issuer is the part before /.well-known")
    return value


def check_roles(pairs: tuple[str, ...]) -> tuple[str, ...]:
    """Accept pairs of a group and a role. A group can have several roles, in several pairs."""
    for pair in pairs:
        group, separator, role = pair.rpartition("=")
        if not separator or not group.strip() or group != group.strip() or _PAIR.search(group):
            raise ValueError("has an entry that is not group=role")
        if role not in ROLES:
            raise ValueError(f"has an entry whose role is none of {', '.join(ROLES)}")
    return pairs


def check_scopes(scopes: tuple[str, ...]) -> tuple[str, ...]:
    """Accept scopes of OAuth, with openid."""
    if not all(_SCOPE.fullmatch(scope) for scope in scopes):
        raise ValueError("has an entry that is not a scope")
    if "openid" not in scopes:
        raise ValueError("lacks openid")
    return scopes


def check_claim_values(values: tuple[str, ...]) -> tuple[str, ...]:
    """Accept values of a claim, without spaces: a request names several, with spaces between."""
    if not all(_SCOPE.fullmatch(value) for value in values):
        raise ValueError("has an entry with a space, a quote or a letter that is not ASCII")
    return values


def is_loopback(host: str) -> bool:
    """Return whether a host name or an address means this machine."""
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def flaw_of(field: FieldInfo, text: str) -> str | None:
    """Return what is wrong with the raw text of a variable, or None.

    A number has ASCII digits only: Python also reads other digits, underscores, `inf` and `nan`.
    """
    if not text.strip():
        return "is blank"
    if text != text.strip():
        return "begins or ends with a space or a line end"
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`":
        return "is in quotes, which are part of the value"
    if any(not character.isprintable() for character in text):
        return "has a control character, or is not UTF-8"
    if len(text) > MAX_CHARACTERS:
        return "is too long"
    kind = kind_of(field)
    if kind is int and not _WHOLE.fullmatch(text):
        return "is not a whole number"
    if kind is int and len(text.lstrip("+-0")) > _MOST_DIGITS:
        return "is too small" if text.startswith("-") else "is too large"
    if kind in (float, Decimal) and not _NUMBER.fullmatch(text):
        return "is not a number"
    return None


def kind_of(field: FieldInfo) -> Any:
    """Return the type of a variable without `None`."""
    kind = field.annotation
    if get_origin(kind) in (UnionType, Union):
        kind = next(part for part in get_args(kind) if part is not type(None))
    return kind


def expected_of(field: FieldInfo) -> str:
    """Return the right values of a variable in words, with unit and range."""
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    kind = kind_of(field)
    if kind is bool:
        return "true or false"
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    if kind not in (int, float, Decimal):
        return str(extra["hint"])
    unit = f" ({extra['unit']})" if extra.get("unit") else ""
    noun = "whole number" if kind is int else "number"
    return f"{noun} {_range_of(field)}{unit}"


def _range_of(field: FieldInfo) -> str:
    bounds = {
        kind: _plain(value)
        for bound in field.metadata
        for kind in ("ge", "gt", "le")
        if (value := getattr(bound, kind, None)) is not None
    }
    if "ge" in bounds:
        return f"from {bounds['ge']} to {bounds['le']}"
    return f"above {bounds['gt']}, up to {bounds['le']}"


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def check_database_url(value: str) -> str:
    """Accept a URL that names a database, and options that PostgreSQL knows."""
    parts = _split(value, "postgresql", "postgres")
    name = unquote(parts.path.removeprefix("/"))
    if not name or "/" in name:
        raise ValueError("does not end with the name of one database")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "pool" in options:
        raise ValueError("sets a pool; the console has one by itself, and workers must have none")
    try:
        conninfo_to_dict(value)
    except psycopg.Error:
        raise ValueError(
            f"has an option that PostgreSQL does not know, or is not a URL; {_ESCAPE}"
        ) from None
    if options.get("sslmode", "prefer") not in _SSL_MODES:
        raise ValueError("has an unknown sslmode")
    if any(not options[name].isascii() or not options[name].isdigit()
           for name in _WHOLE_OPTIONS & options.keys()):  # fmt: skip
        raise ValueError("has an option that must be a whole number")
    return value


def check_redis_url(value: str) -> str:
    """Accept a URL with which a client of Redis can be made."""
    parts = _split(value, "redis", "rediss", "unix")
    if parts.scheme == "unix":
        if parts.netloc or not parts.path.startswith("/"):
            raise ValueError("does not name the path of a socket, as in unix:///run/valkey.sock")
    elif not parts.hostname:
        raise ValueError("names no host")
    elif not re.fullmatch(r"(/[0-9]{0,4})?", parts.path):
        raise ValueError("does not end with the number of a database")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if any(name not in _REDIS_OPTIONS and not name.startswith("ssl_") for name in options):
        raise ValueError("has an option that medproc does not use")
    try:
        pool = redis.Redis(**addresses.redis_kwargs(value)).connection_pool
        pool.make_connection()
    except (TypeError, ValueError, redis.RedisError):
        raise ValueError(f"has an option with a wrong value, or is not a URL; {_ESCAPE}") from None
    return value


def check_service_url(value: str) -> str:
    """Accept an https URL, and http for this machine alone: a call carries PHI and the key."""
    _https_of_records(value, "GEMINI_API_KEY")
    return value


def check_store_url(value: str) -> str:
    """Accept the https URL of an S3-compatible store, and http for this machine alone."""
    parts = _https_of_records(value, "STORAGE_SECRET_KEY")
    if parts.path not in ("", "/"):
        raise ValueError("has a path; the bucket belongs in STORAGE_BUCKET")
    return value


def _https_of_records(value: str, key_variable: str) -> SplitResult:
    """Return the parts of a URL to which records travel; `key_variable` is the place for a key."""
    parts = _https_parts(value, "the records would travel in the clear")
    if _has_log_in(parts):
        raise ValueError(f"holds a log-in; the key belongs in {key_variable}")
    return parts


def check_collector_url(value: str) -> str:
    """Accept an https URL, and http for this machine alone: a request carries the headers."""
    parts = _https_parts(value, _IN_THE_CLEAR)
    if _has_log_in(parts):
        raise ValueError("holds a log-in, which belongs in OTEL_EXPORTER_OTLP_HEADERS")
    return value


def check_headers(value: str) -> str:
    """Accept headers of HTTP as OpenTelemetry writes them: `name=value`, separated by commas."""
    headers_of(value)
    return value


def headers_of(value: str) -> dict[str, str]:
    """Return the headers by their names. Raises ValueError."""
    found = {}
    for pair in value.split(","):
        name, separator, text = pair.strip().partition("=")
        if not separator or not _HEADER_NAME.fullmatch(name):
            raise ValueError("has an entry that is not name=value")
        text = unquote(text)
        if not text.isascii() or not text.isprintable() or _BAD_ESCAPE.search(pair):
            raise ValueError("has a value with characters that a header does not hold")
        found[name.lower()] = text
    return found


def check_dsn(value: str) -> str:
    """Accept the address of a project of Sentry, with its public key."""
    parts = _https_parts(value, _IN_THE_CLEAR)
    if not parts.username:
        raise ValueError("names no key")
    if parts.password is not None:
        raise ValueError("has a secret key, which trackers no longer use")
    if not re.fullmatch(r"(/[A-Za-z0-9._-]+)*/[0-9]{1,18}", parts.path):
        raise ValueError("does not end with the number of a project")
    return value


def _https_parts(value: str, risk: str) -> SplitResult:
    """Return the parts of an https URL, or of an http URL of this machine, without a query.

    `risk` says what http to another machine would mean.
    """
    parts = _split(value, "http", "https")
    if not parts.hostname:
        raise ValueError("names no host")
    if parts.query or value.endswith("?"):
        raise ValueError("has a query")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError(f"is http for another machine, so {risk}")
    return parts


def _has_log_in(parts: SplitResult) -> bool:
    return parts.username is not None or parts.password is not None


def check_hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Accept host names, addresses, `.domain` for a domain with its subdomains, and `*`."""
    for host in hosts:
        if host != "*" and not _is_host(host.removeprefix(".")):
            raise ValueError("has an entry that is not a host name (no scheme, no port, no path)")
    return hosts


def check_plain_hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Accept host names and addresses, without a wildcard."""
    if not all(_is_host(host) for host in hosts):
        raise ValueError("has an entry that is not a host name (no scheme, no port, no path)")
    return hosts


def check_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    """Accept origins: scheme, host and port, nothing more."""
    for origin in origins:
        if "://" not in origin:
            raise ValueError("has an origin without its scheme")
        parts = _split(origin, "https", "http")
        if not _is_host((parts.hostname or "").removeprefix("*.")) or parts.username is not None:
            raise ValueError("has an origin without a host name")
        if parts.path or parts.query:
            raise ValueError("has an origin with a path")
    return origins


def check_networks(networks: tuple[str, ...]) -> tuple[str, ...]:
    """Accept addresses and networks; a network that holds every address would trust everyone."""
    for network in networks:
        try:
            found = ip_network(network)
        except ValueError:
            raise ValueError("has an entry that is neither an address nor a network") from None
        if found.prefixlen == 0:
            raise ValueError("has a network that holds every address")
    return networks


def check_folder(path: Path) -> Path:
    """Accept an absolute path below /."""
    if not path.is_absolute() or len(path.parts) == 1:
        raise ValueError("is not an absolute path of a folder below /")
    return path


def check_data_dir(path: Path) -> Path:
    """Accept an absolute path of a folder that is new, empty, private or already ours.

    A relative path means another folder in each process. Any other folder, such as /tmp, would
    become private (0700) and break the programs that use it.
    """
    check_folder(path)
    try:
        mode = path.stat().st_mode
        if not stat.S_ISDIR(mode):
            raise ValueError("is not a folder")
        names = {entry.name for entry in path.iterdir()} if mode & 0o077 else set()
    except OSError:
        return path  # The settings report a folder that cannot be made or read.
    if names and not names & _OUR_ENTRIES:
        raise ValueError("is a folder that others use; medproc needs a folder of its own")
    return path


def _split(value: str, *schemes: str) -> SplitResult:
    """Return the parts of a URL whose scheme, host, port and escapes are right."""
    if not value.startswith(tuple(f"{scheme}://" for scheme in schemes)):
        raise ValueError("does not begin with " + " or ".join(f"{name}://" for name in schemes))
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ValueError(f"is not a URL, or has a wrong port; {_ESCAPE}") from None
    if port == 0 or (parts.netloc.endswith(":") and parts.hostname):
        raise ValueError("has a wrong port; a port is from 1 to 65535")
    if "#" in value:
        raise ValueError("has a #, which a URL writes as %23")
    has_odd = not value.isascii() or " " in value or "\\" in value or _BAD_ESCAPE.search(value)
    if has_odd or not unquote(value).isprintable():
        raise ValueError(f"has characters that a URL does not hold; {_ESCAPE}")
    host = unquote(parts.hostname or "").removeprefix("*.")
    if host and not host.startswith("/") and not _is_host(host):
        raise ValueError(f"has a wrong host; {_ESCAPE}")
    return parts


def _is_host(host: str) -> bool:
    if ":" in host:
        try:
            ip_address(host.strip("[]"))
        except ValueError:
            return False
        return True
    return len(host) <= 253 and bool(_HOST.fullmatch(host)) and ".." not in host
