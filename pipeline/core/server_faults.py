"""The reasons for which PostgreSQL, Redis or the file store refuses, each with a code and advice.

`fault_of` is the one function that names the reason of an error. Health, overview, commands, logs
and the 503 page show its line. No line contains a password, a statement or a value.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.db import Error as DjangoDatabaseError
from redis import exceptions as redis_errors

from medproc import db_pool, embedded
from pipeline.core.errors import ErrorCode, PipelineError


class ServerFault(StrEnum):
    """Why a server refuses; the runbook has an entry for each code."""

    POSTGRES_AWAY = "POSTGRES_AWAY"
    POSTGRES_STARTING = "POSTGRES_STARTING"
    POSTGRES_READ_ONLY = "POSTGRES_READ_ONLY"
    POSTGRES_CONNECTIONS = "POSTGRES_CONNECTIONS"
    POSTGRES_DISK_FULL = "POSTGRES_DISK_FULL"
    POSTGRES_LOGIN = "POSTGRES_LOGIN"
    POSTGRES_FAILING = "POSTGRES_FAILING"
    REDIS_AWAY = "REDIS_AWAY"
    REDIS_LOADING = "REDIS_LOADING"
    REDIS_FULL = "REDIS_FULL"
    REDIS_READ_ONLY = "REDIS_READ_ONLY"
    REDIS_NO_REPLICAS = "REDIS_NO_REPLICAS"
    REDIS_DISK_FULL = "REDIS_DISK_FULL"
    REDIS_CONNECTIONS = "REDIS_CONNECTIONS"
    REDIS_LOGIN = "REDIS_LOGIN"
    STORAGE_AWAY = "STORAGE_AWAY"
    STORAGE_LOGIN = "STORAGE_LOGIN"
    STORAGE_NO_BUCKET = "STORAGE_NO_BUCKET"
    STORAGE_SETTINGS = "STORAGE_SETTINGS"
    STORAGE_DISK_FULL = "STORAGE_DISK_FULL"
    STORAGE_FAILING = "STORAGE_FAILING"

    @property
    def is_of_postgres(self) -> bool:
        """Whether PostgreSQL refuses."""
        return self.startswith("POSTGRES")

    @property
    def is_of_redis(self) -> bool:
        """Whether Redis refuses."""
        return self.startswith("REDIS")

    @property
    def is_of_storage(self) -> bool:
        """Whether the bucket of the stored files refuses."""
        return self.startswith("STORAGE")

    @property
    def server(self) -> str:
        """The name of the server at the beginning of a sentence."""
        if self.is_of_postgres:
            return "PostgreSQL"
        return "Redis" if self.is_of_redis else "The file store"

    @property
    def answers(self) -> bool:
        """Whether the server still answers reads."""
        return self in READS_WORK


READS_WORK = frozenset(
    {
        ServerFault.POSTGRES_READ_ONLY,
        ServerFault.POSTGRES_DISK_FULL,
        ServerFault.REDIS_FULL,
        ServerFault.REDIS_READ_ONLY,
        ServerFault.REDIS_NO_REPLICAS,
        ServerFault.REDIS_DISK_FULL,
        ServerFault.STORAGE_DISK_FULL,
    }
)
"""Faults of a server that refuses writes only."""


@dataclass(frozen=True)
class FaultText:
    """A fault in words, and what an operator can do."""

    message: str
    advice: str


_F = ServerFault
FAULTS: dict[ServerFault, FaultText] = {
    _F.POSTGRES_AWAY: FaultText(
        "PostgreSQL cannot be reached", "Start PostgreSQL, or check DATABASE_URL and the network."
    ),
    _F.POSTGRES_STARTING: FaultText(
        "PostgreSQL starts, stops or recovers, and accepts no connection yet",
        "Wait for the end of the start. PostgreSQL's log shows its progress.",
    ),
    _F.POSTGRES_READ_ONLY: FaultText(
        "PostgreSQL accepts no writes: a standby, or default_transaction_read_only is on",
        "Point DATABASE_URL at the primary server, or turn default_transaction_read_only off.",
    ),
    _F.POSTGRES_CONNECTIONS: FaultText(
        "PostgreSQL has no free connection",
        "End idle sessions, or raise max_connections or the limit of the role or database.",
    ),
    _F.POSTGRES_DISK_FULL: FaultText(
        "The disk of PostgreSQL is full", "Make room on the disk of PostgreSQL."
    ),
    _F.POSTGRES_LOGIN: FaultText(
        "PostgreSQL refuses the login",
        "Check the user, the password and the database in DATABASE_URL.",
    ),
    _F.POSTGRES_FAILING: FaultText(
        "PostgreSQL lacks memory or another resource",
        "Check PostgreSQL's log and the load of its host.",
    ),
    _F.REDIS_AWAY: FaultText(
        "Redis cannot be reached", "Start Redis, or check REDIS_URL and the network."
    ),
    _F.REDIS_LOADING: FaultText(
        "Redis loads its data and answers no command yet",
        "Wait for the end of the load. Redis's log shows its progress.",
    ),
    _F.REDIS_FULL: FaultText(
        "Redis is full and accepts no writes",
        "Raise maxmemory, or remove the keys of other programs.",
    ),
    _F.REDIS_READ_ONLY: FaultText(
        "Redis is a read-only replica",
        "Point REDIS_URL at the primary server, or promote this server with REPLICAOF NO ONE.",
    ),
    _F.REDIS_NO_REPLICAS: FaultText(
        "Redis accepts no writes without its replicas",
        "Bring the replicas back, or lower min-replicas-to-write.",
    ),
    _F.REDIS_DISK_FULL: FaultText(
        "Redis cannot save its data and accepts no writes",
        "Make room on the disk of Redis, and check Redis's log.",
    ),
    _F.REDIS_CONNECTIONS: FaultText(
        "Redis has no free connection", "End idle clients, or raise maxclients."
    ),
    _F.REDIS_LOGIN: FaultText(
        "Redis refuses the login or a command",
        "Check the user, the password and the rights of the user in REDIS_URL.",
    ),
    _F.STORAGE_AWAY: FaultText(
        "The file store cannot be reached",
        "Start the file store, or check STORAGE_ENDPOINT_URL, its certificate and the network.",
    ),
    _F.STORAGE_LOGIN: FaultText(
        "The file store refuses the login or a right",
        "Check STORAGE_KEY_ID, STORAGE_SECRET_KEY, the rights of the key, and this host's clock.",
    ),
    _F.STORAGE_NO_BUCKET: FaultText(
        "The bucket of the stored files does not exist",
        "Check STORAGE_BUCKET, or make the bucket.",
    ),
    _F.STORAGE_SETTINGS: FaultText(
        "The file store does not accept a request of medproc",
        "Check STORAGE_REGION, STORAGE_ENCRYPTION, and the log of the file store.",
    ),
    _F.STORAGE_DISK_FULL: FaultText(
        "The file store has no room left", "Make room in the file store, or raise its quota."
    ),
    _F.STORAGE_FAILING: FaultText(
        "The file store fails or limits requests",
        "Check the log and the load of the file store.",
    ),
}
"""The one table behind health, overview, commands, logs, the 503 page and the runbook."""


class FileStoreError(PipelineError):
    """The bucket of the stored files refuses. Work waits, as for PostgreSQL and Redis."""

    code = ErrorCode.STORAGE_REFUSED

    def __init__(self, fault: ServerFault) -> None:
        self.fault = fault
        # Users of the console and clients of the API see this line, so it names no address.
        super().__init__(_line(fault, FAULTS[fault]))


_SQLSTATES = {
    "25006": _F.POSTGRES_READ_ONLY,
    "53100": _F.POSTGRES_DISK_FULL,
    "53300": _F.POSTGRES_CONNECTIONS,
    "57P03": _F.POSTGRES_STARTING,
    "57P01": _F.POSTGRES_AWAY,
    "57P02": _F.POSTGRES_AWAY,
    "57P05": _F.POSTGRES_AWAY,
    "3D000": _F.POSTGRES_LOGIN,
}
_SQLSTATE_CLASSES = {
    "08": _F.POSTGRES_AWAY,
    "28": _F.POSTGRES_LOGIN,
    "53": _F.POSTGRES_FAILING,
    "58": _F.POSTGRES_FAILING,
}
# libpq passes no SQLSTATE on when a connection fails, only the server's message.
_FAILED_CONNECTIONS = (
    ("too many clients", _F.POSTGRES_CONNECTIONS),
    ("too many connections", _F.POSTGRES_CONNECTIONS),
    ("remaining connection slots", _F.POSTGRES_CONNECTIONS),
    ("the database system is", _F.POSTGRES_STARTING),
    ("FATAL:", _F.POSTGRES_LOGIN),
)
_REDIS_MESSAGES = (
    ("OOM ", _F.REDIS_FULL),
    ("READONLY ", _F.REDIS_READ_ONLY),
    ("MASTERDOWN ", _F.REDIS_READ_ONLY),
    ("LOADING ", _F.REDIS_LOADING),
    ("NOREPLICAS ", _F.REDIS_NO_REPLICAS),
    ("MISCONF ", _F.REDIS_DISK_FULL),
    ("max number of clients", _F.REDIS_CONNECTIONS),
    ("NOAUTH ", _F.REDIS_LOGIN),
    ("NOPERM ", _F.REDIS_LOGIN),
    ("WRONGPASS ", _F.REDIS_LOGIN),
)
# redis-py removes the first word of these messages, so their classes decide.
_REDIS_CLASSES: tuple[tuple[type[Exception], ServerFault], ...] = (
    (redis_errors.OutOfMemoryError, _F.REDIS_FULL),
    (redis_errors.ReadOnlyError, _F.REDIS_READ_ONLY),
    (redis_errors.MasterDownError, _F.REDIS_READ_ONLY),
    (redis_errors.BusyLoadingError, _F.REDIS_LOADING),
    (redis_errors.MaxConnectionsError, _F.REDIS_CONNECTIONS),
    (redis_errors.AuthenticationError, _F.REDIS_LOGIN),
    (redis_errors.NoPermissionError, _F.REDIS_LOGIN),
)


def fault_of(error: BaseException) -> ServerFault | None:
    """Return why the server refused, or None if the error has another reason.

    A statement that PostgreSQL refuses for its content, a deadlock and a timeout are no fault of
    the server.
    """
    if isinstance(error, FileStoreError):
        return error.fault
    if isinstance(error, redis_errors.RedisError):
        return _fault_of_redis(error)
    if isinstance(error, DjangoDatabaseError | psycopg.Error):
        return _fault_of_postgres(error)
    return None


def line_of(fault: ServerFault) -> str:
    """Return one line: the fault, its code, and what to do."""
    return _line(fault, text_of(fault))


def _line(fault: ServerFault, text: FaultText) -> str:
    return f"{text.message} ({fault}). {text.advice}"


def text_of(fault: ServerFault, *, names_address: bool = True) -> FaultText:
    """Return the row of `FAULTS`; the text of a server that is away can name its address."""
    is_away = fault.endswith("_AWAY")
    return _with_address(fault, FAULTS[fault], names_address) if is_away else FAULTS[fault]


def refusal_line(error: BaseException) -> str | None:
    """Return the line of the error's fault; None for another error, which must not be hidden."""
    fault = fault_of(error)
    return None if fault is None else line_of(fault)


def explain(error: BaseException) -> str:
    """Return the line of the error's fault; for another error its type."""
    return refusal_line(error) or type(error).__name__


def _fault_of_postgres(error: BaseException) -> ServerFault | None:
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    if cause is not None:
        # A pool that has no connection does not say why.
        cause = db_pool.cause_of(cause)
        if cause is None:
            return ServerFault.POSTGRES_CONNECTIONS
    state = getattr(cause, "sqlstate", None)
    if state is not None:
        return _SQLSTATES.get(state) or _SQLSTATE_CLASSES.get(state[:2])
    if not isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
        return None
    message = str(cause)
    return next(
        (fault for words, fault in _FAILED_CONNECTIONS if words in message),
        ServerFault.POSTGRES_AWAY,
    )


def _fault_of_redis(error: BaseException) -> ServerFault | None:
    for kind, fault in _REDIS_CLASSES:
        if isinstance(error, kind):
            return fault
    message = str(error)
    for words, fault in _REDIS_MESSAGES:
        if words in message:
            return fault
    away = isinstance(error, redis_errors.ConnectionError | redis_errors.TimeoutError)
    return ServerFault.REDIS_AWAY if away else None


def _with_address(fault: ServerFault, text: FaultText, names_address: bool) -> FaultText:
    """Add the address, or say that an embedded server does not run."""
    if fault.is_of_storage:
        url = settings.STORAGE_ENDPOINT_URL if names_address else None
        at_url = f" at {_host(url)} (STORAGE_ENDPOINT_URL)" if url else ""
        return FaultText(text.message + at_url, text.advice)
    if fault.is_of_postgres:
        name, variable, url = "PostgreSQL", "DATABASE_URL", settings.DATABASE_URL
        is_embedded, at = settings.EMBEDDED_POSTGRES, 0
    else:
        name, variable, url = "Redis", "REDIS_URL", settings.REDIS_URL
        is_embedded, at = settings.EMBEDDED_VALKEY, 1
    if not is_embedded and not names_address:
        return text
    if not is_embedded:
        return FaultText(f"{text.message} at {_host(url)} ({variable})", text.advice)
    if embedded.status(settings.EMBEDDED)[at].running:
        return text
    return FaultText(f"{name} is not running", "Start it with `manage.py services up`.")


def _host(url: str) -> str:
    """Return the host of a URL without user and password; the folder or path of a socket."""
    parts = urlsplit(url)
    if parts.hostname is None:
        return parts.path
    return parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"


SAY_EVERY_S = 60.0
"""Seconds between two log lines of one process about the same fault."""


class FaultLog:
    """Decides which faults a process logs: the same fault at most once a minute."""

    def __init__(self) -> None:
        self._said_at: dict[str, float] = {}

    def line_if_due(self, error: BaseException) -> str | None:
        """Return the line of the error's fault; None if it was returned within the last minute."""
        line, now = explain(error), time.monotonic()
        if now - self._said_at.get(line, -SAY_EVERY_S) < SAY_EVERY_S:
            return None
        self._said_at[line] = now
        return line

    def forget(self) -> None:
        """Let the next fault be said at once, because the server has answered since."""
        self._said_at.clear()
