"""The typed environment: every variable that medproc reads, with its bounds and default.

`settings.py` reads it once. A wrong value never raises here. It becomes a `VariableProblem`, which
`checks.py` turns into a system check, and the default replaces it so that the checks can run. No
problem quotes a value.
"""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, ValidationError
from pydantic.config import JsonDict
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from medproc import env_rules, env_values, secret_files
from medproc.secret_files import Secret, SecretFile

PROJECT_ROOT = Path(__file__).resolve().parent.parent
ProviderName = Literal["local", "gemini"]


@dataclass(frozen=True, kw_only=True)
class VariableProblem:
    """A variable with an unusable value: why it is unusable, and which values are right.

    Quotes no value.
    """

    variable: str
    message: str
    hint: str
    id: str

    @property
    def line(self) -> str:
        """The problem in one line."""
        return f"({self.id}) {self.message} {self.hint}"


def _comma_separated(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _host_name() -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:64] or "host"


_MODEL_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$"
_PLAIN_NAME = r"^[A-Za-z0-9._-]{1,64}$"
_Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_comma_separated)]
Masked = AfterValidator(Secret)


def _variable(
    number: int, default: Any = None, *, hint: str = "", unit: str = "", **bounds: Any
) -> Any:
    """Declare a variable whose check is `medproc.E<number>`; a number is never reused.

    `hint` says which values are right, unless the type and the bounds say it. A number needs both
    bounds; `unit` names what it counts.
    """
    extra: JsonDict = {"id": f"medproc.E{number:03d}", "hint": hint, "unit": unit}
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

    DATABASE_URL: Annotated[str, AfterValidator(env_values.check_database_url), Masked] | None = (
        _variable(1, hint="postgresql://user:password@host:5432/name")
    )
    DATABASE_OWNER_URL: (
        Annotated[str, AfterValidator(env_values.check_database_url), Masked] | None
    ) = _variable(96, hint="the URL of the owner of the tables, for the database of DATABASE_URL")
    REDIS_URL: Annotated[str, AfterValidator(env_values.check_redis_url), Masked] | None = (
        _variable(2, hint="redis://host:6379/0, rediss://… or unix:///path")
    )
    SECRET_KEY: Annotated[str, StringConstraints(min_length=32), Masked] | None = _variable(
        3, hint="at least 32 characters, better 50 random characters"
    )
    DEBUG: bool = _variable(4, False)
    ALLOWED_HOSTS: Annotated[_Listed, AfterValidator(env_values.check_hosts)] = _variable(
        5,
        ("localhost", "127.0.0.1", "[::1]"),
        hint="host names, separated by commas",
        min_length=1,
    )
    CSRF_TRUSTED_ORIGINS: Annotated[_Listed, AfterValidator(env_values.check_origins)] = _variable(
        6, (), hint="origins, separated by commas: https://console.example.org"
    )
    TRUSTED_PROXIES: Annotated[_Listed, AfterValidator(env_values.check_networks)] = _variable(
        97, (), hint="addresses or networks of your proxies, separated by commas: 10.0.0.0/8"
    )
    WEB_WORKERS: int = _variable(109, 1, unit="processes", ge=1, le=64)
    WEB_THREADS: int = _variable(110, 8, unit="threads", ge=1, le=10)
    WORKER_NICE: int = _variable(171, 10, unit="steps", ge=0, le=19)
    API_UPLOADS_PER_CLIENT: int = _variable(170, 4, unit="uploads", ge=1, le=640)
    SESSION_IDLE_S: float = _variable(93, 1800.0, unit="seconds", ge=60, le=86_400)
    SESSION_MAX_S: float = _variable(94, 43_200.0, unit="seconds", ge=300, le=604_800)
    OIDC_ISSUER: Annotated[str, AfterValidator(env_values.check_issuer)] | None = _variable(
        124, hint="https:// address of your identity provider; http:// on this machine only"
    )
    OIDC_CLIENT_ID: Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,255}$")] | None = (
        _variable(125, hint="1 to 255 characters without spaces")
    )
    OIDC_CLIENT_SECRET: (
        Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]{8,512}$"), Masked] | None
    ) = _variable(126, hint="8 to 512 ASCII characters")
    OIDC_ROLES: Annotated[_Listed, AfterValidator(env_values.check_roles)] = _variable(
        127, (), hint="group=role pairs, separated by commas: medproc-ops=operator"
    )
    OIDC_GROUPS_CLAIM: str = _variable(
        128,
        "groups",
        hint="the name of a claim, or its path with dots: realm_access.roles",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,254}$",
    )
    OIDC_SCOPES: Annotated[_Listed, AfterValidator(env_values.check_scopes)] = _variable(
        129, ("openid", "profile"), hint="scopes, separated by commas, with openid"
    )
    OIDC_ACR: Annotated[_Listed, AfterValidator(env_values.check_claim_values)] = _variable(
        130, (), hint="values of the claim acr, separated by commas"
    )
    OIDC_AMR: Annotated[_Listed, AfterValidator(env_values.check_claim_values)] = _variable(
        131, (), hint="values of the claim amr, separated by commas: mfa"
    )
    OIDC_NAME: str = _variable(
        132,
        "single sign-on",
        hint="1 to 40 letters, digits, spaces, dots and dashes",
        pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9 .-]{0,38}[A-Za-z0-9])?$",
    )
    OIDC_ONLY: bool = _variable(133, False)
    METRICS_TOKEN: (
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._~+/=-]{32,512}$"), Masked] | None
    ) = _variable(120, hint="32 to 512 letters, digits and ._~+/=-, best random")
    WEBHOOK_ALLOWED_HOSTS: Annotated[_Listed, AfterValidator(env_values.check_plain_hosts)] = (
        _variable(91, (), hint="host names or addresses, separated by commas")
    )
    OTEL_EXPORTER_OTLP_ENDPOINT: (
        Annotated[str, AfterValidator(env_values.check_collector_url)] | None
    ) = _variable(160, hint="https://host, or http:// for a collector on this machine")
    OTEL_EXPORTER_OTLP_HEADERS: (
        Annotated[str, AfterValidator(env_values.check_headers), Masked] | None
    ) = _variable(161, hint="name=value, separated by commas; %XX in a value")
    OTEL_SERVICE_NAME: str = _variable(
        162, "medproc", hint="1 to 64 letters, digits, dots and dashes", pattern=_PLAIN_NAME
    )
    OTEL_TRACES_SAMPLER_ARG: float = _variable(163, 1.0, ge=0, le=1)
    SENTRY_DSN: Annotated[str, AfterValidator(env_values.check_dsn), Masked] | None = _variable(
        164, hint="https://key@host/number, or http:// for a tracker on this machine"
    )
    SENTRY_RELEASE: str | None = _variable(
        165, hint="1 to 64 letters, digits, dots and dashes", pattern=_PLAIN_NAME
    )
    AUDIT_HEADS_DIR: Annotated[Path, AfterValidator(env_values.check_folder)] | None = _variable(
        98, hint="absolute path of a folder outside MEDPROC_DATA_DIR"
    )
    MEDPROC_DATA_DIR: Annotated[Path, AfterValidator(env_values.check_data_dir)] = _variable(
        7, PROJECT_ROOT / "var", hint="absolute path of a folder that medproc may make and write"
    )
    STORAGE_BUCKET: str | None = _variable(
        150,
        hint="the name of a bucket: 3 to 63 lower-case letters, digits, dots and dashes",
        pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
    )
    STORAGE_ENDPOINT_URL: Annotated[str, AfterValidator(env_values.check_store_url)] | None = (
        _variable(151, hint="https://host, or http:// for a store on this machine")
    )
    STORAGE_REGION: str | None = _variable(
        152, hint="the name of a region, such as eu-central-1", pattern=r"^[a-z0-9-]{1,64}$"
    )
    STORAGE_KEY_ID: Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,512}$")] | None = (
        _variable(153, hint="the id of an access key, without spaces")
    )
    STORAGE_SECRET_KEY: (
        Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,512}$"), Masked] | None
    ) = _variable(154, hint="the secret of the access key, without spaces")
    STORAGE_ENCRYPTION: Literal["AES256", "aws:kms"] | None = _variable(155)
    STORAGE_KMS_KEY_ID: str | None = _variable(
        156, hint="the id or the ARN of a key", pattern=r"^[A-Za-z0-9:/_-]{1,512}$"
    )
    MEDPROC_PROVIDER: ProviderName | None = _variable(8)
    GEMINI_API_KEY: (
        Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,512}$"), Masked] | None
    ) = _variable(9, hint="a key without spaces")
    GEMINI_BASE_URL: Annotated[str, AfterValidator(env_values.check_service_url)] | None = (
        _variable(10, hint="https://host, or http:// for an emulator on this machine")
    )
    GEMINI_MODEL: str = _variable(
        11,
        "gemini-3.5-flash-lite",
        hint="a name of letters, digits, dots, dashes and slashes",
        pattern=_MODEL_NAME,
        max_length=100,
    )
    GEMINI_RPM: int = _variable(12, 300, unit="requests per minute", ge=1, le=10_000_000)
    GEMINI_TPM: int = _variable(
        13, 1_000_000, unit="input tokens per minute", ge=1, le=10_000_000_000
    )
    GEMINI_RPD: int | None = _variable(14, unit="requests per day", ge=1, le=1_000_000_000)
    WORKER_CONCURRENCY: int = _variable(15, 3, unit="records", ge=1, le=64)
    WORKER_ID: str = _variable(
        16,
        _host_name,
        hint="1 to 64 letters, digits, dots and dashes",
        pattern=_PLAIN_NAME,
    )
    PASS05_CHUNK_PAGES: int = _variable(17, 50, unit="pages", ge=2, le=200)
    # Three settings have the name of Pass 1, which the requirements prescribe, and are for every
    # pass that calls the provider: PASS1_CONCURRENCY_LIMIT, PASS1_ENCOUNTER_LIMIT and
    # PASS1_MAX_RETRIES.
    PASS1_CONCURRENCY_LIMIT: int = _variable(18, 30, unit="calls", ge=1, le=256)
    PASS1_ENCOUNTER_LIMIT: int = _variable(19, 120, unit="encounters", ge=1, le=10_000)
    PAGES_CONCURRENCY: int = _variable(20, _cores, unit="workers", ge=1, le=256)
    PASS1_MAX_RETRIES: int = _variable(21, 3, unit="attempts", ge=1, le=20)
    PASS1_BATCH_MIN_PAGES: int = _variable(22, 3, unit="pages", ge=1, le=1000)
    PASS1_BATCH_MAX_PAGES: int = _variable(23, 10, unit="pages", ge=1, le=1000)
    PASS1_BATCH_HARD_CEILING: int = _variable(24, 50, unit="pages", ge=1, le=1000)
    PASS1_BATCH_MAX_TOKENS: int = _variable(25, 24_000, unit="tokens", ge=1000, le=1_000_000)
    PASS1_DISABLE_ZONES: bool = _variable(26, False)
    PASS_INPUT: Literal["text", "pdf"] = _variable(27, "text")
    SKIPPED_PASSES: Annotated[_Listed, AfterValidator(env_values.check_passes)] = _variable(
        99, (), hint="names of pass1_5, pass2 and pass3, separated by commas"
    )
    CODE_EMBEDDER: Literal["ngrams", "gemini"] = _variable(84, "ngrams")
    CODE_EMBEDDING_MODEL: str = _variable(
        85,
        "gemini-embedding-001",
        hint="a name of letters, digits, dots, dashes and slashes",
        pattern=_MODEL_NAME,
        max_length=100,
    )
    NARRATIVE_MAX_SENTENCES: int = _variable(56, 12, unit="sentences", ge=1, le=100)
    NARRATIVE_MAX_WORDS: int = _variable(57, 40, unit="words", ge=5, le=200)
    CALL_DEADLINE_S: float = _variable(28, 120.0, unit="seconds", gt=0, le=3600)
    STEP_DEADLINE_MIN_S: float = _variable(29, 300.0, unit="seconds", gt=0, le=86_400)
    LEASE_S: float = _variable(30, 60.0, unit="seconds", ge=1, le=3600)
    HEARTBEAT_S: float = _variable(31, 15.0, unit="seconds", gt=0, le=1800)
    RECONCILE_S: float = _variable(32, 15.0, unit="seconds", ge=1, le=3600)
    ALARM_WAITING_S: float = _variable(70, 1800.0, unit="seconds", gt=0, le=2_592_000)
    ALARM_RUNNING_S: float = _variable(71, 7200.0, unit="seconds", gt=0, le=2_592_000)
    RATE_LIMIT_BUDGET: int = _variable(33, 20, unit="calls", ge=1, le=1000)
    RETRY_DELAY_S: float = _variable(34, 300.0, unit="seconds", ge=0, le=604_800)
    JOB_MAX_RETRIES: int = _variable(90, 3, unit="retries", ge=0, le=20)
    INCIDENT_TICK_S: float = _variable(60, 5.0, unit="seconds", ge=1, le=60)
    INCIDENT_WINDOW_S: float = _variable(61, 60.0, unit="seconds", ge=10, le=3600)
    INCIDENT_FAILURES: int = _variable(62, 5, unit="calls", ge=1, le=1000)
    INCIDENT_SHARE: float = _variable(63, 0.5, gt=0, le=1)
    INCIDENT_LIMITED: int = _variable(64, 20, unit="calls", ge=1, le=10_000)
    INCIDENT_SUCCESSES: int = _variable(65, 3, unit="calls", ge=1, le=1000)
    INCIDENT_PROBE_S: float = _variable(66, 30.0, unit="seconds", ge=1, le=3600)
    SLA_URGENT_S: float = _variable(121, 900.0, unit="seconds", ge=1, le=31_536_000)
    SLA_NORMAL_S: float = _variable(122, 14_400.0, unit="seconds", ge=1, le=31_536_000)
    SLA_LOW_S: float = _variable(123, 86_400.0, unit="seconds", ge=1, le=31_536_000)
    REVIEW_WEIGHT_CONFIDENCE: float = _variable(76, 0.4, ge=0, le=1)
    REVIEW_WEIGHT_SLA: float = _variable(77, 0.3, ge=0, le=1)
    REVIEW_WEIGHT_COMPLEXITY: float = _variable(78, 0.2, ge=0, le=1)
    REVIEW_WEIGHT_VALUE: float = _variable(79, 0.1, ge=0, le=1)
    REVIEW_SLA_URGENT_S: float = _variable(80, 900.0, unit="seconds", ge=1, le=31_536_000)
    REVIEW_SLA_NORMAL_S: float = _variable(81, 14_400.0, unit="seconds", ge=1, le=31_536_000)
    REVIEW_SLA_LOW_S: float = _variable(82, 86_400.0, unit="seconds", ge=1, le=31_536_000)
    REVIEW_CLAIM_S: float = _variable(83, 900.0, unit="seconds", ge=1, le=86_400)
    REVIEW_DOUBLE_PERCENT: float = _variable(89, 5.0, unit="per cent", ge=0, le=100)
    MAX_UPLOAD_MB: int = _variable(35, 512, unit="MiB", ge=1, le=10_240)
    MAX_PAGES: int = _variable(36, 10_000, unit="pages", ge=1, le=100_000)
    OCR_MIN_CONFIDENCE: float = _variable(37, 40.0, unit="per cent", ge=0, le=100)
    PAYLOAD_RETENTION_DAYS: int = _variable(38, 30, unit="days", ge=1, le=3650)
    SLA_SNAPSHOT_RETENTION_DAYS: int = _variable(140, 400, unit="days", ge=31, le=3650)
    TIME_SCALE: float = _variable(39, 1.0, gt=0, le=1)
    GEMINI_PRICE_INPUT_USD_PER_M: Decimal = _variable(
        40, Decimal("0.10"), unit="US dollars per million tokens", ge=0, le=10_000
    )
    GEMINI_PRICE_OUTPUT_USD_PER_M: Decimal = _variable(
        41, Decimal("0.40"), unit="US dollars per million tokens", ge=0, le=10_000
    )
    GEMINI_PRICE_EMBEDDING_USD_PER_M: Decimal = _variable(
        86, Decimal("0.15"), unit="US dollars per million tokens", ge=0, le=10_000
    )

    STOP_GRACE_S: float = _variable(42, 30.0, unit="seconds", gt=0, le=3600)

    PREEMPT_AFTER_S: float = _variable(75, 30.0, unit="seconds", ge=1, le=3600)
    GATE_WINDOW_S: float = _variable(43, 60.0, unit="seconds", gt=0, le=60)
    GATE_GUARD_S: float = _variable(44, 0.15, unit="seconds", ge=0, le=5)
    GATE_COOLDOWN_BASE_S: float = _variable(45, 5.0, unit="seconds", gt=0, le=3600)
    GATE_COOLDOWN_CAP_S: float = _variable(46, 60.0, unit="seconds", gt=0, le=3600)
    GATE_QUIET_S: float = _variable(47, 60.0, unit="seconds", ge=0, le=86_400)
    GATE_RAMP_FIRST: int = _variable(48, 5, unit="calls", ge=1, le=1000)
    GATE_RAMP_GROWTH: float = _variable(49, 2.0, ge=1.1, le=10)
    GATE_BREAKER_WINDOW_S: float = _variable(50, 10.0, unit="seconds", ge=1, le=600)
    GATE_BREAKER_FAILURES: int = _variable(51, 5, unit="calls", ge=1, le=1000)
    GATE_BREAKER_SHARE: float = _variable(52, 0.5, gt=0, le=1)
    GATE_PROBE_S: float = _variable(53, 5.0, unit="seconds", gt=0, le=3600)
    GATE_LEASE_S: float | None = _variable(54, unit="seconds", gt=0, le=7200)
    GATE_LOCAL_SHARE: float = _variable(55, 0.02, gt=0, le=1)

    @property
    def provider(self) -> ProviderName:
        """The named provider; else gemini if there is a key, else local."""
        return self.MEDPROC_PROVIDER or ("gemini" if self.GEMINI_API_KEY else "local")

    @property
    def talks_to_loopback(self) -> bool:
        """Return whether GEMINI_BASE_URL names an emulator on this machine."""
        return env_values.is_loopback(urlsplit(self.GEMINI_BASE_URL or "").hostname or "")

    @property
    def calls_the_service(self) -> bool:
        """Return whether calls go to the real Gemini service, not to an emulator."""
        return self.provider == "gemini" and not self.talks_to_loopback

    @property
    def public_hosts(self) -> tuple[str, ...]:
        """The allowed hosts other than this machine.

        If there are any, the console requires https.
        """
        return tuple(host for host in self.ALLOWED_HOSTS if not env_values.is_loopback(host))


_REASONS = {
    "bool_parsing": "is neither true nor false",
    "greater_than": "is too small",
    "greater_than_equal": "is too small",
    "less_than": "is too large",
    "less_than_equal": "is too large",
    "literal_error": "is not a known value",
    "string_pattern_mismatch": "does not have the right form",
    "string_too_long": "is too long",
    "string_too_short": "is too short",
    "too_short": "is empty",
}
"""Reasons by the error types of pydantic, whose own messages quote some values."""


SECRETS = tuple(
    name
    for name, field in Environment.model_fields.items()
    if Masked in getattr(env_values.kind_of(field), "__metadata__", ())
)
"""The variables that hold a secret; each can be given as NAME_FILE instead."""
VARIABLES = (*Environment.model_fields, *(name + secret_files.SUFFIX for name in SECRETS))
"""Every variable that medproc reads."""


def load() -> tuple[Environment, tuple[VariableProblem, ...]]:
    """Read the environment of the process; return the values and all problems."""
    fields = Environment.model_fields
    files = secret_files.read_all(SECRETS, os.environ)
    texts = {**os.environ, **{name: file.text for name, file in files.items()}}
    wrong = {name: file.reason for name, file in files.items() if file.reason}
    for name, field in fields.items():
        if name not in wrong and (text := texts.get(name)):
            flaw = env_values.flaw_of(field, text)
            wrong |= {name: flaw} if flaw else {}
    try:
        environment = _read(wrong, files)
    except ValidationError as error:
        for found in error.errors(include_input=False):
            own_words = found["msg"].removeprefix("Value error, ")
            reason = _REASONS.get(found["type"], "is wrong")
            wrong[str(found["loc"][0])] = own_words if found["type"] == "value_error" else reason
        environment = _read(wrong, files)
    broken = env_rules.broken_rules(environment, wrong)
    problems = (
        *(_problem(name, wrong[name], files.get(name)) for name in fields if name in wrong),
        *(_problem(name, why) for name, why in broken.items()),
    )
    return environment, problems


def warnings_of(environment: Environment) -> tuple[VariableProblem, ...]:
    """Return warnings: misspelt variables, variables without an effect, and a missing proxy."""
    names = env_rules.misspelt(os.environ, VARIABLES)
    return (
        *(
            VariableProblem(
                variable=name,
                message=f"{name}: is not a variable of medproc.",
                hint=f"Do you mean {meant}?",
                id="medproc.W001",
            )
            for name, meant in names.items()
        ),
        *(
            VariableProblem(
                variable=name,
                message=f"{name}: has no effect, because the provider is local.",
                hint="Remove the variable, or set MEDPROC_PROVIDER=gemini.",
                id="medproc.W002",
            )
            for name in env_rules.without_effect(environment)
        ),
        *(
            VariableProblem(
                variable="TRUSTED_PROXIES",
                message="TRUSTED_PROXIES: names no proxy, but ALLOWED_HOSTS names a host beyond"
                " this machine, so the console redirects every page to https without an end.",
                hint="Name the proxy that ends https and sets X-Forwarded-Proto.",
                id="medproc.W003",
            )
            for _ in environment.public_hosts[:1]
            if not environment.TRUSTED_PROXIES and not environment.DEBUG
        ),
    )


def unusable_data_dir(error: OSError) -> VariableProblem:
    """Return the problem of a MEDPROC_DATA_DIR that cannot be created, written or kept private."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _problem("MEDPROC_DATA_DIR", "is on a disk without room (STORAGE_FULL)")
    if error.errno is None:
        # Raised by `medproc.private`, whose message holds the path.
        return _problem(
            "MEDPROC_DATA_DIR",
            "is a link, belongs to another user, or is a folder of root with files that medproc has"
            " not made there",
        )
    return _problem("MEDPROC_DATA_DIR", "cannot be created, written or kept private")


def _read(wrong: Collection[str], files: Mapping[str, SecretFile]) -> Environment:
    """Read the environment and the files of secrets; the default replaces each wrong value."""
    fields = Environment.model_fields
    return Environment(
        **{name: file.text for name, file in files.items()}
        | {name: fields[name].get_default(call_default_factory=True) for name in wrong}
    )


def _problem(variable: str, reason: str, file: SecretFile | None = None) -> VariableProblem:
    """Return the problem of a variable, or of the file that gave its value."""
    field = Environment.model_fields[variable]
    extra = field.json_schema_extra
    assert isinstance(extra, dict)  # noqa: S101 - narrows the type; _variable sets it
    expected = env_values.expected_of(field)
    if file is not None:
        variable += secret_files.SUFFIX
        expected = f"the absolute path of a file with this content: {expected}"
        reason = file.reason or f"names {file.path}, whose content {reason}"
    return VariableProblem(
        variable=variable,
        message=f"{variable}: {reason}.",
        hint=f"Expected: {expected}.",
        id=str(extra["id"]),
    )
