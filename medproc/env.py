"""The typed environment: every variable that medproc reads, with its bounds and default.

`settings.py` reads it once. A wrong value never raises here. It becomes a `VariableProblem`, which
`checks.py` turns into a system check, and the default replaces it so that the checks can run. No
problem quotes a value.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, ValidationError
from pydantic.config import JsonDict
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PROJECT_ROOT = Path(__file__).resolve().parent.parent
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "[::1]", ".localhost"})
ProviderName = Literal["local", "gemini"]
SERVICE_MIN_TIMEOUT_S = 10.0
"""The shortest `X-Server-Timeout` that the Gemini service accepts, in seconds."""


class Secret(str):
    """A string with a masked repr; `str()` returns the value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'********'"


@dataclass(frozen=True, kw_only=True)
class VariableProblem:
    """A variable with an unusable value: why it is unusable, and which values are right.

    Quotes no value.
    """

    variable: str
    message: str
    hint: str
    id: str


def _comma_separated(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _url_of(*schemes: str) -> AfterValidator:
    def check(value: str) -> str:
        try:
            scheme = urlsplit(value).scheme
        except ValueError:
            raise ValueError("is not a URL") from None
        if scheme not in schemes:
            raise ValueError("must begin with " + " or ".join(f"{name}://" for name in schemes))
        return value

    return AfterValidator(check)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _host_name() -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:64] or "host"


HostList = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_comma_separated)]
Masked = AfterValidator(Secret)


def _variable(number: int, default: Any = None, *, hint: str, **bounds: Any) -> Any:
    """Declare a variable whose check is `medproc.E<number>`; a number is never reused."""
    extra: JsonDict = {"id": f"medproc.E{number:03d}", "hint": hint}
    if callable(default):
        return Field(default_factory=default, json_schema_extra=extra, **bounds)
    return Field(default=default, json_schema_extra=extra, **bounds)


# pydantic-settings was chosen over django-environ and environs: it checks types and bounds, and
# reports all mistakes at once. Pydantic already validates the provider's replies.
class Environment(BaseSettings):
    """The variables of docs/configuration.md; each is also a Django setting of the same name."""

    model_config = SettingsConfigDict(
        case_sensitive=True,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        validate_default=False,
    )

    DATABASE_URL: Annotated[str, _url_of("postgres", "postgresql"), Masked] | None = _variable(
        1, hint="postgresql://user:password@host:5432/name; unset for the embedded PostgreSQL."
    )
    REDIS_URL: Annotated[str, _url_of("redis", "rediss", "unix"), Masked] | None = _variable(
        2, hint="redis://host:6379/0, rediss:// or unix://; unset for the embedded Valkey."
    )
    SECRET_KEY: Annotated[str, StringConstraints(min_length=32), Masked] | None = _variable(
        3, hint="At least 50 random characters, kept secret."
    )
    DEBUG: bool = _variable(4, False, hint="true or false; true only on a developer's machine.")
    ALLOWED_HOSTS: HostList = _variable(
        5,
        ("localhost", "127.0.0.1", "[::1]"),
        hint="Host names separated by commas.",
        min_length=1,
    )
    CSRF_TRUSTED_ORIGINS: HostList = _variable(
        6, (), hint="Origins with their scheme, separated by commas: https://console.example.org."
    )
    MEDPROC_DATA_DIR: Path = _variable(
        7, PROJECT_ROOT / "var", hint="A folder that medproc may create and write."
    )
    MEDPROC_PROVIDER: ProviderName | None = _variable(
        8, hint="local or gemini; gemini needs GEMINI_API_KEY or an emulator in GEMINI_BASE_URL."
    )
    GEMINI_API_KEY: Annotated[str, StringConstraints(pattern=r"^\S+$"), Masked] | None = _variable(
        9, hint="The key of the service, without spaces."
    )
    GEMINI_BASE_URL: Annotated[str, _url_of("http", "https")] | None = _variable(
        10, hint="An http(s) URL, such as the URL that `manage.py gemini_emulator` prints."
    )
    GEMINI_MODEL: str = _variable(11, "gemini-3.5-flash-lite", hint="A model's name.", min_length=1)
    GEMINI_RPM: int = _variable(12, 300, hint="Requests per minute of your quota.", ge=1)
    GEMINI_TPM: int = _variable(13, 1_000_000, hint="Input tokens per minute of your quota.", ge=1)
    GEMINI_RPD: int | None = _variable(
        14, hint="Requests per day of your quota; unset for no daily quota.", ge=1
    )
    WORKER_CONCURRENCY: int = _variable(
        15, 3, hint="Records processed at once on this host, 1 to 64.", ge=1, le=64
    )
    WORKER_ID: str = _variable(
        16,
        _host_name,
        hint="Letters, digits, dots, dashes; unique to this host.",
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
    )
    PASS05_CHUNK_PAGES: int = _variable(17, 50, hint="Pages per chunk, 2 to 200.", ge=2, le=200)
    # Three settings have the name of Pass 1, which the requirements prescribe, and are for every
    # pass that calls the provider: PASS1_CONCURRENCY_LIMIT, PASS1_ENCOUNTER_LIMIT and
    # PASS1_MAX_RETRIES.
    PASS1_CONCURRENCY_LIMIT: int = _variable(
        18, 30, hint="Calls in flight per record, 1 to 256.", ge=1, le=256
    )
    PASS1_ENCOUNTER_LIMIT: int = _variable(
        19, 120, hint="Encounters open per record, 1 to 10000.", ge=1, le=10_000
    )
    PAGES_CONCURRENCY: int = _variable(
        20, _cores, hint="Workers that read pages on this host, 1 to 256.", ge=1, le=256
    )
    PASS1_MAX_RETRIES: int = _variable(21, 3, hint="Attempts per batch, 1 to 20.", ge=1, le=20)
    PASS1_BATCH_MIN_PAGES: int = _variable(22, 3, hint="Pages, at most the maximum.", ge=1)
    PASS1_BATCH_MAX_PAGES: int = _variable(23, 10, hint="Pages, at most the hard ceiling.", ge=1)
    PASS1_BATCH_HARD_CEILING: int = _variable(24, 50, hint="Pages, 1 to 1000.", ge=1, le=1000)
    PASS1_BATCH_MAX_TOKENS: int = _variable(
        25, 24_000, hint="Estimated input tokens per batch, 1000 to 1000000.", ge=1000, le=1_000_000
    )
    PASS1_DISABLE_ZONES: bool = _variable(26, False, hint="true or false.")
    PASS_INPUT: Literal["text", "pdf"] = _variable(
        27, "text", hint="text; or pdf, which needs the provider gemini."
    )
    CALL_DEADLINE_S: float = _variable(
        28,
        120.0,
        hint="Longest call in seconds (not ms), at most 3600; at least 10 with the real "
        "service, which refuses a shorter X-Server-Timeout.",
        gt=0,
        le=3600,
    )
    STEP_DEADLINE_MIN_S: float = _variable(
        29, 300.0, hint="The shortest deadline of a step, in seconds.", gt=0, le=86_400
    )
    LEASE_S: float = _variable(30, 60.0, hint="Seconds, 1 to 3600.", ge=1, le=3600)
    HEARTBEAT_S: float = _variable(31, 15.0, hint="Seconds, less than half of LEASE_S.", gt=0)
    RECONCILE_S: float = _variable(32, 15.0, hint="Seconds, 1 to 3600.", ge=1, le=3600)
    ALARM_WAITING_S: float = _variable(
        70, 1800.0, hint="Seconds that work may wait before it is an alarm.", gt=0
    )
    ALARM_RUNNING_S: float = _variable(
        71, 7200.0, hint="Seconds that a step may run before it is an alarm.", gt=0
    )
    RATE_LIMIT_BUDGET: int = _variable(33, 20, hint="Limited calls per batch.", ge=1, le=1000)
    RETRY_DELAY_S: float = _variable(
        34, 300.0, hint="Seconds before a failed job is retried.", ge=0
    )
    JOB_MAX_RETRIES: int = _variable(
        90, 3, hint="Automatic retries of a failed job, 0 to 20.", ge=0, le=20
    )
    INCIDENT_TICK_S: float = _variable(
        60, 5.0, hint="Seconds between two checks for incidents, 1 to 60.", ge=1, le=60
    )
    INCIDENT_WINDOW_S: float = _variable(
        61,
        60.0,
        hint="Seconds of recent calls that each check examines, 10 to 3600.",
        ge=10,
        le=3600,
    )
    INCIDENT_FAILURES: int = _variable(
        62, 5, hint="Failed calls that open an outage, 1 to 1000.", ge=1, le=1000
    )
    INCIDENT_SHARE: float = _variable(
        63, 0.5, hint="Share of failed calls that opens it, above 0, at most 1.", gt=0, le=1
    )
    INCIDENT_LIMITED: int = _variable(
        64, 20, hint="Limited calls that open a throttling incident, 1 to 10000.", ge=1, le=10_000
    )
    INCIDENT_SUCCESSES: int = _variable(
        65,
        3,
        hint="Answered calls after the last failure that close an outage, 1 to 1000.",
        ge=1,
        le=1000,
    )
    INCIDENT_PROBE_S: float = _variable(
        66, 30.0, hint="Seconds between two probes of a provider, 1 to 3600.", ge=1, le=3600
    )
    MAX_UPLOAD_MB: int = _variable(35, 512, hint="MiB per record, 1 to 10240.", ge=1, le=10_240)
    MAX_PAGES: int = _variable(36, 10_000, hint="Pages per record, 1 to 100000.", ge=1, le=100_000)
    OCR_MIN_CONFIDENCE: float = _variable(37, 40.0, hint="Per cent, 0 to 100.", ge=0, le=100)
    PAYLOAD_RETENTION_DAYS: int = _variable(38, 30, hint="Days, 1 to 3650.", ge=1, le=3650)
    TIME_SCALE: float = _variable(
        39,
        1.0,
        hint="Factor of every backoff, lease and deadline, at most 1; below 1 only for rehearsals.",
        gt=0,
        le=1,
    )
    GEMINI_PRICE_INPUT_USD_PER_M: Decimal = _variable(
        40, Decimal("0.10"), hint="US dollars per million input tokens, as in your contract.", ge=0
    )
    GEMINI_PRICE_OUTPUT_USD_PER_M: Decimal = _variable(
        41, Decimal("0.40"), hint="US dollars per million output tokens, thinking included.", ge=0
    )

    STOP_GRACE_S: float = _variable(
        42,
        30.0,
        hint="Seconds that a step may take to end after SIGTERM, at most 3600.",
        gt=0,
        le=3600,
    )

    PREEMPT_AFTER_S: float = _variable(
        75,
        30.0,
        hint="Seconds after which a large record's step makes room for a smaller one, 1 to 3600.",
        ge=1,
        le=3600,
    )
    GATE_WINDOW_S: float = _variable(
        43,
        60.0,
        hint="Length of the quota's minute in seconds: 60, or the --window of an emulator.",
        gt=0,
        le=60,
    )
    GATE_GUARD_S: float = _variable(
        44, 0.15, hint="Seconds added to the quota's window, 0 to 5.", ge=0, le=5
    )
    GATE_COOLDOWN_BASE_S: float = _variable(
        45, 5.0, hint="Seconds of the first cooldown, up to 3600.", gt=0, le=3600
    )
    GATE_COOLDOWN_CAP_S: float = _variable(
        46, 60.0, hint="Seconds of the longest cooldown without a server hint.", gt=0, le=3600
    )
    GATE_QUIET_S: float = _variable(
        47,
        60.0,
        hint="Quiet seconds after which a cooldown counts as the first in a row.",
        ge=0,
        le=86_400,
    )
    GATE_RAMP_FIRST: int = _variable(
        48, 5, hint="Starts in the first second of a ramp, 1 to 1000.", ge=1, le=1000
    )
    GATE_RAMP_GROWTH: float = _variable(
        49, 2.0, hint="Factor from one second of a ramp to the next, 1.1 to 10.", ge=1.1, le=10
    )
    GATE_BREAKER_WINDOW_S: float = _variable(
        50, 10.0, hint="Seconds of recent calls that the breaker examines, 1 to 600.", ge=1, le=600
    )
    GATE_BREAKER_FAILURES: int = _variable(
        51, 5, hint="Failed calls that open the breaker, 1 to 1000.", ge=1, le=1000
    )
    GATE_BREAKER_SHARE: float = _variable(
        52, 0.5, hint="Share of failed calls that opens it, above 0, at most 1.", gt=0, le=1
    )
    GATE_PROBE_S: float = _variable(
        53, 5.0, hint="Seconds between two probes of a provider that is down.", gt=0, le=3600
    )
    GATE_LEASE_S: float | None = _variable(
        54,
        hint="Seconds, more than CALL_DEADLINE_S; unset for CALL_DEADLINE_S + 30.",
        gt=0,
        le=7200,
    )
    GATE_LOCAL_SHARE: float = _variable(
        55,
        0.02,
        hint="Share of the quota per process while Redis is away, above 0, at most 1.",
        gt=0,
        le=1,
    )

    @property
    def provider(self) -> ProviderName:
        """The named provider; else gemini if there is a key, else local."""
        return self.MEDPROC_PROVIDER or ("gemini" if self.GEMINI_API_KEY else "local")

    @property
    def talks_to_loopback(self) -> bool:
        """Return whether GEMINI_BASE_URL names an emulator on this machine."""
        host = urlsplit(self.GEMINI_BASE_URL or "").hostname
        return host in LOOPBACK_HOSTS

    @property
    def calls_the_service(self) -> bool:
        """Return whether calls go to the real Gemini service, not to an emulator."""
        return self.provider == "gemini" and not self.talks_to_loopback

    @property
    def public_hosts(self) -> tuple[str, ...]:
        """The allowed hosts other than this machine.

        If there are any, the console requires https.
        """
        return tuple(host for host in self.ALLOWED_HOSTS if host not in LOOPBACK_HOSTS)


_CONFLICTS: tuple[tuple[str, str, Callable[[Environment], bool]], ...] = (
    (
        "PASS1_BATCH_MIN_PAGES",
        "is greater than PASS1_BATCH_MAX_PAGES",
        lambda env: env.PASS1_BATCH_MIN_PAGES > env.PASS1_BATCH_MAX_PAGES,
    ),
    (
        "PASS1_BATCH_MAX_PAGES",
        "is greater than PASS1_BATCH_HARD_CEILING",
        lambda env: env.PASS1_BATCH_MAX_PAGES > env.PASS1_BATCH_HARD_CEILING,
    ),
    (
        "HEARTBEAT_S",
        "is not less than half of LEASE_S, so one late beat would lose the lease",
        lambda env: env.HEARTBEAT_S >= env.LEASE_S / 2,
    ),
    (
        "STEP_DEADLINE_MIN_S",
        "is less than CALL_DEADLINE_S, so a step could not outlive one call",
        lambda env: env.STEP_DEADLINE_MIN_S < env.CALL_DEADLINE_S,
    ),
    (
        "CALL_DEADLINE_S",
        "is less than 10 s, the shortest timeout of the service (is it in minutes?)",
        lambda env: (
            env.calls_the_service and env.CALL_DEADLINE_S * env.TIME_SCALE < SERVICE_MIN_TIMEOUT_S
        ),
    ),
    (
        "TIME_SCALE",
        "is for rehearsals against an emulator, not for the real service",
        lambda env: env.TIME_SCALE < 1 and env.calls_the_service,
    ),
    (
        "GATE_WINDOW_S",
        "is for rehearsals against an emulator; the real service's minute has 60 s",
        lambda env: env.GATE_WINDOW_S < 60 and env.calls_the_service,
    ),
    (
        "GATE_COOLDOWN_CAP_S",
        "is less than GATE_COOLDOWN_BASE_S",
        lambda env: env.GATE_COOLDOWN_CAP_S < env.GATE_COOLDOWN_BASE_S,
    ),
    (
        "GATE_LEASE_S",
        "is not more than CALL_DEADLINE_S, so a call could outlive its lease",
        lambda env: env.GATE_LEASE_S is not None and env.GATE_LEASE_S <= env.CALL_DEADLINE_S,
    ),
    (
        "MEDPROC_PROVIDER",
        "is gemini, but GEMINI_API_KEY is not set",
        lambda env: env.calls_the_service and not env.GEMINI_API_KEY,
    ),
    (
        "PASS_INPUT",
        "is pdf, but the local engine reads only text",
        lambda env: env.provider == "local" and env.PASS_INPUT == "pdf",  # noqa: S105 - a mode
    ),
    (
        "SECRET_KEY",
        "is not set, although DATABASE_URL is set (only a try-out may go without)",
        lambda env: env.SECRET_KEY is None and env.DATABASE_URL is not None and not env.DEBUG,
    ),
    (
        "CSRF_TRUSTED_ORIGINS",
        "has an origin without its scheme",
        lambda env: any("://" not in origin for origin in env.CSRF_TRUSTED_ORIGINS),
    ),
)
"""Combinations of valid values that are wrong together: variable, message, and the test."""


def load() -> tuple[Environment, tuple[VariableProblem, ...]]:
    """Read the environment of the process; return the values and all problems."""
    try:
        environment = Environment()
    except ValidationError as error:
        wrong = {str(item["loc"][0]): item["msg"] for item in error.errors(include_input=False)}
    else:
        return environment, tuple(_conflicts(environment))
    defaults = {
        name: Environment.model_fields[name].get_default(call_default_factory=True)
        for name in wrong
    }
    environment = Environment(**defaults)
    problems = [_problem(name, message) for name, message in wrong.items()]
    return environment, (*problems, *_conflicts(environment))


def unusable_data_dir() -> VariableProblem:
    """Return the problem of a MEDPROC_DATA_DIR that cannot be created, written or kept private."""
    return _problem("MEDPROC_DATA_DIR", "cannot be created, written or kept private")


def _problem(variable: str, message: str) -> VariableProblem:
    extra = Environment.model_fields[variable].json_schema_extra
    assert isinstance(extra, dict)  # noqa: S101 - narrows the type; _variable sets it
    words = message.removeprefix("Value error, ")
    return VariableProblem(
        variable=variable,
        message=f"{variable}: {words[:1].lower()}{words[1:]}.",
        hint=str(extra["hint"]),
        id=str(extra["id"]),
    )


def _conflicts(env: Environment) -> list[VariableProblem]:
    """Find values that are valid alone but not together."""
    return [
        _problem(variable, message) for variable, message, is_wrong in _CONFLICTS if is_wrong(env)
    ]
