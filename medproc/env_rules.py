"""The rules between variables of the environment, and the hints about variables without an effect.

A rule names the variables that it reads. A rule is not applied while one of them has a wrong value,
so that each mistake is reported once.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from medproc.secret_files import SUFFIX

if TYPE_CHECKING:
    from medproc.env import Environment

SERVICE_MIN_TIMEOUT_S = 10.0
"""The shortest `X-Server-Timeout` that the Gemini service accepts, in seconds."""
SIMILAR = 0.86
"""How similar two names must be to count as a misspelling; 1 means equal."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,63}")
_OURS = re.compile(r"(GATE|GEMINI|INCIDENT|MEDPROC|OIDC|PASS|PASS05|PASS1|REVIEW|STORAGE)_")
_OTHERS = ("MEDPROC_TEST_", "GEMINI_CLI_")
"""Names that other programs use: the test suite, and Google's command line."""
_ONLY_GEMINI = (
    "GEMINI_BASE_URL", "GEMINI_MODEL", "GEMINI_PRICE_INPUT_USD_PER_M",
    "GEMINI_PRICE_OUTPUT_USD_PER_M", "GEMINI_PRICE_EMBEDDING_USD_PER_M",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class VariableRule:
    """A combination of right values that is wrong: the variable to blame, and the reason."""

    variable: str
    reason: str
    is_broken: Callable[[Environment], bool]
    reads: frozenset[str] = frozenset()
    """The other variables of the rule."""


def _rule(
    variable: str, reason: str, is_broken: Callable[[Environment], bool], *reads: str
) -> VariableRule:
    return VariableRule(
        variable=variable, reason=reason, is_broken=is_broken, reads=frozenset(reads)
    )


def _missing_for_oidc(variable: str) -> VariableRule:
    return _rule(
        variable,
        "is not set, although OIDC_ISSUER is set",
        lambda env: env.OIDC_ISSUER is not None and not getattr(env, variable),
        "OIDC_ISSUER",
    )


def _only_with(needed: str, variable: str) -> VariableRule:
    return _rule(
        variable,
        f"is set, but {needed} is not",
        lambda env: getattr(env, needed) is None and bool(getattr(env, variable)),
        needed,
    )


def _needs_extra(variable: str, extra: str, *modules: str) -> VariableRule:
    return _rule(
        variable,
        f"is set, but the extra `{extra}` is not installed;"
        " install requirements-extras.lock with pip",
        lambda env: getattr(env, variable) is not None and not all(map(_is_installed, modules)),
    )


_WEIGHTS = (
    "REVIEW_WEIGHT_CONFIDENCE", "REVIEW_WEIGHT_SLA", "REVIEW_WEIGHT_COMPLEXITY",
    "REVIEW_WEIGHT_VALUE",
)  # fmt: skip
_OF_BUCKET = (
    "STORAGE_ENDPOINT_URL", "STORAGE_REGION", "STORAGE_KEY_ID", "STORAGE_ENCRYPTION",
    "STORAGE_KMS_KEY_ID",
)  # fmt: skip
_OF_OIDC = ("OIDC_CLIENT_ID", "OIDC_ROLES", "OIDC_ACR", "OIDC_AMR", "OIDC_ONLY")
_SERVICE = ("MEDPROC_PROVIDER", "GEMINI_API_KEY", "GEMINI_BASE_URL")
RULES = (
    _rule(
        "SKIPPED_PASSES",
        "names pass2 without pass3, which needs the results of pass2",
        lambda env: "pass2" in env.SKIPPED_PASSES and "pass3" not in env.SKIPPED_PASSES,
    ),
    _rule(
        "PASS1_BATCH_MIN_PAGES",
        "is greater than PASS1_BATCH_MAX_PAGES",
        lambda env: env.PASS1_BATCH_MIN_PAGES > env.PASS1_BATCH_MAX_PAGES,
        "PASS1_BATCH_MAX_PAGES",
    ),
    _rule(
        "PASS1_BATCH_MAX_PAGES",
        "is greater than PASS1_BATCH_HARD_CEILING",
        lambda env: env.PASS1_BATCH_MAX_PAGES > env.PASS1_BATCH_HARD_CEILING,
        "PASS1_BATCH_HARD_CEILING",
    ),
    _rule(
        "HEARTBEAT_S",
        "is not less than half of LEASE_S, so one late beat would lose the lease",
        lambda env: env.HEARTBEAT_S >= env.LEASE_S / 2,
        "LEASE_S",
    ),
    _rule(
        "STEP_DEADLINE_MIN_S",
        "is less than CALL_DEADLINE_S, so a step could not outlive one call",
        lambda env: env.STEP_DEADLINE_MIN_S < env.CALL_DEADLINE_S,
        "CALL_DEADLINE_S",
    ),
    _rule(
        "CALL_DEADLINE_S",
        "is less than 10 s, the shortest timeout of the service (is it in minutes?)",
        lambda env: (
            env.calls_the_service and env.CALL_DEADLINE_S * env.TIME_SCALE < SERVICE_MIN_TIMEOUT_S
        ),
        "TIME_SCALE",
        *_SERVICE,
    ),
    _rule(
        "TIME_SCALE",
        "is for rehearsals against an emulator, not for the real service",
        lambda env: env.TIME_SCALE < 1 and env.calls_the_service,
        *_SERVICE,
    ),
    _rule(
        "GATE_WINDOW_S",
        "is for rehearsals against an emulator; the real service's minute has 60 s",
        lambda env: env.GATE_WINDOW_S < 60 and env.calls_the_service,
        *_SERVICE,
    ),
    _rule(
        "GATE_COOLDOWN_CAP_S",
        "is less than GATE_COOLDOWN_BASE_S",
        lambda env: env.GATE_COOLDOWN_CAP_S < env.GATE_COOLDOWN_BASE_S,
        "GATE_COOLDOWN_BASE_S",
    ),
    _rule(
        "GATE_LEASE_S",
        "is not more than CALL_DEADLINE_S, so a call could outlive its lease",
        lambda env: env.GATE_LEASE_S is not None and env.GATE_LEASE_S <= env.CALL_DEADLINE_S,
        "CALL_DEADLINE_S",
    ),
    _rule(
        "INCIDENT_WINDOW_S",
        "is less than INCIDENT_TICK_S, so calls between two ticks would not be seen",
        lambda env: env.INCIDENT_WINDOW_S < env.INCIDENT_TICK_S,
        "INCIDENT_TICK_S",
    ),
    _rule(
        "REVIEW_WEIGHT_CONFIDENCE",
        "does not make 1 together with the three other weights, so a priority could exceed 1",
        lambda env: abs(sum(getattr(env, name) for name in _WEIGHTS) - 1) > 1e-6,
        *_WEIGHTS[1:],
    ),
    _rule(
        "MEDPROC_PROVIDER",
        "is gemini, but GEMINI_API_KEY is not set",
        lambda env: env.calls_the_service and not env.GEMINI_API_KEY,
        "GEMINI_API_KEY",
        "GEMINI_BASE_URL",
    ),
    _rule(
        "GEMINI_BASE_URL",
        "is set, but the provider is local: set MEDPROC_PROVIDER=gemini or GEMINI_API_KEY too",
        lambda env: (
            env.GEMINI_BASE_URL is not None
            and env.MEDPROC_PROVIDER is None
            and env.provider == "local"
        ),
        "MEDPROC_PROVIDER",
        "GEMINI_API_KEY",
    ),
    _rule(
        "AUDIT_HEADS_DIR",
        "is not outside MEDPROC_DATA_DIR",
        lambda env: (
            env.AUDIT_HEADS_DIR is not None
            and env.AUDIT_HEADS_DIR.is_relative_to(env.MEDPROC_DATA_DIR)
        ),
        "MEDPROC_DATA_DIR",
    ),
    _rule(
        "DATABASE_OWNER_URL",
        "is set, but DATABASE_URL is not",
        lambda env: env.DATABASE_OWNER_URL is not None and env.DATABASE_URL is None,
        "DATABASE_URL",
    ),
    _rule(
        "DATABASE_OWNER_URL",
        "names another database than DATABASE_URL",
        lambda env: (
            env.DATABASE_OWNER_URL is not None
            and env.DATABASE_URL is not None
            and urlsplit(env.DATABASE_OWNER_URL).path != urlsplit(env.DATABASE_URL).path
        ),
        "DATABASE_URL",
    ),
    _rule(
        "PASS_INPUT",
        "is pdf, which needs the provider gemini; the local engine reads only text",
        lambda env: env.provider == "local" and env.PASS_INPUT == "pdf",  # noqa: S105 - a mode
        *_SERVICE,
    ),
    _rule(
        "CODE_EMBEDDER",
        "is gemini, which needs the provider gemini; the local engine calls no service",
        lambda env: env.provider == "local" and env.CODE_EMBEDDER == "gemini",
        *_SERVICE,
    ),
    _needs_extra("STORAGE_BUCKET", "s3", "boto3", "storages"),
    *(_only_with("STORAGE_BUCKET", variable) for variable in _OF_BUCKET),
    _rule(
        "STORAGE_REGION",
        "is not set, although STORAGE_BUCKET is and STORAGE_ENDPOINT_URL is not",
        lambda env: (
            env.STORAGE_BUCKET is not None
            and env.STORAGE_ENDPOINT_URL is None
            and env.STORAGE_REGION is None
        ),
        "STORAGE_BUCKET",
        "STORAGE_ENDPOINT_URL",
    ),
    _rule(
        "STORAGE_SECRET_KEY",
        "is not set, although STORAGE_KEY_ID is",
        lambda env: env.STORAGE_KEY_ID is not None and env.STORAGE_SECRET_KEY is None,
        "STORAGE_KEY_ID",
    ),
    _rule(
        "STORAGE_KEY_ID",
        "is not set, although STORAGE_SECRET_KEY is",
        lambda env: (
            env.STORAGE_BUCKET is not None
            and env.STORAGE_SECRET_KEY is not None
            and env.STORAGE_KEY_ID is None
        ),
        "STORAGE_BUCKET",
        "STORAGE_SECRET_KEY",
    ),
    _rule(
        "STORAGE_KMS_KEY_ID",
        "is set, but STORAGE_ENCRYPTION is not aws:kms",
        lambda env: env.STORAGE_KMS_KEY_ID is not None and env.STORAGE_ENCRYPTION != "aws:kms",
        "STORAGE_ENCRYPTION",
    ),
    _rule(
        "SECRET_KEY",
        "is not set, although DATABASE_URL is set (only a try-out may go without)",
        lambda env: env.SECRET_KEY is None and env.DATABASE_URL is not None and not env.DEBUG,
        "DATABASE_URL",
        "DEBUG",
    ),
    _needs_extra("OIDC_ISSUER", "oidc", "mozilla_django_oidc"),
    _needs_extra(
        "OTEL_EXPORTER_OTLP_ENDPOINT", "tracing", "opentelemetry.exporter.otlp.proto.http"
    ),
    _needs_extra("SENTRY_DSN", "sentry", "sentry_sdk"),
    *map(_missing_for_oidc, ("OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "OIDC_ROLES")),
    *(_only_with("OIDC_ISSUER", variable) for variable in _OF_OIDC),
    _rule(
        "DEBUG",
        "is true, but ALLOWED_HOSTS names a host beyond this machine, to which pages of errors"
        " would show patients' data",
        lambda env: env.DEBUG and bool(env.public_hosts),
        "ALLOWED_HOSTS",
    ),
)


def broken_rules(env: Environment, wrong: Collection[str]) -> dict[str, str]:
    """Return the reason of each variable that breaks a rule, the first reason of each."""
    found: dict[str, str] = {}
    for rule in RULES:
        if not ({rule.variable, *rule.reads} & set(wrong)) and rule.is_broken(env):
            found.setdefault(rule.variable, rule.reason)
    return found


def misspelt(names: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Return the name that is meant for each name that looks like a misspelling of ours."""
    by_shape = {_shape(name): name for name in known}
    found = {}
    for name in names:
        if name in known or not _NAME.fullmatch(name) or name.startswith(_OTHERS):
            continue
        if (value := name.removesuffix(SUFFIX)) in known:
            # Only a secret can come from a file.
            found[name] = value
            continue
        close = difflib.get_close_matches(
            _shape(name), by_shape, n=1, cutoff=0.6 if _OURS.match(name.upper()) else SIMILAR
        )
        if close:
            found[name] = by_shape[close[0]]
    return found


def without_effect(env: Environment) -> list[str]:
    """Return the variables that are set for Gemini while the provider is local."""
    if env.provider != "local":
        return []
    return [name for name in _ONLY_GEMINI if name in env.model_fields_set]


def _is_installed(module: str) -> bool:
    """Return whether a module of an optional package can be imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def _shape(name: str) -> str:
    return name.upper().replace("_", "")
