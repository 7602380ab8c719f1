"""URLs become the settings of Django and django-rq."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django_rq.connection_utils import get_redis_connection
from redis.retry import Retry

from medproc import addresses
from medproc.embedded import Places


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


def test_a_folder_of_any_name_survives_its_way_through_the_urls() -> None:
    odd = Path("/srv/Dr. Who & Co/100% #1?/a+b")
    found = Places(base=odd, sockets=odd)

    database = addresses.database_settings(found.database_url)
    cache = addresses.redis_kwargs(found.redis_url)

    assert database["HOST"] == str(odd)
    assert cache["unix_socket_path"] == str(odd / "valkey.sock")
