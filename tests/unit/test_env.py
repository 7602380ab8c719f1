"""The typed environment has defaults and bounds, and reports mistakes without their values."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from medproc import env, env_rules, env_values, private
from observability.permissions import Role

EMULATOR = {
    "MEDPROC_PROVIDER": "gemini",
    "GEMINI_API_KEY": "k",
    "GEMINI_BASE_URL": "http://127.0.0.1:9",
}
REAL_SERVICE = {"GEMINI_API_KEY": "k"}

WRONG = {
    "DATABASE_URL": "mysql://root:hunter2@db/x",
    "REDIS_URL": "http://:hunter2@redis",
    "SECRET_KEY": "hunter2",
    "DEBUG": "hunter2",
    "ALLOWED_HOSTS": " , ",
    "WEBHOOK_ALLOWED_HOSTS": "https://hunter2/x",
    "STORAGE_BUCKET": "Hunter2",
    "STORAGE_ENDPOINT_URL": "http://hunter2.org",
    "STORAGE_REGION": "hunter2_x",
    "STORAGE_KEY_ID": "hunter2 hunter2",
    "STORAGE_SECRET_KEY": "hunter2 hunter2",
    "STORAGE_ENCRYPTION": "hunter2",
    "STORAGE_KMS_KEY_ID": "hunter2 hunter2",
    "MEDPROC_PROVIDER": "hunter2",
    "GEMINI_API_KEY": "hunter2 hunter2",
    "GEMINI_BASE_URL": "ftp://hunter2",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://hunter2.org",
    "OTEL_EXPORTER_OTLP_HEADERS": "hunter2",
    "OTEL_SERVICE_NAME": "hunter2 hunter2",
    "OTEL_TRACES_SAMPLER_ARG": "1.1",
    "SENTRY_DSN": "https://hunter2@x",
    "SENTRY_RELEASE": "hunter2 hunter2",
    "GEMINI_RPM": "0",
    "GEMINI_TPM": "hunter2",
    "GEMINI_RPD": "-1",
    "WORKER_CONCURRENCY": "65",
    "WORKER_ID": "hunter2/hunter2",
    "PASS05_CHUNK_PAGES": "1",
    "PASS1_CONCURRENCY_LIMIT": "0",
    "PASS1_ENCOUNTER_LIMIT": "0",
    "PAGES_CONCURRENCY": "0",
    "PASS1_MAX_RETRIES": "0",
    "PASS1_BATCH_MIN_PAGES": "0",
    "PASS1_BATCH_MAX_PAGES": "0",
    "PASS1_BATCH_HARD_CEILING": "1001",
    "PASS1_BATCH_MAX_TOKENS": "10",
    "PASS1_DISABLE_ZONES": "hunter2",
    "PASS_INPUT": "hunter2",
    "SKIPPED_PASSES": "hunter2",
    "CODE_EMBEDDER": "hunter2",
    "CODE_EMBEDDING_MODEL": "hunter2 hunter2",
    "NARRATIVE_MAX_SENTENCES": "0",
    "NARRATIVE_MAX_WORDS": "4",
    "CALL_DEADLINE_S": "120000",
    "STEP_DEADLINE_MIN_S": "0",
    "LEASE_S": "0.5",
    "HEARTBEAT_S": "-1",
    "RECONCILE_S": "0",
    "RATE_LIMIT_BUDGET": "0",
    "RETRY_DELAY_S": "-1",
    "JOB_MAX_RETRIES": "-1",
    "INCIDENT_TICK_S": "0.5",
    "INCIDENT_WINDOW_S": "9",
    "INCIDENT_FAILURES": "0",
    "INCIDENT_SHARE": "1.5",
    "INCIDENT_LIMITED": "0",
    "INCIDENT_SUCCESSES": "0",
    "INCIDENT_PROBE_S": "0",
    "REVIEW_WEIGHT_CONFIDENCE": "1.1",
    "REVIEW_WEIGHT_SLA": "-0.1",
    "REVIEW_WEIGHT_COMPLEXITY": "2",
    "REVIEW_WEIGHT_VALUE": "hunter2",
    "REVIEW_SLA_URGENT_S": "0",
    "REVIEW_SLA_NORMAL_S": "0.5",
    "REVIEW_SLA_LOW_S": "31536001",
    "REVIEW_CLAIM_S": "0",
    "SESSION_IDLE_S": "59",
    "OIDC_ISSUER": "http://hunter2.example.org",
    "OIDC_ROLES": "hunter2=superuser",
    "SESSION_MAX_S": "0",
    "REVIEW_DOUBLE_PERCENT": "101",
    "MAX_UPLOAD_MB": "0",
    "MAX_PAGES": "0",
    "OCR_MIN_CONFIDENCE": "101",
    "PAYLOAD_RETENTION_DAYS": "0",
    "SLA_SNAPSHOT_RETENTION_DAYS": "30",
    "API_UPLOADS_PER_CLIENT": "0",
    "TIME_SCALE": "2",
    "GEMINI_PRICE_INPUT_USD_PER_M": "-1",
    "GEMINI_PRICE_OUTPUT_USD_PER_M": "hunter2",
    "GEMINI_PRICE_EMBEDDING_USD_PER_M": "-1",
    "STOP_GRACE_S": "0",
    "GATE_WINDOW_S": "61",
    "GATE_GUARD_S": "-1",
    "GATE_COOLDOWN_BASE_S": "0",
    "GATE_COOLDOWN_CAP_S": "3601",
    "GATE_QUIET_S": "-1",
    "GATE_RAMP_FIRST": "0",
    "GATE_RAMP_GROWTH": "1",
    "GATE_BREAKER_WINDOW_S": "0.5",
    "GATE_BREAKER_FAILURES": "0",
    "GATE_BREAKER_SHARE": "0",
    "GATE_PROBE_S": "0",
    "GATE_LEASE_S": "hunter2",
    "GATE_LOCAL_SHARE": "1.1",
}

OIDC = {
    "OIDC_ISSUER": "https://login.example.org/realms/clinic",
    "OIDC_CLIENT_ID": "medproc",
    "OIDC_CLIENT_SECRET": "a long secret",
    "OIDC_ROLES": "ops=operator,CN=x=viewer",
}
OWNED = {"SECRET_KEY": "k" * 50, "DATABASE_URL": "postgresql://db/x"}
BUCKET = {"STORAGE_BUCKET": "records", "STORAGE_REGION": "eu-central-1"}
EXPORTER = "opentelemetry.exporter.otlp.proto.http"
CONFLICTS = [
    ("STORAGE_REGION", {"STORAGE_BUCKET": "records"}),
    ("STORAGE_REGION", {"STORAGE_REGION": "eu-central-1"}),
    ("STORAGE_ENDPOINT_URL", {"STORAGE_ENDPOINT_URL": "https://s3.example.org"}),
    ("STORAGE_ENCRYPTION", {"STORAGE_ENCRYPTION": "AES256"}),
    ("STORAGE_SECRET_KEY", {**BUCKET, "STORAGE_KEY_ID": "k"}),
    ("STORAGE_KEY_ID", {**BUCKET, "STORAGE_SECRET_KEY": "s"}),
    ("STORAGE_KMS_KEY_ID", {**BUCKET, "STORAGE_ENCRYPTION": "AES256", "STORAGE_KMS_KEY_ID": "k"}),
    ("PASS1_BATCH_MIN_PAGES", {"PASS1_BATCH_MIN_PAGES": "11"}),
    ("PASS1_BATCH_MAX_PAGES", {"PASS1_BATCH_MAX_PAGES": "51"}),
    ("HEARTBEAT_S", {"HEARTBEAT_S": "30"}),
    ("STEP_DEADLINE_MIN_S", {"STEP_DEADLINE_MIN_S": "60"}),
    ("CALL_DEADLINE_S", {**REAL_SERVICE, "CALL_DEADLINE_S": "9.9"}),
    ("TIME_SCALE", {**REAL_SERVICE, "TIME_SCALE": "0.5"}),
    ("GATE_WINDOW_S", {**REAL_SERVICE, "GATE_WINDOW_S": "6"}),
    ("GATE_COOLDOWN_CAP_S", {"GATE_COOLDOWN_CAP_S": "4.9"}),
    ("GATE_LEASE_S", {"GATE_LEASE_S": "120"}),
    ("REVIEW_WEIGHT_CONFIDENCE", {"REVIEW_WEIGHT_VALUE": "0.2"}),
    ("INCIDENT_WINDOW_S", {"INCIDENT_WINDOW_S": "10", "INCIDENT_TICK_S": "11"}),
    ("MEDPROC_PROVIDER", {"MEDPROC_PROVIDER": "gemini"}),
    ("GEMINI_BASE_URL", {"GEMINI_BASE_URL": "http://127.0.0.1:9"}),
    ("AUDIT_HEADS_DIR", {"MEDPROC_DATA_DIR": "/srv/medproc", "AUDIT_HEADS_DIR": "/srv/medproc"}),
    ("AUDIT_HEADS_DIR", {"MEDPROC_DATA_DIR": "/srv/medproc", "AUDIT_HEADS_DIR": "/srv/medproc/h"}),
    ("DATABASE_OWNER_URL", {"DATABASE_OWNER_URL": "postgresql://owner@db/x"}),
    ("DATABASE_OWNER_URL", {**OWNED, "DATABASE_OWNER_URL": "postgresql://owner@db/y"}),
    ("PASS_INPUT", {"PASS_INPUT": "pdf"}),
    ("CODE_EMBEDDER", {"CODE_EMBEDDER": "gemini"}),
    ("SKIPPED_PASSES", {"SKIPPED_PASSES": "pass2"}),
    ("SECRET_KEY", {"DATABASE_URL": "postgresql://db/x"}),
    ("DEBUG", {"DEBUG": "true", "ALLOWED_HOSTS": "medproc.example.org"}),
    *(
        (name, {**OIDC, name: ""})
        for name in ("OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "OIDC_ROLES")
    ),
    *(
        (name, {name: value})
        for name, value in (
            ("OIDC_CLIENT_ID", "medproc"),
            ("OIDC_ROLES", "ops=operator"),
            ("OIDC_ACR", "phr"),
            ("OIDC_AMR", "mfa"),
            ("OIDC_ONLY", "true"),
        )
    ),
    ("CSRF_TRUSTED_ORIGINS", {"CSRF_TRUSTED_ORIGINS": "medproc.example.org"}),
]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in env.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def _set(monkeypatch: pytest.MonkeyPatch, values: dict[str, str]) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def test_an_empty_environment_is_right_and_has_the_documented_defaults() -> None:
    environment, problems = env.load()

    assert problems == ()
    assert environment.provider == "local"
    assert environment.DEBUG is False
    assert (environment.WORKER_CONCURRENCY, environment.PASS1_CONCURRENCY_LIMIT) == (3, 30)
    assert environment.PASS1_ENCOUNTER_LIMIT == 120
    assert (
        environment.PASS1_BATCH_MIN_PAGES,
        environment.PASS1_BATCH_MAX_PAGES,
        environment.PASS1_BATCH_HARD_CEILING,
        environment.PASS1_BATCH_MAX_TOKENS,
    ) == (3, 10, 50, 24_000)
    assert (environment.PASS05_CHUNK_PAGES, environment.PASS1_MAX_RETRIES) == (50, 3)
    assert (environment.GEMINI_RPM, environment.GEMINI_TPM) == (300, 1_000_000)
    assert (environment.CALL_DEADLINE_S, environment.STEP_DEADLINE_MIN_S) == (120, 300)
    assert (environment.LEASE_S, environment.HEARTBEAT_S, environment.RECONCILE_S) == (60, 15, 15)
    assert (environment.RATE_LIMIT_BUDGET, environment.RETRY_DELAY_S) == (20, 300)
    assert (environment.OCR_MIN_CONFIDENCE, environment.PAYLOAD_RETENTION_DAYS) == (40, 30)


@pytest.mark.parametrize("variable", WRONG)
def test_a_wrong_value_is_one_problem_with_id_and_hint_that_quotes_nothing(
    variable: str, bare_environment: pytest.MonkeyPatch
) -> None:
    bare_environment.setenv(variable, WRONG[variable])

    environment, problems = env.load()

    (problem,) = problems
    assert problem.variable == variable
    assert problem.message.startswith(f"{variable}: ")
    assert problem.id.startswith("medproc.E")
    assert problem.hint
    assert "hunter2" not in repr(problem)
    default = env.Environment.model_fields[variable].get_default(call_default_factory=True)
    assert getattr(environment, variable) == default


def test_pages_can_be_sent_to_gemini_but_not_to_the_local_engine(
    bare_environment: pytest.MonkeyPatch,
) -> None:
    bare_environment.setenv("PASS_INPUT", "pdf")

    _, problems = env.load()
    _set(bare_environment, EMULATOR)
    environment, none_with_gemini = env.load()

    assert [problem.variable for problem in problems] == ["PASS_INPUT"]
    assert "gemini" in problems[0].message
    assert none_with_gemini == ()
    assert environment.PASS_INPUT == "pdf"


def test_every_wrong_value_is_reported_at_once(bare_environment: pytest.MonkeyPatch) -> None:
    _set(bare_environment, WRONG)

    _, problems = env.load()

    assert {problem.variable for problem in problems} == set(WRONG)


@pytest.mark.parametrize(("variable", "values"), CONFLICTS)
def test_values_that_contradict_each_other_are_one_problem(
    variable: str, values: dict[str, str], bare_environment: pytest.MonkeyPatch
) -> None:
    _set(bare_environment, values)

    _, problems = env.load()

    assert [problem.variable for problem in problems] == [variable]


@pytest.mark.parametrize(
    ("variable", "value", "missing"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://x", "opentelemetry"),
        ("SENTRY_DSN", "https://k@x/7", "sentry_sdk"),
    ],
)
def test_a_variable_whose_extra_is_not_installed_stops_the_start_with_one_line(
    variable: str, value: str, missing: str, tmp_path: Path
) -> None:
    # Python runs this module before all others; to the process, the package does not exist.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {missing!r}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
    )

    ran = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=env.PROJECT_ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path), variable: value},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"({env.Environment.model_fields[variable].json_schema_extra['id']})")  # type: ignore[index]  # _variable sets a dict
    assert f"{variable}: is set, but the extra `" in line
    assert "requirements-extras.lock" in line


def test_each_rule_between_variables_has_a_case_that_breaks_it(
    bare_environment: pytest.MonkeyPatch,
) -> None:
    broken = set()
    # As if the packages of the extras were not installed.
    for name in ("boto3", "mozilla_django_oidc", "sentry_sdk", EXPORTER):
        bare_environment.setitem(sys.modules, name, None)
    extras = {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://x", "SENTRY_DSN": "https://k@x/7"}
    for values in (*(values for _, values in CONFLICTS), extras):
        with bare_environment.context() as patch:
            _set(patch, values)
            environment, _ = env.load()
        broken |= {rule.reason for rule in env_rules.RULES if rule.is_broken(environment)}

    assert broken == {rule.reason for rule in env_rules.RULES}


def test_a_bucket_needs_the_packages_of_the_extra(bare_environment: pytest.MonkeyPatch) -> None:
    _set(bare_environment, BUCKET)

    _, installed = env.load()
    # As if the package were not installed.
    bare_environment.setitem(sys.modules, "boto3", None)
    _, (problem,) = env.load()

    assert installed == ()
    assert problem.line.startswith("(medproc.E150) STORAGE_BUCKET: is set, but the extra `s3`")


def test_a_second_place_for_audit_heads_and_an_owner_of_the_same_database_are_right(
    bare_environment: pytest.MonkeyPatch,
) -> None:
    _set(
        bare_environment,
        {
            **OWNED,
            "DATABASE_OWNER_URL": "postgresql://owner@db/x",
            "MEDPROC_DATA_DIR": "/srv/medproc",
            "AUDIT_HEADS_DIR": "/srv/medproc-heads",
        },
    )

    _, problems = env.load()

    assert problems == ()


def test_each_variable_has_a_check_of_its_own() -> None:
    extras = [field.json_schema_extra for field in env.Environment.model_fields.values()]

    ids = [extra["id"] for extra in extras if isinstance(extra, dict)]

    assert len(set(ids)) == len(env.Environment.model_fields)


@pytest.mark.parametrize("seconds", ["0.3", "60"])
def test_an_emulator_may_have_any_call_deadline(
    seconds: str, bare_environment: pytest.MonkeyPatch
) -> None:
    _set(bare_environment, {**EMULATOR, "CALL_DEADLINE_S": seconds, "TIME_SCALE": "0.02"})

    environment, problems = env.load()

    assert problems == ()
    assert float(seconds) == environment.CALL_DEADLINE_S


@pytest.mark.parametrize(
    ("values", "provider"),
    [
        ({}, "local"),
        (REAL_SERVICE, "gemini"),
        ({**REAL_SERVICE, "MEDPROC_PROVIDER": "local"}, "local"),
    ],
)
def test_a_key_makes_the_provider_gemini_unless_one_is_named(
    values: dict[str, str], provider: str, bare_environment: pytest.MonkeyPatch
) -> None:
    _set(bare_environment, values)

    environment, problems = env.load()

    assert problems == ()
    assert environment.provider == provider


def test_an_empty_variable_counts_as_unset(bare_environment: pytest.MonkeyPatch) -> None:
    _set(bare_environment, {"DATABASE_URL": "", "GEMINI_RPD": "", "WORKER_CONCURRENCY": ""})

    environment, problems = env.load()

    assert problems == ()
    assert environment.DATABASE_URL is None
    assert environment.WORKER_CONCURRENCY == 3


def test_lists_are_separated_by_commas(bare_environment: pytest.MonkeyPatch) -> None:
    bare_environment.setenv("ALLOWED_HOSTS", "a.example.org, localhost ,")

    environment, _ = env.load()

    assert environment.ALLOWED_HOSTS == ("a.example.org", "localhost")
    assert environment.public_hosts == ("a.example.org",)


def test_an_identity_provider_is_right_with_client_secret_and_roles(
    bare_environment: pytest.MonkeyPatch,
) -> None:
    _set(bare_environment, OIDC)

    environment, problems = env.load()
    # As if the package were not installed.
    bare_environment.setitem(sys.modules, "mozilla_django_oidc", None)
    _, (problem,) = env.load()

    assert problems == ()
    assert problem.line.startswith("(medproc.E124) OIDC_ISSUER: is set, but the extra `oidc`")
    # A group may hold an equals sign.
    assert environment.OIDC_ROLES == ("ops=operator", "CN=x=viewer")
    assert tuple(Role) == env_values.ROLES


@pytest.mark.parametrize("pair", ["ops=operator;x=viewer", "ops=operator x=viewer"])
def test_two_pairs_without_a_comma_are_no_group(pair: str) -> None:
    with pytest.raises(ValueError, match="not group=role"):
        env_values.check_roles((pair,))


def test_secrets_are_masked_in_the_repr_and_whole_as_text(
    bare_environment: pytest.MonkeyPatch,
) -> None:
    _set(
        bare_environment,
        {
            "DATABASE_URL": "postgresql://u:hunter2@db/x",
            "REDIS_URL": "redis://:hunter2@redis",
            "SECRET_KEY": "hunter2" * 8,
            "GEMINI_API_KEY": "hunter2",
        },
    )

    environment, problems = env.load()

    assert problems == ()
    assert "hunter2" not in repr(environment)
    assert environment.GEMINI_API_KEY is not None
    assert str(environment.GEMINI_API_KEY) == "hunter2"


def test_each_variable_is_a_setting_of_the_same_name() -> None:
    missing = [name for name in env.Environment.model_fields if not hasattr(settings, name)]

    assert missing == []


def test_a_data_folder_that_is_a_link_is_said_to_be_one_without_its_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(PermissionError) as refused:
        private.handed_over(tmp_path / "link", uid=os.geteuid(), gid=os.getegid())

    problem = env.unusable_data_dir(refused.value)

    assert "is a link, belongs to another user" in problem.message
    assert str(tmp_path) not in f"{problem.message} {problem.hint}"
