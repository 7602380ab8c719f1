"""Turn the addresses of servers into the settings of Django and django-rq."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from redis.backoff import ExponentialWithJitterBackoff
from redis.connection import parse_url
from redis.retry import Retry

from medproc.secret_files import Secret

if TYPE_CHECKING:
    from medproc.env import Environment

REDIS_RETRIES = 3
REDIS_CONNECT_TIMEOUT_S = 2.0


def database_settings(url: str) -> dict[str, Any]:
    """Return the DATABASES entry of a postgresql:// URL.

    Its query, except host, becomes OPTIONS.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    host = options.pop("host", "") or unquote(parts.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": Secret(unquote(parts.password or "")),
        "HOST": host,
        "PORT": str(parts.port or options.pop("port", "")),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": 5,
            "application_name": "medproc",
            **_with_masked_passwords(options),
        },
    }


def redis_retry() -> Retry:
    """Return the retry policy that replaces a stale socket; redis-py has none by default."""
    return Retry(ExponentialWithJitterBackoff(base=0.05, cap=1.0), REDIS_RETRIES)


def redis_kwargs(url: str) -> dict[str, Any]:
    """Return the keyword arguments of `redis.Redis` for a redis://, rediss:// or unix:// URL."""
    # redis-py has no annotations on this function.
    found: dict[str, Any] = dict(parse_url(url))  # type: ignore[no-untyped-call]
    found.pop("connection_class", None)
    path = found.pop("path", None)
    if path is not None:
        found["unix_socket_path"] = path
    if urlsplit(url).scheme == "rediss":
        found["ssl"] = True
    return {
        **_with_masked_passwords(found),
        "retry": redis_retry(),
        "socket_connect_timeout": REDIS_CONNECT_TIMEOUT_S,
        "health_check_interval": 30,
    }


def queue_settings(url: str) -> dict[str, Any]:
    """Return the RQ_QUEUES entry of a Redis URL.

    django-rq passes keyword arguments, and with them the retry policy, only beside HOST. For a unix
    socket, host and port are placeholders that redis-py ignores.
    """
    kwargs = redis_kwargs(url)
    return {
        "HOST": kwargs.pop("host", "localhost"),
        "PORT": kwargs.pop("port", 6379),
        "DB": kwargs.pop("db", 0),
        "USERNAME": kwargs.pop("username", None),
        "PASSWORD": kwargs.pop("password", None),
        "SSL": kwargs.pop("ssl", False),
        "SERIALIZER": "rq.serializers.JSONSerializer",
        "REDIS_CLIENT_KWARGS": kwargs,
    }


def store_settings(env: Environment, data_dir: Path) -> dict[str, Any]:
    """Return the STORAGES entry of the stored files: the bucket, or a folder without a bucket."""
    if env.STORAGE_BUCKET is None:
        return {
            "BACKEND": "medproc.files.OwnedStorage",
            "OPTIONS": {
                "location": str(data_dir / "files"),
                "file_permissions_mode": 0o600,
                "directory_permissions_mode": 0o700,
            },
        }
    encryption = {
        "ServerSideEncryption": env.STORAGE_ENCRYPTION,
        "SSEKMSKeyId": env.STORAGE_KMS_KEY_ID,
    }
    return {
        "BACKEND": "pipeline.documents.bucket.BucketStorage",
        "OPTIONS": {
            "bucket_name": env.STORAGE_BUCKET,
            "endpoint_url": env.STORAGE_ENDPOINT_URL,
            "region_name": env.STORAGE_REGION,
            "access_key": env.STORAGE_KEY_ID,
            "secret_key": env.STORAGE_SECRET_KEY,
            "object_parameters": {name: value for name, value in encryption.items() if value},
        },
    }


def _with_masked_passwords(options: dict[str, Any]) -> dict[str, Any]:
    """Return options whose passwords are masked in each repr: `password`, `sslpassword` …"""
    return {
        name: Secret(value) if isinstance(value, str) and "password" in name else value
        for name, value in options.items()
    }
