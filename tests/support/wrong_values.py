"""Wrong values for each variable of the environment, with a canary in each value that holds text.

NUL is missing: no operating system accepts it in an environment.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Literal, get_origin

from medproc.env import Environment
from medproc.env_values import kind_of

CANARY = "hunter2"
LEAST = 50
"""Wrong values per variable."""

ANYWHERE = (
    " ", "\t", "\n", " \r\n ", "\u00a0", "\u3000", "hunter2 ", " hunter2", "hunter2\n", "\thunter2",
    '"hunter2"', "'hunter2'", "`hunter2`", '"3"', "'true'", "hunter2\x01", "hunter2\x1b[31m",
    "hunt\nhunter2", "hunt\rhunter2", "hunter2\x7f", "hunter2\x85x", "hunter2\u200b",
    "\u202ehunter2", "hunter2\udcff", "\ufeffhunter2", "hunter2" * 1000,
)  # fmt: skip
"""Values that are wrong for every variable: blank, in quotes, with spaces, too long."""
NOT_NUMBERS = (
    "hunter2", "inf", "-inf", "Infinity", "nan", "-1", "1e400", "1e5000", "9" * 30, "9" * 400,
    "-" + "9" * 30, "٣", "３", "²", "Ⅷ", "½", "1_000", "1,000", "1.000,5", "1 000", "0x10", "0b1",
    "1e", "e5", ".", "-", "+", "--1", "yes please", "true", "None", "null", "5 seconds", "5s", "1m",
    "10%", "$5", "hunter2=5", "1/2",
)  # fmt: skip
NOT_WHOLE = ("3.0", "0.5", "1e2", "3.", "1.5e1")
NOT_SWITCHES = (
    "hunter2", "yes please", "2", "-1", "truee", "true!", "si", "oui", "ja", "maybe", "null",
    "None", "inf", "nan", "0.0", "1.0", "01", "true,false", "tru", "wahr", "да", "١", "%true",
    "true hunter2", "$hunter2",
)  # fmt: skip
NOT_CHOICES = (
    "hunter2", "Local", "LOCAL", "gemini2", "gemini,local", "openai", "none", "null", "0", "1",
    "-1", "inf", "nan", "text/pdf", "Text", "PDF", "images", "text pdf", "true", "false",
    "lоcal", "google", "vertex", "local hunter2", "$hunter2",
)  # fmt: skip
NOT_DATABASES = (
    "mysql://root:hunter2@db/x", "hunter2", "://hunter2", "postgresql:", "postgresql://",
    "postgresql:///", "postgresql://u:hunter2@db", "postgresql://u:hunter2@db/",
    "postgresql://u:hunter2@db:hunter2/x", "postgresql://u:hunter2@db:0/x",
    "postgresql://u:hunter2@db:99999/x", "postgresql://u:hunter2@db:-1/x",
    "postgresql://u:hunter2@db:1:2/x", "postgresql://u:hunter2@db:/x",
    "postgresql://u:hunter2/p@db:5432/x", "postgresql://u:hunter2#p@db/x",
    "postgresql://u:hunter2?p@db/x", "postgresql://u:hunter2%p@db/x",
    "postgresql://u:hunter2 p@db/x", "postgresql://u:hunter2ü@db/x",
    "postgresql://u:hunter2%00@db/x", "postgresql://u:hunter2%0a@db/x",
    "postgresql://u:hunter2@d b/x", "postgresql://u:hunter2@[::1/x",
    "postgresql://u:hunter2@[hunter2]/x", "postgresql://u:hunter2@db/x/y",
    "postgresql://u:hunter2@db/x?pool=true", "postgresql://u:hunter2@db/x?sslmode=hunter2",
    "postgresql://u:hunter2@db/x?connect_timeout=hunter2",
    "postgresql://u:hunter2@db/x?port=hunter2", "postgresql://u:hunter2@db/x?hunter2=1",
    "postgresql://u:hunter2@db/x?hunter2", "postgresql+psycopg://u:hunter2@db/x",
    "jdbc:postgresql://u:hunter2@db/x", "sqlite:///hunter2", "/run/hunter2", "http://hunter2/x",
    "postgresql//u:hunter2@db/x", "postgresql://u:hunter2@-db/x", "postgresql://u:hunter2@d..b/x",
    "postgresql://u:hunter2@db:٥٤/x", "postgresql://u:hunter2@d\\b/x",
)  # fmt: skip
NOT_REDIS = (
    "http://:hunter2@redis", "hunter2", "://hunter2", "redis:", "redis://", "redis:///",
    "redis://:hunter2@", "redis://:hunter2@r:hunter2/0", "redis://:hunter2@r:0/0",
    "redis://:hunter2@r:99999", "redis://:hunter2@r:-1", "redis://:hunter2@r:1:2",
    "redis://:hunter2@r:/0", "redis://:hunter2/p@r:6379/0", "redis://:hunter2#p@r/0",
    "redis://:hunter2?p@r/0", "redis://:hunter2%p@r/0", "redis://:hunter2 p@r/0",
    "redis://:hunter2ü@r/0", "redis://:hunter2%00@r/0", "redis://:hunter2@r/hunter2",
    "redis://:hunter2@r/-1", "redis://:hunter2@r/0/1", "redis://:hunter2@r/99999",
    "redis://:hunter2@r?db=hunter2", "redis://:hunter2@r?hunter2=1",
    "redis://:hunter2@r?socket_timeout=hunter2", "redis://:hunter2@r?decode_responses=True",
    "redis://:hunter2@[::1", "rediss://", "unix://", "unix://hunter2/v.sock", "unix:hunter2",
    "valkey://:hunter2@r", "r:6379", "/run/hunter2.sock", "redis://:hunter2@-r",
    "redis://:hunter2@r:٥",
)  # fmt: skip
NOT_SERVICES = (
    "hunter2", "http://", "https://", "http://foo", "http://hunter2.org", "https:///hunter2",
    "ftp://hunter2", "https:hunter2", "://hunter2", "//hunter2", "HTTPS//hunter2",
    "https://u:hunter2@x", "https://hunter2@x", "https://x:hunter2", "https://x:0",
    "https://x:99999", "https://x:-1", "https://x:1:2", "https://x:", "https://x?key=hunter2",
    "https://x?", "https://x#hunter2", "https://hünter2", "https://x y", "https://x/%zz",
    "https://x/%00", "https://[::1", "https://[hunter2]", "https://-x", "https://x..y",
    "https://x\\y", "file:///hunter2", "javascript:hunter2", "http://10.0.0.1:8090",
    "http://0.0.0.0:8090", "https://x:٨",
)  # fmt: skip
NOT_DSNS = (
    *NOT_SERVICES, "https://x/7", "https://hunter2@x", "https://hunter2@x/", "https://hunter2@x/y",
    "https://hunter2@x/-7", "https://hunter2@x/7/", "https://k:hunter2@x/7",
    "https://hunter2@x/7?a=b", "http://hunter2@x.org/7", "https://hunter2@x/٧", "https://@x/7",
)  # fmt: skip
NOT_HEADERS = (
    "hunter2", "hunter2,", ",hunter2", "a=b,", ",a=b", "a=b,,c=d", "a=b,hunter2", "=hunter2",
    "hunter2:x", "a b=hunter2", "hünter2=a", "a=hünter2", "a=%hunter2", "a=hunter2%", "a=%zz",
    "a=%0ahunter2", "a=%0D%0Ahunter2: x", "a=%00", "a=%c3%bchunter2", "(hunter2)=a", "a:hunter2=b",
    "hunter2 =a", "hunter2/x=a", "[hunter2]=a", "hunter2;a", "a=b;=hunter2,x", "hunter2@x=a",
)  # fmt: skip
NOT_HOSTS = (
    "https://hunter2.org", "hunter2.org:443", "hunter2/x", "hunter2 x", "*.hunter2", "hunter2;x",
    ",", ",,", ", ,", "-hunter2", "hunter2..org", "[::g]", "hünter2", "u@hunter2",
    "a,https://hunter2", "a" * 300, "%hunter2", "hunter2?x", "hunter2#", "\\hunter2", "hunter2:",
    "hunter2|b", "(hunter2)", "hunter2!", "{hunter2}",
)  # fmt: skip
NOT_ORIGINS = (
    "hunter2.org", "*", "https://", "://hunter2", "ftp://hunter2", "https://hunter2/x",
    "https://hunter2/", "https://hunter2?x", "https://hunter2#x", "https://u:hunter2@x",
    "https://x:hunter2", "https://x:0", "https://x:99999", "https://hünter2", "https://a,hunter2",
    "https://-hunter2", "https://hunter2..x", "https://hunter2 x", "https:hunter2", "//hunter2",
    "https://hunter2%zz", "https://[hunter2", "https://x:", "null", "https://hunter2\\x",
)  # fmt: skip
NOT_NAMES = (
    "hunter2 x", "/hunter2", "hunter2/", "hunter2//x", "hunter2?x", "hunter2#x", "hunter2:x",
    "hunter2%x", "hunter2&x", "hunter2@x", "hunter2,x", "hunter2;x", "(hunter2)", "{hunter2}",
    "[hunter2]", "hunter2|x", "hunter2<x", "hünter2", "hunter2\\x", "hunter2*", "hunter2!",
    "$hunter2", "hunter2=x", "hunter2~", "h" * 101,
)  # fmt: skip
NOT_KEYS = (
    *(f"hunter2{letter}" for letter in "äöüßéèñøπжд€µ½²٣、。漢字あ☃"),
    "hunter2 x",
    "k" * 513,
)
NOT_BUCKETS = (
    *NOT_NAMES, "Hunter2-Records", "HUNTER2", "hunter2_x", "-hunter2", "hunter2-", ".hunter2",
    "hunter2.", "h2", "arn:aws:s3:::hunter2", "s3://hunter2", "hunter2" * 10,
)  # fmt: skip
NOT_REGIONS = (*NOT_NAMES, "hunter2.x", "hunter2_x", "Hunter2", "EU hunter2")
NOT_STORES = (*NOT_SERVICES, "https://x/hunter2", "https://s3.x.org/hunter2/", "s3://hunter2")
NOT_ENCRYPTIONS = (
    *NOT_CHOICES, "aes256", "AES-256", "aws-kms", "AWS:KMS", "aws:kms:hunter2", "SSE-S3", "kms",
)  # fmt: skip
NOT_KMS_KEYS = (
    *(name for name in NOT_NAMES if not name.replace("/", "").replace(":", "").isalnum()),
    *("k" * 513, "alias hunter2", "hunter2.x", "hunter2+x", "hunter2\\"),
)
NOT_SECRETS = tuple(f"hunter2{'x' * count}" for count in range(25))

RELATIVE_PATHS = (
    "hunter2", "./hunter2", "../hunter2", "~", "~/hunter2", "$HOME/hunter2", "C:\\hunter2", "0",
    "1", "-1", "inf", "nan", "true", "var", ".", "..", "hunter2/", "hunter2/../x",
    "file:///hunter2", "%2Fhunter2", "*", "?hunter2",
)  # fmt: skip
NOT_NETWORKS = (
    "hunter2", "10.0.0.0/33", "10.0.0.0/-1", "10.0", "10.0.0.256", "10.0.0.1/8/8", "::g",
    "::1/129", "*", "10.0.0.*", "http://10.0.0.1", "10.0.0.1:80", "localhost",
    "proxy.hunter2.org", "0x0a000001/x",
    "10.0.0.1 10.0.0.2", "10.0.0.1;10.0.0.2", "١٠.0.0.1", "10.0.0.1,hunter2", "10.0.0.0/hunter2",
    "[::1]", "10.0.0.1-10.0.0.9", "true", "-1", "inf", "nan", "10.0.0.0/255.0.255.0",
)  # fmt: skip

NOT_CLAIM_VALUES = (
    *(f"hunter2{letter}" for letter in "äöüßéèñøπжд€µ½²٣、。漢字あ☃"),
    "hunter2\\x", "a,hunter2 x", 'hunter2"x', "h" * 300, "hunter2\u00a0x",
)  # fmt: skip
NOT_ROLES = (
    "hunter2", "hunter2=", "=viewer", " =operator,hunter2", "hunter2=hunter2",
    "hunter2=Operator", "hunter2=operators", "hunter2=superuser", "hunter2=staff",
    "hunter2=operator=", "hunter2:operator", "hunter2=admin", "hunter2 operator",
    "hunter2=operator;x=viewer", "hunter2=operator x=viewer", "x=viewer,hunter2",
    "hunter2=opérator", "hunter2 =operator", "hunter2= operator", "hunter2->operator",
    "hunter2=true", "hunter2=1", "hunter2=*", "hunter2==", "=hunter2", "hunter2=reviewer/",
)  # fmt: skip


def not_folders(tmp_path: Path) -> tuple[str, ...]:
    """Return paths that are relative, a file, below a file, or a folder of other programs."""
    file, shared = tmp_path / "hunter2-file", tmp_path / "hunter2-shared"
    file.touch()
    shared.mkdir()
    shared.chmod(0o755)
    (shared / "hunter2.txt").touch()
    return (*RELATIVE_PATHS, "/", str(file), str(shared))


def wrong_values(variable: str, tmp_path: Path) -> tuple[str, ...]:
    """Return at least `LEAST` values that are wrong for a variable."""
    named = {
        "ALLOWED_HOSTS": NOT_HOSTS,
        "CSRF_TRUSTED_ORIGINS": NOT_ORIGINS,
        "AUDIT_HEADS_DIR": (*RELATIVE_PATHS, "hunter2/audit", "var/hunter2"),
        "DATABASE_OWNER_URL": NOT_DATABASES,
        "DATABASE_URL": NOT_DATABASES,
        "GEMINI_API_KEY": NOT_KEYS,
        "GEMINI_BASE_URL": NOT_SERVICES,
        **dict.fromkeys(
            ("GEMINI_MODEL", "CODE_EMBEDDING_MODEL"),
            (*NOT_NAMES, "-hunter2", ".hunter2", "../hunter2"),
        ),
        "OIDC_ACR": NOT_CLAIM_VALUES,
        "OIDC_AMR": NOT_CLAIM_VALUES,
        "OIDC_CLIENT_ID": (*NOT_KEYS, "h" * 256),
        "OIDC_CLIENT_SECRET": (*(each for each in NOT_KEYS if " " not in each), "hunter2"),
        "OIDC_GROUPS_CLAIM": (*NOT_CLAIM_VALUES, "hunter2,x", ".hunter2", "/hunter2"),
        "OIDC_ISSUER": (*NOT_SERVICES, "https://hunter2/.well-known/openid-configuration"),
        "OIDC_NAME": (*NOT_CLAIM_VALUES, "hunter2,x", "hunter2/x", "<b>hunter2</b>", "h" * 41),
        "OIDC_ROLES": NOT_ROLES,
        "OIDC_SCOPES": (*NOT_CLAIM_VALUES, "hunter2", "profile,email", "OPENID", "openid2"),
        "OTEL_EXPORTER_OTLP_ENDPOINT": NOT_SERVICES,
        "OTEL_EXPORTER_OTLP_HEADERS": NOT_HEADERS,
        "SENTRY_DSN": NOT_DSNS,
        "METRICS_TOKEN": (*NOT_KEYS, *NOT_SECRETS),
        "REDIS_URL": NOT_REDIS,
        "SECRET_KEY": NOT_SECRETS,
        "STORAGE_BUCKET": NOT_BUCKETS,
        "STORAGE_ENCRYPTION": NOT_ENCRYPTIONS,
        "STORAGE_ENDPOINT_URL": NOT_STORES,
        "STORAGE_KEY_ID": NOT_KEYS,
        "STORAGE_KMS_KEY_ID": NOT_KMS_KEYS,
        "STORAGE_REGION": NOT_REGIONS,
        "STORAGE_SECRET_KEY": NOT_KEYS,
        "SKIPPED_PASSES": (*NOT_NAMES, "pages", "pass05", "pass3,pass4", "PASS3"),
        "TRUSTED_PROXIES": NOT_NETWORKS,
        "WEBHOOK_ALLOWED_HOSTS": (
            *(value for value in NOT_HOSTS if value.strip(", ")),
            *("*", ".hunter2.org", "*.hunter2.org", "hunter2.org,*"),
        ),
        **dict.fromkeys(
            ("WORKER_ID", "OTEL_SERVICE_NAME", "SENTRY_RELEASE"), (*NOT_NAMES, "hunter2/x")
        ),
    }
    if variable == "MEDPROC_DATA_DIR":
        return (*ANYWHERE, *not_folders(tmp_path))
    if variable in named:
        return (*ANYWHERE, *named[variable])
    field = Environment.model_fields[variable]
    kind = kind_of(field)
    if kind is bool:
        return (*ANYWHERE, *NOT_SWITCHES)
    if get_origin(kind) is Literal:
        return (*ANYWHERE, *NOT_CHOICES)
    assert kind in (int, float, Decimal), f"add wrong values for {variable}"
    whole = NOT_WHOLE if kind is int else ()
    return (*ANYWHERE, *NOT_NUMBERS, *whole, *_beyond(variable))


def _beyond(variable: str) -> tuple[str, str]:
    """Return the nearest numbers below and above the range of a variable."""
    field = Environment.model_fields[variable]
    step = Decimal(1) if kind_of(field) is int else Decimal("0.001")
    bounds = {
        name: Decimal(str(value))
        for bound in field.metadata
        for name in ("ge", "gt", "le")
        if (value := getattr(bound, name, None)) is not None
    }
    below = bounds["gt"] if "gt" in bounds else bounds["ge"] - step
    return str(below), str(bounds["le"] + step)
