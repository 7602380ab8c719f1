"""Each wrong value of each variable is one problem, whose line holds nothing of the value."""

from __future__ import annotations

from pathlib import Path

import pytest

from medproc import env, env_rules
from tests.support.wrong_values import CANARY, LEAST, wrong_values

TOO_SHORT_TO_SEARCH = 5
"""A value of fewer characters, such as `-1`, can be part of a range in the line."""
SCHEME_ALONE = ":", "/"
"""The ends of values that are only a scheme, which the line may name as the right scheme."""
ACCEPTED = {
    "DATABASE_URL": [
        "postgresql://u:p%40%2F%23%3F%3A%25ss@db.internal:6432/records?sslmode=verify-full",
        "postgres://db/x", "postgresql://u:p@ss@db/x", "postgresql://u@[::1]:5432/x",
        "postgresql://medproc@/medproc?host=/run/postgresql&connect_timeout=3",
    ],
    "REDIS_URL": [
        "redis://cache", "rediss://:p%40ss@cache:6380/2", "unix:///run/v.sock?db=3",
        "redis://u:p@[::1]:6379/15?socket_timeout=2", "rediss://cache?ssl_cert_reqs=none",
    ],
    "GEMINI_BASE_URL": [
        "http://127.0.0.1:8090", "http://localhost:8090", "http://[::1]:8090", "http://127.8.0.1",
        "https://proxy.example.org:8443/gemini", "https://proxy",
    ],
    "OTEL_EXPORTER_OTLP_ENDPOINT": [
        "http://127.0.0.1:4318", "http://localhost:4318/", "https://otlp.example.org:8443/otlp",
    ],
    "OTEL_EXPORTER_OTLP_HEADERS": [
        "api-key=abc", "Authorization=Basic%20dTpw, x-tenant=1", "a=", "a=b=c",
    ],
    "SENTRY_DSN": [
        "https://0123abc@sentry.example.org/42", "http://k@127.0.0.1:9000/1",
        "https://k@example.org/sentry/prefix/7",
    ],
    "ALLOWED_HOSTS": ["*", ".example.org", "a.example.org,10.0.0.1,[::1]", "my_host"],
    "CSRF_TRUSTED_ORIGINS": ["https://*.example.org", "http://localhost:8000,https://b.org"],
    "GEMINI_MODEL": ["models/gemini-2.5-pro", "tunedModels/a_b.1"],
    "GEMINI_PRICE_INPUT_USD_PER_M": ["0", "0.075", "1e1"],
    "RETRY_DELAY_S": ["0", "0.5", "1e3", "604800"],
    "DEBUG": ["true", "false", "1", "no", "ON"],
    "MEDPROC_DATA_DIR": ["/srv/Dr. Who & Co/100% #1"],
}  # fmt: skip


OURS = env.Environment.model_fields


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in OURS:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize("variable", OURS)
def test_fifty_wrong_values_are_refused_in_one_line_without_the_value(
    variable: str, bare_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    values = set(wrong_values(variable, tmp_path))
    assert len(values) >= LEAST
    for value in values:
        bare_environment.setenv(variable, value)

        _, problems = env.load()

        assert [problem.variable for problem in problems] == [variable], repr(value)
        (line,) = problems[0].line.splitlines()
        assert CANARY not in line
        if len(value) >= TOO_SHORT_TO_SEARCH and not value.endswith(SCHEME_ALONE):
            assert value not in line, repr(value)
        assert line.startswith(f"({problems[0].id}) {variable}: ")
        assert " Expected: " in line


@pytest.mark.parametrize(
    ("variable", "value"),
    [(variable, value) for variable, values in ACCEPTED.items() for value in values],
)
def test_a_right_value_is_accepted(
    variable: str, value: str, bare_environment: pytest.MonkeyPatch
) -> None:
    bare_environment.setenv(variable, value)
    if variable == "DATABASE_URL":
        bare_environment.setenv("SECRET_KEY", "k" * 50)
    if variable == "GEMINI_BASE_URL":
        bare_environment.setenv("GEMINI_API_KEY", "k")

    _, problems = env.load()

    assert problems == ()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("GEMINI_RPMS", "GEMINI_RPM"), ("PASS1_MAXRETRIES", "PASS1_MAX_RETRIES"),
        ("gemini_rpm", "GEMINI_RPM"), ("DATABASE_URI", "DATABASE_URL"),
        ("WORKERS_CONCURRENCY", "WORKER_CONCURRENCY"), ("LEASES", "LEASE_S"),
        ("RETRY_DELAY", "RETRY_DELAY_S"), ("MAX_UPLOAD_MIB", "MAX_UPLOAD_MB"),
        ("MEDPROC_DATADIR", "MEDPROC_DATA_DIR"), ("GEMINI_KEY", "GEMINI_API_KEY"),
        ("GATE_COOLDOWN_BASE", "GATE_COOLDOWN_BASE_S"), ("ALLOWED_HOST", "ALLOWED_HOSTS"),
        ("PASS1_CONCURENCY_LIMIT", "PASS1_CONCURRENCY_LIMIT"),
    ],
)  # fmt: skip
def test_a_name_that_looks_misspelt_is_a_warning(name: str, meant: str) -> None:
    assert env_rules.misspelt([name], OURS) == {name: meant}


def test_names_of_other_programs_are_no_warning() -> None:
    others = [
        "PATH", "HOME", "HOSTNAME", "LANG", "PGHOST", "PGDATABASE", "POSTGRES_PASSWORD", "PORT",
        "PYTHONPATH", "VIRTUAL_ENV", "DJANGO_SETTINGS_MODULE", "PASSWORD", "WORKER_TYPE",
        "DEBUGINFOD_URLS",
        "MEDPROC_TEST_SERVERS", "GEMINI_CLI_HOME", "SSH_AUTH_SOCK", "HTTPS_PROXY", "MANPAGER",
        "XDG_DATA_DIRS", "LESSOPEN", "JOB_ID", "DATABASE_HOST", "SECRET", "KUBERNETES_PORT",
    ]  # fmt: skip

    assert (
        env_rules.misspelt([*others, *env.Environment.model_fields], env.Environment.model_fields)
        == {}
    )


def test_a_variable_for_gemini_that_the_local_engine_ignores_is_a_warning(
    bare_environment: pytest.MonkeyPatch,
) -> None:
    bare_environment.setenv("GEMINI_MODEL", "gemini-x")
    environment, problems = env.load()
    warnings = env.warnings_of(environment)
    bare_environment.setenv("GEMINI_API_KEY", "k")

    with_a_key = env.warnings_of(env.load()[0])

    assert problems == ()
    assert [(found.id, found.variable) for found in warnings] == [("medproc.W002", "GEMINI_MODEL")]
    assert with_a_key == ()
