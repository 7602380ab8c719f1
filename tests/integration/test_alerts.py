"""Each alert is silent on an idle installation and fires in its scenario, on the real endpoint.

`tests/support/prometheus.py` evaluates the expressions, and names the part of PromQL that it knows.
No Prometheus server runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import redis
import yaml
from django.conf import settings
from django.core.cache import cache
from django.utils import timezone
from rq.suspension import suspend
from rq.utils import now, utcformat
from rq.worker_registration import REDIS_WORKER_KEYS

from api.webhooks.send import send_due
from medproc.env import PROJECT_ROOT
from observability.metrics.prometheus import catalogue
from observability.models import AuditCheck
from pipeline.core.errors import ErrorCode
from pipeline.core.server_faults import ServerFault
from pipeline.core.states import IncidentKind, JobStatus, Step
from pipeline.core.types import ProviderModel
from pipeline.models import Batch, Job, PeriodicTaskRun, ReviewItem, ReviewLane
from pipeline.operations import schedule
from pipeline.transitions import (
    Failure,
    Flush,
    claim,
    dead_letter_step,
    fail_step,
    fenced,
    open_incident,
    pause_queue,
    take_expired,
    write,
)
from pipeline.transitions.rollup import Leaving, settle
from tests.integration.test_webhooks import cancelled, make_due, own_job, subscribed
from tests.support.api_clients import a_program
from tests.support.flush_rows import a_call
from tests.support.prometheus import Scrape, fires, names_of, scrape
from tests.support.review_rows import a_reviewed_record
from tests.support.rows import a_job, an_encounter
from tests.support.webhook_receiver import ToldAnswer, receiving

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("metrics")]

RULES: list[dict[str, Any]] = yaml.safe_load(
    (PROJECT_ROOT / "deploy/prometheus/alerts.yml").read_text("utf-8")
)["groups"][0]["rules"]
ALERTS: Mapping[str, dict[str, Any]] = {rule["alert"]: rule for rule in RULES}
DASHBOARD = json.loads((PROJECT_ROOT / "deploy/grafana/medproc.json").read_text("utf-8"))
PROMETHEUS_OWN = {"up"}
"""Samples that Prometheus itself makes."""


def _of_gemini(kind: IncidentKind) -> None:
    open_incident(
        kind,
        ProviderModel(provider="gemini", model="m"),
        first_failure_at=timezone.now(),
        evidence={},
    )


def _ended(end: Callable[[Any, Failure], None]) -> None:
    """Run the end of a step for a new job."""
    a_job()
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    with fenced(lease):
        end(lease, Failure(code=ErrorCode.API_4XX, message="a test"))
        settle([Leaving.by(lease, "pass1: API_4XX", has_ended=True)])


def _waiting() -> None:
    job = a_job()
    Job.objects.filter(id=job.id).update(available_at=timezone.now() - timedelta(hours=1))


def _running() -> None:
    a_job()
    assert claim(Step.PASS1, "w") is not None
    Job.objects.update(step_started_at=timezone.now() - timedelta(hours=3))


def _expired() -> None:
    a_job()
    assert claim(Step.PASS1, "w") is not None
    Job.objects.update(lease_expires_at=timezone.now() - timedelta(minutes=3))


def _crashes() -> None:
    for _ in range(4):
        _expired()
        take_expired()
        Job.objects.update(status=JobStatus.CANCELLED)


def _worker(**facts: str) -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        key = "rq:worker:w-1"
        client.sadd(REDIS_WORKER_KEYS, key)
        client.hset(key, mapping={"last_heartbeat": utcformat(now()), "hostname": "host"} | facts)


def _full_memory() -> None:
    _worker(worker_kib="100", step_kib="0", peak_kib="900", total_kib="1000", free_kib="100")


def _suspended() -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        suspend(client)


def _stopped() -> None:
    PeriodicTaskRun.objects.update(started_at=timezone.now() - timedelta(hours=1))


def _broken_audit() -> None:
    AuditCheck.objects.update_or_create(id=AuditCheck.ONLY, defaults={"problem": "link 3"})


def _mismatch() -> None:
    job = a_job()
    _, (batch,) = an_encounter(job)
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    call = a_call(lease, batch, accepted=False) | {"outcome": "REPLY_MISMATCH"}
    write(lease, Flush(work=Batch, calls=[call]))


def _overdue() -> None:
    ReviewItem.objects.filter(id=a_reviewed_record().id).update(lane=ReviewLane.OVERDUE)


def _late() -> None:
    a_job(priority=1)
    Job.objects.update(created_at=timezone.now() - timedelta(minutes=16))


def _webhook(attempts: int) -> None:
    """Deliver an event, with attempts that fail."""
    program = a_program()
    with receiving(*[ToldAnswer(status=500)] * attempts) as receiver:
        subscribed(program, receiver.url)
        cancelled(own_job(program))
        for _ in range(attempts):
            make_due()
            send_due()


SCENARIOS: Mapping[str, Callable[[], None]] = {
    **{f"MedprocIncident{k.capitalize()}": partial(_of_gemini, k) for k in IncidentKind},
    "MedprocNoWorker": lambda: (a_job(), None)[1],
    "MedprocWorkWaits": _waiting,
    "MedprocWorkersSuspended": _suspended,
    "MedprocPaused": lambda: (pause_queue(Step.PASS1, reason="a test"), None)[1],
    "MedprocStepStuck": _running,
    "MedprocLeasesExpired": _expired,
    "MedprocWorkersCrash": _crashes,
    "MedprocMemoryShort": _full_memory,
    "MedprocDeadLetters": partial(_ended, dead_letter_step),
    "MedprocRecordsFail": partial(_ended, fail_step),
    "MedprocSchedulerMissing": _stopped,
    "MedprocAuditBroken": _broken_audit,
    "MedprocReplyMismatch": _mismatch,
    "MedprocReviewsOverdue": _overdue,
    "MedprocSlaLate": _late,
    "MedprocSlaMissed": partial(_ended, fail_step),
    "MedprocWebhooksFail": partial(_webhook, 5),
    "MedprocWebhooksGivenUp": partial(_webhook, 10),
}
"""What happens on an idle installation before each alert fires."""
OF_SERVERS = {
    "MedprocPostgresRefuses": ServerFault.POSTGRES_AWAY,
    "MedprocRedisRefuses": ServerFault.REDIS_AWAY,
    "MedprocStorageRefuses": ServerFault.STORAGE_LOGIN,
    "MedprocDiskFull": ServerFault.REDIS_DISK_FULL,
}


@pytest.fixture
def idle(redis_db: redis.Redis, settings: Any) -> Scrape:
    """Provide the figures of an installation with a scheduler and without work."""
    # At the scale of the tests, a periodic task is missing after a second.
    settings.TIME_SCALE = 1.0
    for name in schedule.names():
        PeriodicTaskRun.objects.create(
            name=name, started_at=timezone.now(), last_ok_at=timezone.now(), outcome="ok"
        )
    return {**scrape(), "up": {frozenset({("job", "medproc")}): 1.0}}


def _firing(before: Scrape, now: Scrape) -> set[str]:
    return {name for name, rule in ALERTS.items() if fires(rule["expr"], before, now)}


@pytest.mark.parametrize("alert", SCENARIOS)
def test_an_alert_fires_in_its_scenario_and_not_before(alert: str, idle: Scrape) -> None:
    assert _firing(idle, idle) == set()

    SCENARIOS[alert]()

    assert alert in _firing(idle, {**scrape(), "up": idle["up"]})


def test_the_alerts_of_the_console_and_the_servers_fire(idle: Scrape) -> None:
    away = {frozenset({("job", "medproc")}): 0.0}

    assert _firing(idle, {"up": away}) == {"MedprocConsoleDown"}
    for alert, fault in OF_SERVERS.items():
        cache.set("server-faults", (fault,), 60)
        assert alert in _firing(idle, {**scrape(), "up": idle["up"]})


def test_each_alert_has_a_scenario_a_severity_and_an_entry_in_the_runbook() -> None:
    assert ALERTS.keys() == {*SCENARIOS, *OF_SERVERS, "MedprocConsoleDown"}
    headings = {
        re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in (PROJECT_ROOT / "docs/runbook.md").read_text("utf-8").splitlines()
        if line.startswith("#")
    }
    for rule in RULES:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert page == "docs/runbook.md"
        assert anchor in headings
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["labels"]["severity"] in {"page", "ticket"}


def test_rules_and_dashboard_read_only_metrics_and_labels_that_the_endpoint_sends() -> None:
    queries = [rule["expr"] for rule in RULES] + [
        target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]
    ]
    labels = {name: {*family.labels, "le"} for family in catalogue.ALL for name in family.samples}

    for query in queries:
        names = names_of(query)
        assert names, query
        assert names <= labels.keys() | PROMETHEUS_OWN, query
        allowed = {"job"}.union(*(labels.get(name, set()) for name in names))
        asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", query))
        for group in re.findall(r"\bby \(([^)]*)\)", query):
            asked |= {label.strip() for label in group.split(",")}
        assert asked <= allowed, query


def test_the_page_of_metrics_lists_each_metric_with_its_type_labels_and_meaning() -> None:
    page = (PROJECT_ROOT / "docs/metrics.md").read_text("utf-8")
    listed = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if re.match(r"\| `\w+` \| (?:counter|gauge|histogram) \|", line)
    ]

    assert [[name, kind, labels, meaning] for name, kind, labels, _, meaning in listed] == [
        [
            f"`{family.samples[0] if family.kind == 'counter' else family.name}`",
            family.kind.value,
            ", ".join(f"`{label}`" for label in family.labels) or "–",
            family.help.rstrip("."),
        ]
        for family in catalogue.ALL
    ]
