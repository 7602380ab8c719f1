"""The overview shows the workers, their memory, and the state of all workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rq.worker_registration import REDIS_WORKER_KEYS

from observability.permissions import Role
from pipeline.models import Job
from pipeline.queueing import queues
from pipeline.ratelimit import Ask, Later, RateLimiter
from pipeline.workers import memory, run_step
from tests.support import records
from tests.support.short_records import short_record
from tests.support.users import client_of

MB = 1024


@pytest.fixture
def viewer(db: None, redis_db: redis.Redis) -> Client:
    return client_of(Role.VIEWER)


def register(client: redis.Redis, name: str, host: str, **figures: int) -> None:
    """Write the entry of an idle worker, as the worker itself does."""
    facts: dict[Any, Any] = {
        "state": "idle",
        "hostname": host,
        "last_heartbeat": timezone.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        **figures,
    }
    client.sadd(REDIS_WORKER_KEYS, f"rq:worker:{name}")
    client.hset(f"rq:worker:{name}", mapping=facts)


def figures(*mb: int) -> dict[str, int]:
    return dict(zip(memory.FIELDS, (each * MB for each in mb), strict=True))


def overview(client: Client) -> str:
    page = client.get(reverse("admin:overview"))
    return " ".join(page.content.decode().split())


def test_the_overview_shows_the_memory_of_each_worker_and_says_what_to_do(
    viewer: Client, redis_db: redis.Redis
) -> None:
    register(redis_db, "roomy-1", "roomy", **figures(80, 120, 200, 8000, 4000))
    register(redis_db, "tight-1", "tight", **figures(90, 0, 700, 1000, 300))
    register(redis_db, "old-1", "old")

    said = overview(viewer)

    assert "RSS 80 MB, step 120 MB, largest step 200 MB" in said
    assert "RSS 90 MB, largest step 700 MB" in said
    assert "Memory of roomy: 1 worker uses 200 MB; 3.9 GB of 7.8 GB free." in said
    assert "Memory for 7 more workers." in said
    assert "Memory is short on tight: 1 worker uses 90 MB; 300 MB of 1.0 GB free." in said
    assert "Lower WORKER_CONCURRENCY or PAGES_CONCURRENCY on this host, or add memory." in said
    assert "Memory of old" not in said


def test_the_overview_says_that_the_workers_are_suspended(
    viewer: Client, redis_db: redis.Redis
) -> None:
    before = overview(viewer)

    queues.suspend()

    assert "rqsuspend" not in before
    assert "No worker begins a step after manage.py rqsuspend" in overview(viewer)


def test_one_job_that_waits_is_not_one_jobs(viewer: Client, settings: Any) -> None:
    settings.MEDPROC_PROVIDER, settings.GEMINI_RPM = "gemini", 1
    before = overview(viewer)

    # An empty Redis counts the window as spent, so the only ask is refused.
    refused = RateLimiter.for_("gemini", settings.GEMINI_MODEL).admit(
        Ask(job="job", item="item", tokens=1, prompt_version="v")
    )

    assert isinstance(refused, Later)
    assert "0 calls, 0 jobs waiting" in before
    said = overview(viewer)
    assert "0 calls, 1 job waiting" in said
    assert "1 calls" not in said
    assert "1 jobs" not in said


def test_a_step_that_ends_while_it_waits_for_a_call_is_no_waiting_job(
    viewer: Client, settings: Any, tmp_path: Path
) -> None:
    received = records.submit(short_record(tmp_path / "record.pdf", 2))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    # One call starts a second. The first one ends the step before the second one may start.
    settings.GEMINI_RPM, settings.GATE_WINDOW_S = 1, 1.0

    with records.through_emulator([{"fault": "429-day"}]):
        run_step.run_step("pass1")
        said = overview(viewer)

    assert Job.objects.get(id=received.job_id).status == "parked"
    assert "0 calls, 0 jobs waiting" in said
