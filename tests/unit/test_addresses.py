"""URLs turned into the settings of Django and django-rq."""

from __future__ import annotations

from typing import Any

import pytest
from django_rq.connection_utils import get_redis_connection
from redis.retry import Retry

from medproc import addresses


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "postgresql://u:p%40ss@db:6432/records?sslmode=verify-full",
            {"NAME": "records", "USER": "u", "PASSWORD": "p@ss", "HOST": "db", "PORT": "6432"},
        ),
        (
            "postgresql://medproc@/medproc?host=/run/medproc",
            {"NAME": "medproc", "USER": "medproc", "HOST": "/run/medproc", "PORT": ""},
        ),
        ("postgres://db/x", {"NAME": "x", "USER": "", "HOST": "db"}),
    ],
)
def test_a_database_url_becomes_django_settings(url: str, expected: dict[str, str]) -> None:
    entry = addresses.database_settings(url)

    assert {name: entry[name] for name in expected} == expected


def test_a_database_urls_query_becomes_options() -> None:
    entry = addresses.database_settings("postgresql://db/x?sslmode=require&host=/elsewhere")

    assert entry["OPTIONS"]["sslmode"] == "require"
    assert "host" not in entry["OPTIONS"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://:s@cache:6380/2", {"host": "cache", "port": 6380, "db": 2, "password": "s"}),
        ("unix:///run/v.sock?db=3", {"path": "/run/v.sock", "db": 3}),
    ],
)
def test_the_queues_client_reaches_the_url_and_retries(url: str, expected: dict[str, Any]) -> None:
    client = get_redis_connection(addresses.queue_settings(url))

    kwargs = client.connection_pool.connection_kwargs
    assert {name: kwargs[name] for name in expected} == expected
    assert isinstance(kwargs["retry"], Retry)
    assert kwargs["retry"].get_retries() == addresses.REDIS_RETRIES


def test_a_tls_url_gives_a_tls_client() -> None:
    assert addresses.redis_kwargs("rediss://cache")["ssl"] is True
    assert addresses.queue_settings("rediss://cache")["SSL"] is True
