"""The counters of the rate limiter survive a loss of Redis, and the overview shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from observability.diagnostics.overview import overview
from observability.permissions import Role
from pipeline.models import RateLimitCounts
from pipeline.operations.rate_limit_counts import copy_all_counts, copy_counts_of, total_counts
from pipeline.ratelimit import Counters, RateLimiterState
from tests.support import records
from tests.support.short_records import short_record
from tests.support.users import client_of

pytestmark = pytest.mark.django_db

LIMITED = {"fault": "429", "kind": "entities", "page": 1, "attempt": 1, "retry_after_s": 0.01}
STATE = RateLimiterState(provider="gemini", model="m", is_local=False, born=100.0)


def _stored(folder: Path, name: str) -> int:
    """Run a record that meets one limited call; return the limited items of all time."""
    with records.through_emulator([LIMITED]):
        record = records.completed_record(short_record(folder / name, 2))
        assert record.jobs.get().status == "completed"
        counts = overview().limited
    assert counts.rate_limited_items_redistributed == counts.rate_limited_items_stored
    assert counts.rate_limit_generations >= 1
    return counts.rate_limited_items_stored


def test_the_counters_of_a_limited_record_survive_an_emptied_redis(
    tmp_path: Path, redis_db: redis.Redis
) -> None:
    first = _stored(tmp_path, "first.pdf")
    assert first >= 1
    redis_db.flushdb()

    with records.through_emulator():
        assert overview().limited.rate_limited_items_stored == first
        second = _stored(tmp_path, "second.pdf")
        assert second > first
        client = Client()
        client.force_login(User.objects.create_superuser("viewer"))
        page = client.get(reverse("admin:overview")).content.decode()

    assert RateLimitCounts.objects.count() == 2
    assert f"{second} stored," in page
    assert f"{second} redistributed" in page
    assert "0 trips" in page


def test_a_late_copy_never_makes_a_counter_smaller() -> None:
    newest = replace(STATE, counters=Counters(rate_limited_items_stored=7, breaker_trips=2))
    older = replace(STATE, counters=Counters(rate_limited_items_stored=3, breaker_trips=1))
    next_life = replace(STATE, born=200.0, counters=Counters(rate_limited_items_stored=5))

    for state in (newest, older, newest, next_life, next_life):
        copy_counts_of(state)

    assert total_counts(next_life) == Counters(rate_limited_items_stored=12, breaker_trips=2)
    away = RateLimiterState(provider="gemini", model="m", is_local=True)
    assert total_counts(away) == Counters(rate_limited_items_stored=12, breaker_trips=2)


def test_the_scheduler_copies_the_counters_of_every_model(
    tmp_path: Path, redis_db: redis.Redis, settings: Any
) -> None:
    first = _stored(tmp_path, "first.pdf")
    rows = RateLimitCounts.objects.all()
    rows.update(rate_limited_items_stored=0)

    # The process of the scheduler is set to another provider than the workers.
    copy_all_counts()

    assert rows.get().rate_limited_items_stored == first


def test_the_trips_of_the_breaker_are_shown_after_redis_was_emptied(
    redis_db: redis.Redis, settings: Any
) -> None:
    settings.MEDPROC_PROVIDER = "gemini"
    RateLimitCounts.objects.create(
        provider="gemini", model=settings.GEMINI_MODEL, born=100.0, breaker_trips=2
    )
    redis_db.flushdb()

    page = client_of(Role.VIEWER).get(reverse("admin:overview")).content.decode()

    assert "2 trips" in page
