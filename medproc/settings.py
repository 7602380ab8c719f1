"""The Django settings. They read the environment once, through `env.py`, and start nothing.

Every variable of `env.Environment` is also a setting of the same name. Without DATABASE_URL or
REDIS_URL the addresses are those of the embedded servers, whether these run or not.
"""

from __future__ import annotations

from django.core.management.utils import get_random_secret_key

from medproc import addresses, embedded, env, logs, private
from medproc.secret_files import Secret

ENVIRONMENT, ENVIRONMENT_PROBLEMS = env.load()
ENVIRONMENT_WARNINGS = env.warnings_of(ENVIRONMENT)

BASE_DIR = env.PROJECT_ROOT
DEBUG = ENVIRONMENT.DEBUG
ALLOWED_HOSTS = list(ENVIRONMENT.ALLOWED_HOSTS)
CSRF_TRUSTED_ORIGINS = list(ENVIRONMENT.CSRF_TRUSTED_ORIGINS)
MEDPROC_DATA_DIR = ENVIRONMENT.MEDPROC_DATA_DIR.absolute()
AUDIT_HEADS_DIR = ENVIRONMENT.AUDIT_HEADS_DIR
TRUSTED_PROXIES = list(ENVIRONMENT.TRUSTED_PROXIES)
OIDC_ISSUER = ENVIRONMENT.OIDC_ISSUER
OIDC_CLIENT_ID = ENVIRONMENT.OIDC_CLIENT_ID
OIDC_CLIENT_SECRET = ENVIRONMENT.OIDC_CLIENT_SECRET
OIDC_ROLES = ENVIRONMENT.OIDC_ROLES
OIDC_GROUPS_CLAIM = ENVIRONMENT.OIDC_GROUPS_CLAIM
OIDC_SCOPES = ENVIRONMENT.OIDC_SCOPES
OIDC_ACR = ENVIRONMENT.OIDC_ACR
OIDC_AMR = ENVIRONMENT.OIDC_AMR
OIDC_NAME = ENVIRONMENT.OIDC_NAME
OIDC_ONLY = ENVIRONMENT.OIDC_ONLY
METRICS_TOKEN = ENVIRONMENT.METRICS_TOKEN
WEBHOOK_ALLOWED_HOSTS = [each.lower().strip("[]") for each in ENVIRONMENT.WEBHOOK_ALLOWED_HOSTS]
OTEL_EXPORTER_OTLP_ENDPOINT = ENVIRONMENT.OTEL_EXPORTER_OTLP_ENDPOINT
OTEL_EXPORTER_OTLP_HEADERS = ENVIRONMENT.OTEL_EXPORTER_OTLP_HEADERS
OTEL_SERVICE_NAME = ENVIRONMENT.OTEL_SERVICE_NAME
OTEL_TRACES_SAMPLER_ARG = ENVIRONMENT.OTEL_TRACES_SAMPLER_ARG
SENTRY_DSN = ENVIRONMENT.SENTRY_DSN
SENTRY_RELEASE = ENVIRONMENT.SENTRY_RELEASE
WEB_WORKERS = ENVIRONMENT.WEB_WORKERS
WORKER_NICE = ENVIRONMENT.WORKER_NICE
WEB_THREADS = ENVIRONMENT.WEB_THREADS
API_UPLOADS_PER_CLIENT = ENVIRONMENT.API_UPLOADS_PER_CLIENT
STORAGE_BUCKET = ENVIRONMENT.STORAGE_BUCKET
STORAGE_ENDPOINT_URL = ENVIRONMENT.STORAGE_ENDPOINT_URL
STORAGE_REGION = ENVIRONMENT.STORAGE_REGION
STORAGE_KEY_ID = ENVIRONMENT.STORAGE_KEY_ID
STORAGE_SECRET_KEY = ENVIRONMENT.STORAGE_SECRET_KEY
STORAGE_ENCRYPTION = ENVIRONMENT.STORAGE_ENCRYPTION
STORAGE_KMS_KEY_ID = ENVIRONMENT.STORAGE_KMS_KEY_ID
MEDPROC_PROVIDER = ENVIRONMENT.provider
GEMINI_API_KEY = ENVIRONMENT.GEMINI_API_KEY
GEMINI_BASE_URL = ENVIRONMENT.GEMINI_BASE_URL
GEMINI_MODEL = ENVIRONMENT.GEMINI_MODEL
GEMINI_RPM = ENVIRONMENT.GEMINI_RPM
GEMINI_TPM = ENVIRONMENT.GEMINI_TPM
GEMINI_RPD = ENVIRONMENT.GEMINI_RPD
WORKER_CONCURRENCY = ENVIRONMENT.WORKER_CONCURRENCY
WORKER_ID = ENVIRONMENT.WORKER_ID
PASS05_CHUNK_PAGES = ENVIRONMENT.PASS05_CHUNK_PAGES
PASS1_CONCURRENCY_LIMIT = ENVIRONMENT.PASS1_CONCURRENCY_LIMIT
PASS1_ENCOUNTER_LIMIT = ENVIRONMENT.PASS1_ENCOUNTER_LIMIT
PAGES_CONCURRENCY = ENVIRONMENT.PAGES_CONCURRENCY
PASS1_MAX_RETRIES = ENVIRONMENT.PASS1_MAX_RETRIES
PASS1_BATCH_MIN_PAGES = ENVIRONMENT.PASS1_BATCH_MIN_PAGES
PASS1_BATCH_MAX_PAGES = ENVIRONMENT.PASS1_BATCH_MAX_PAGES
PASS1_BATCH_HARD_CEILING = ENVIRONMENT.PASS1_BATCH_HARD_CEILING
PASS1_BATCH_MAX_TOKENS = ENVIRONMENT.PASS1_BATCH_MAX_TOKENS
PASS1_DISABLE_ZONES = ENVIRONMENT.PASS1_DISABLE_ZONES
PASS_INPUT = ENVIRONMENT.PASS_INPUT
SKIPPED_PASSES = ENVIRONMENT.SKIPPED_PASSES
CODE_EMBEDDER = ENVIRONMENT.CODE_EMBEDDER
CODE_EMBEDDING_MODEL = ENVIRONMENT.CODE_EMBEDDING_MODEL
NARRATIVE_MAX_SENTENCES = ENVIRONMENT.NARRATIVE_MAX_SENTENCES
NARRATIVE_MAX_WORDS = ENVIRONMENT.NARRATIVE_MAX_WORDS
CALL_DEADLINE_S = ENVIRONMENT.CALL_DEADLINE_S
STEP_DEADLINE_MIN_S = ENVIRONMENT.STEP_DEADLINE_MIN_S
LEASE_S = ENVIRONMENT.LEASE_S
HEARTBEAT_S = ENVIRONMENT.HEARTBEAT_S
RECONCILE_S = ENVIRONMENT.RECONCILE_S
ALARM_WAITING_S = ENVIRONMENT.ALARM_WAITING_S
ALARM_RUNNING_S = ENVIRONMENT.ALARM_RUNNING_S
RATE_LIMIT_BUDGET = ENVIRONMENT.RATE_LIMIT_BUDGET
RETRY_DELAY_S = ENVIRONMENT.RETRY_DELAY_S
JOB_MAX_RETRIES = ENVIRONMENT.JOB_MAX_RETRIES
INCIDENT_TICK_S = ENVIRONMENT.INCIDENT_TICK_S
INCIDENT_WINDOW_S = ENVIRONMENT.INCIDENT_WINDOW_S
INCIDENT_FAILURES = ENVIRONMENT.INCIDENT_FAILURES
INCIDENT_SHARE = ENVIRONMENT.INCIDENT_SHARE
INCIDENT_LIMITED = ENVIRONMENT.INCIDENT_LIMITED
INCIDENT_SUCCESSES = ENVIRONMENT.INCIDENT_SUCCESSES
INCIDENT_PROBE_S = ENVIRONMENT.INCIDENT_PROBE_S
SLA_URGENT_S = ENVIRONMENT.SLA_URGENT_S
SLA_NORMAL_S = ENVIRONMENT.SLA_NORMAL_S
SLA_LOW_S = ENVIRONMENT.SLA_LOW_S
REVIEW_WEIGHT_CONFIDENCE = ENVIRONMENT.REVIEW_WEIGHT_CONFIDENCE
REVIEW_WEIGHT_SLA = ENVIRONMENT.REVIEW_WEIGHT_SLA
REVIEW_WEIGHT_COMPLEXITY = ENVIRONMENT.REVIEW_WEIGHT_COMPLEXITY
REVIEW_WEIGHT_VALUE = ENVIRONMENT.REVIEW_WEIGHT_VALUE
REVIEW_SLA_URGENT_S = ENVIRONMENT.REVIEW_SLA_URGENT_S
REVIEW_SLA_NORMAL_S = ENVIRONMENT.REVIEW_SLA_NORMAL_S
REVIEW_SLA_LOW_S = ENVIRONMENT.REVIEW_SLA_LOW_S
REVIEW_CLAIM_S = ENVIRONMENT.REVIEW_CLAIM_S
REVIEW_DOUBLE_PERCENT = ENVIRONMENT.REVIEW_DOUBLE_PERCENT
MAX_UPLOAD_MB = ENVIRONMENT.MAX_UPLOAD_MB
MAX_PAGES = ENVIRONMENT.MAX_PAGES
OCR_MIN_CONFIDENCE = ENVIRONMENT.OCR_MIN_CONFIDENCE
PAYLOAD_RETENTION_DAYS = ENVIRONMENT.PAYLOAD_RETENTION_DAYS
SLA_SNAPSHOT_RETENTION_DAYS = ENVIRONMENT.SLA_SNAPSHOT_RETENTION_DAYS
TIME_SCALE = ENVIRONMENT.TIME_SCALE
STOP_GRACE_S = ENVIRONMENT.STOP_GRACE_S
PREEMPT_AFTER_S = ENVIRONMENT.PREEMPT_AFTER_S
GEMINI_PRICE_INPUT_USD_PER_M = ENVIRONMENT.GEMINI_PRICE_INPUT_USD_PER_M
GEMINI_PRICE_OUTPUT_USD_PER_M = ENVIRONMENT.GEMINI_PRICE_OUTPUT_USD_PER_M
GEMINI_PRICE_EMBEDDING_USD_PER_M = ENVIRONMENT.GEMINI_PRICE_EMBEDDING_USD_PER_M
GATE_WINDOW_S = ENVIRONMENT.GATE_WINDOW_S
GATE_GUARD_S = ENVIRONMENT.GATE_GUARD_S
GATE_COOLDOWN_BASE_S = ENVIRONMENT.GATE_COOLDOWN_BASE_S
GATE_COOLDOWN_CAP_S = ENVIRONMENT.GATE_COOLDOWN_CAP_S
GATE_QUIET_S = ENVIRONMENT.GATE_QUIET_S
GATE_RAMP_FIRST = ENVIRONMENT.GATE_RAMP_FIRST
GATE_RAMP_GROWTH = ENVIRONMENT.GATE_RAMP_GROWTH
GATE_BREAKER_WINDOW_S = ENVIRONMENT.GATE_BREAKER_WINDOW_S
GATE_BREAKER_FAILURES = ENVIRONMENT.GATE_BREAKER_FAILURES
GATE_BREAKER_SHARE = ENVIRONMENT.GATE_BREAKER_SHARE
GATE_PROBE_S = ENVIRONMENT.GATE_PROBE_S
GATE_LEASE_S = ENVIRONMENT.GATE_LEASE_S
GATE_LOCAL_SHARE = ENVIRONMENT.GATE_LOCAL_SHARE

# If the environment is wrong, the start is refused, and nothing is written anywhere.
EMBEDDED = embedded.absent_places(MEDPROC_DATA_DIR)
SECRET_KEY = ENVIRONMENT.SECRET_KEY or Secret(get_random_secret_key())
if not ENVIRONMENT_PROBLEMS:
    try:
        EMBEDDED = embedded.places_of(MEDPROC_DATA_DIR)
        for _name in ("uploads", "static"):
            private.folder(MEDPROC_DATA_DIR / _name)
        SECRET_KEY = ENVIRONMENT.SECRET_KEY or Secret(
            private.kept_text(MEDPROC_DATA_DIR / "secret-key", get_random_secret_key)
        )
    except OSError as _error:
        ENVIRONMENT_PROBLEMS += (env.unusable_data_dir(_error),)
        EMBEDDED = embedded.absent_places(MEDPROC_DATA_DIR)

DATABASE_URL = ENVIRONMENT.DATABASE_URL or Secret(EMBEDDED.database_url)
# The owner of the tables, for `migrate` and `erase`; empty if DATABASE_URL names the only role.
DATABASE_OWNER_URL = ENVIRONMENT.DATABASE_OWNER_URL or Secret(
    EMBEDDED.owner_url if ENVIRONMENT.DATABASE_URL is None else ""
)
REDIS_URL = ENVIRONMENT.REDIS_URL or Secret(EMBEDDED.redis_url)
EMBEDDED_POSTGRES = ENVIRONMENT.DATABASE_URL is None
EMBEDDED_VALKEY = ENVIRONMENT.REDIS_URL is None

INSTALLED_APPS = [
    "observability.apps.ConsoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_linear_migrations",
    "django_filters",
    "django_htmx",
    "pipeline",  # before django_rq: the first application wins for a command's name
    "observability",
    "api",
    "gemini_emulator",
    "evaluation",
    "django_rq",
]

MIDDLEWARE = [
    "medproc.web.probes.Probes",
    "observability.metrics.prometheus.endpoint.MetricsEndpoint",
    "medproc.web.forwarding.ForwardedByTrustedProxies",
    "api.middleware.ApiAnswers",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "api.middleware.BearerTokens",
    "medproc.web.bodies.ShortAnonymousBodies",
    "observability.audit.actor.ActingUser",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "observability.entry.refusals.ClearRefusals",
    # After the refusal of cookies that no session can have.
    "observability.entry.sessions.SessionLimits",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [env.PROJECT_ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

ROOT_URLCONF = "medproc.urls"
WSGI_APPLICATION = "medproc.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Without a pool: `db_pool` gives the console its pool, and no other process has one.
DATABASES = {"default": addresses.database_settings(DATABASE_URL)}

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
USE_I18N = False
# Operators need seconds at night, and ISO dates cannot confuse days with months.
DATE_FORMAT, DATETIME_FORMAT = "Y-m-d", "Y-m-d H:i:s"
STATIC_URL = "static/"
STATICFILES_FINDERS = ["medproc.static_files.InsideFinder"]
STATIC_ROOT = MEDPROC_DATA_DIR / "static"
# Only the console's own pages use its files.
WHITENOISE_ALLOW_ALL_ORIGINS = False

STORAGES = {
    "default": addresses.store_settings(ENVIRONMENT, MEDPROC_DATA_DIR),
    "staticfiles": {"BACKEND": "medproc.static_files.CollectedStorage"},
}

# Upload files are readable only by this user, and their size is checked while they arrive.
FILE_UPLOAD_HANDLERS = ["observability.uploads.handler.RecordUpload"]
FILE_UPLOAD_TEMP_DIR: str = str(MEDPROC_DATA_DIR / "uploads")
FILE_UPLOAD_PERMISSIONS = 0o600
DATA_UPLOAD_MAX_NUMBER_FILES = 100

# Periodic tasks of the applications above the pipeline: name → (seconds between two runs, function
# that returns a line to log or "").
PERIODIC_TASKS = {
    "bulk_operations": (2.0, "observability.actions.bulk_runner.advance"),
    "audit_head": (3600.0, "observability.audit.heads.record_newest"),
    "verify_audit": (300.0, "observability.audit.watch.examine"),
    "check_sla": (300.0, "observability.metrics.sla.check"),
    "snapshot_metrics": (300.0, "observability.metrics.sla_snapshots.snapshot"),
    "sweep_uploads": (3600.0, "observability.uploads.cleanup.sweep"),
    "rotate_logs": (60.0, "medproc.rotation.rotate_logs"),
    "sweep_files": (3600.0, "observability.uploads.stored_files.sweep"),
    # Once a day; each hour while rows are left.
    "prune": (3600.0, "observability.actions.retention.prune_daily"),
    "send_webhooks": (5.0, "api.webhooks.send.wake_sender"),
}
# Queues of the applications above the pipeline: name → function that a worker calls for an entry.
SIDE_QUEUES = {"webhooks": "api.webhooks.send.send_due"}

# Called when workers, scheduler or the whole service start and end. A failed hook stops nothing.
SERVICE_HOOKS = ["observability.audit.heads.record_newest"]
# Each returns sentences about problems, for `health`.
HEALTH_CHECKS = ["observability.audit.watch.alarms", "observability.metrics.sla_files.problems"]
# Writes the audit row of a command of the pipeline, which knows no audit.
COMMAND_AUDIT = "observability.audit.log.record_command"

# The steps of `pipeline.core.states`, which settings cannot import; a test compares the names.
RQ_QUEUES = {
    name: addresses.queue_settings(REDIS_URL)
    for name in ("pages", "pass05", "pass1", "pass1_5", "pass2", "pass3")
}
# In django-rq's own pages every staff user could empty a queue, even without permission.
RQ_SHOW_ADMIN_LINK = False
RQ = {"COMMIT_MODE": "on_db_commit", "DEFAULT_RESULT_TTL": 0}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "medproc.web.passwords.NoCommonPasswords"},
]

LOGIN_REDIRECT_URL = "admin:index"
SESSION_COOKIE_HTTPONLY = True
SESSION_IDLE_S = ENVIRONMENT.SESSION_IDLE_S
SESSION_MAX_S = ENVIRONMENT.SESSION_MAX_S
SESSION_COOKIE_AGE = round(SESSION_MAX_S)
X_FRAME_OPTIONS = "DENY"
# For every page, including the stock admin: no inline script, no inline style, no foreign origin.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}
SECURE_REFERRER_POLICY = "same-origin"
# A host beyond this machine requires https; on loopback plain http must work.
_HTTPS_ONLY = bool(ENVIRONMENT.public_hosts) and not DEBUG
SESSION_COOKIE_SECURE = _HTTPS_ONLY
CSRF_COOKIE_SECURE = _HTTPS_ONLY
SECURE_SSL_REDIRECT = _HTTPS_ONLY
SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60 if _HTTPS_ONLY else 0
DEFAULT_EXCEPTION_REPORTER_FILTER = "medproc.web.reports.WithoutSecrets"
# `medproc.web.forwarding` keeps the header only from proxies in TRUSTED_PROXIES.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# Whether a whole domain uses https is decided by the domain's owner, not by one service.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "()": "medproc.printable.PlainFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        },
    },
    "filters": {"paths_only": {"()": "medproc.logs.PathsOnly"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "plain",
            # Every logger of Django passes here, also a logger that a new version adds.
            "filters": ["paths_only"],
        }
    },
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        **{name: {"level": "INFO"} for name in ("medproc", "pipeline", "observability", "api")},
        # User input could name a patient, so neither a query nor an unknown path is logged.
        "django.server": {
            "handlers": ["stderr"],
            "level": "INFO",
            "filters": ["paths_only"],
            "propagate": False,
        },
        **{
            name: {"filters": ["paths_only"]}
            for name in (
                "django.request",
                "django.security.csrf",
                # Child loggers do not inherit filters, and Django logs each refusal under its own
                # name.
                *(f"django.security.{name}" for name in logs.REFUSALS),
            )
        },
    },
}
