"""`/metrics` answers a scraper with its token, from roll-ups that neither a crash nor pruning cuts.

The records of the first tests are real: their steps write the roll-ups.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db import connection, transaction
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from psycopg import sql

from observability.metrics.prometheus import catalogue
from observability.metrics.prometheus.collector import exposition
from observability.metrics.prometheus.endpoint import MetricsEndpoint
from pipeline.core.server_faults import ServerFault
from pipeline.core.states import IncidentKind, Step
from pipeline.core.types import ProviderModel
from pipeline.models import Batch, EntityMetrics, Job, MetricCount, ProviderCall
from pipeline.operations.operator_actions import job_cancel
from pipeline.transitions import Flush, claim, open_incident, retry_job, take_expired, write
from pipeline.transitions.metric_counts import fold_counts
from tests.support import records
from tests.support.databases import rewriting
from tests.support.flush_rows import a_call, an_entity
from tests.support.prometheus import Scrape, scrape, value
from tests.support.refusing_servers import refusing
from tests.support.rows import a_job, an_encounter
from tests.support.short_records import short_record

pytestmark = pytest.mark.xdist_group("metrics")

TOKEN = "scraper-" + "t" * 32
SCRAPE_STATEMENTS = 10
"""The transaction with its limit (three), and one statement per source of figures."""


def asked(path: str = "/metrics", *, method: str = "GET", **headers: str) -> HttpResponse:
    """Return the answer of the middleware alone, which passes nothing on."""
    request = RequestFactory().generic(method, path, headers=headers)

    def refused(_request: object) -> HttpResponse:
        raise AssertionError("the request was passed on")

    answer = MetricsEndpoint(refused)(request)
    assert isinstance(answer, HttpResponse)
    return answer


def test_without_the_setting_there_are_no_metrics(settings: Any) -> None:
    settings.METRICS_TOKEN = None

    assert asked(authorization=f"Bearer {TOKEN}").status_code == 404


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/metrics", {}),
        ("/metrics", {"authorization": "Bearer "}),
        ("/metrics", {"authorization": f"Bearer {TOKEN}x"}),
        ("/metrics", {"authorization": f"Basic {TOKEN}"}),
        ("/metrics", {"authorization": TOKEN}),
        ("/metrics", {"authorization": "Bearer \xe9"}),
        (f"/metrics?token={TOKEN}", {}),
        ("/metrics", {"cookie": f"token={TOKEN}"}),
    ],
)
def test_only_the_header_with_the_token_opens_the_metrics(
    settings: Any, path: str, headers: dict[str, str]
) -> None:
    settings.METRICS_TOKEN = TOKEN

    answer = asked(path, **headers)

    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert "medproc_" not in answer.content.decode()


def test_a_scrape_writes_nothing_and_only_reads_by_get(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN

    assert asked(method="POST", authorization=f"Bearer {TOKEN}").status_code == 405


@pytest.mark.django_db
def test_a_scrape_needs_no_session_no_known_host_and_no_https(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    settings.SECURE_SSL_REDIRECT = True

    with CaptureQueriesContext(connection) as queries:
        answer = Client().get(
            "/metrics", headers={"authorization": f"bearer {TOKEN}", "host": "10.0.0.7:8000"}
        )

    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer["Cache-Control"] == "no-store"
    assert 'documents_processed_total{status="completed"} 0.0' in answer.content.decode()
    assert not answer.cookies
    assert not [q for q in queries if "session" in q["sql"] and "ai_processing" not in q["sql"]]


@pytest.mark.django_db
def test_real_records_are_counted_and_stay_counted_after_pruning(
    tmp_path: Path, redis_db: redis.Redis
) -> None:
    done = records.completed_record(short_record(tmp_path / "a.pdf", 2))
    records.failed_record(
        short_record(tmp_path / "b.pdf", 2), [{"fault": "bad-json", "kind": "entities", "page": 1}]
    )
    first = scrape()
    calls = list(ProviderCall.objects.values_list("accepted", "input_tokens", "output_tokens"))
    confidence = EntityMetrics.objects.get(shell_file=done).confidence

    assert value(first, "documents_processed_total", status="completed") == 1
    assert value(first, "documents_processed_total", status="failed") == 1
    assert value(first, "processing_duration_count") == 1
    assert value(first, "medproc_sla_records_total", priority="normal", result="met") == 1
    assert value(first, "medproc_sla_records_total", priority="normal", result="missed") == 1
    assert value(first, "extraction_confidence_bucket", le="+Inf") == 1
    assert confidence is not None
    assert value(first, "extraction_confidence_sum") == pytest.approx(confidence, abs=1e-6)
    assert value(first, "medproc_pages_processed_total") == 2
    assert value(first, "medproc_turnaround_seconds_count", priority="normal") == 1
    assert sum(first["medproc_provider_calls_total"].values()) == len(calls)
    assert sum(first["medproc_provider_calls_accepted_total"].values()) == sum(c[0] for c in calls)
    tokens = first["medproc_provider_tokens_total"]
    assert sum(tokens.values()) == sum(c[1] + c[2] for c in calls)
    assert sum(first["medproc_provider_call_seconds_count"].values()) == len(calls)
    parse = {dict(labels)["outcome"] for labels in first["medproc_provider_calls_total"]}
    assert parse == {"OK", "PARSE_JSON"}

    counters = _counters(first)
    _prune("provider_payloads", "provider_calls", "job_queue", "ai_processing_summary")
    assert _counters(scrape()) == counters
    rows = MetricCount.objects.count()
    fold_counts()
    assert _counters(scrape()) == counters
    assert MetricCount.objects.count() < rows


def _prune(*tables: str) -> None:
    with rewriting(), connection.cursor() as cursor:
        for table in tables:
            cursor.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))


def _counters(of: Scrape) -> dict[str, Any]:
    ends = ("_total", "_bucket", "_sum", "_count")
    return {name: vector for name, vector in of.items() if name.endswith(ends)}


@pytest.mark.django_db
def test_a_repeated_or_rolled_back_flush_counts_its_calls_and_flags_once() -> None:
    job = a_job()
    result, batches = an_encounter(job, batches=2)
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    flagged = an_entity(lease, result) | {"review_flags": ["disputed:dose", "read_once"]}
    flush = Flush(work=Batch, calls=[a_call(lease, batches[0])], results=[flagged])

    with transaction.atomic():
        write(lease, flush)
        transaction.set_rollback(True)
    assert not MetricCount.objects.exists()
    write(lease, flush)
    write(lease, flush)

    found = scrape()
    of_call = {"provider": "local", "model": "m", "step": "pass1", "outcome": "OK"}
    assert value(found, "medproc_provider_calls_total", **of_call) == 1
    assert found["medproc_review_flags_total"] == {
        frozenset({("step", "pass1"), ("flag", "disputed")}): 1,
        frozenset({("step", "pass1"), ("flag", "read_once")}): 1,
    }


@pytest.mark.django_db
def test_crashes_retries_cancellations_and_incidents_are_counted() -> None:
    job = a_job()
    assert claim(Step.PASS1, "w") is not None
    Job.objects.update(lease_expires_at="2020-01-01T00:00:00Z")
    take_expired()
    job_cancel(job.id, reason="a test")
    retry_job(job.id, entry={"event": "retried"})
    for _ in range(2):
        open_incident(
            IncidentKind.OUTAGE,
            ProviderModel(provider="gemini", model="m"),
            first_failure_at=job.created_at,
            evidence={},
        )

    found = scrape()

    assert value(found, "medproc_step_crashes_total", step="pass1") == 1
    assert value(found, "documents_processed_total", status="cancelled") == 1
    assert value(found, "medproc_job_retries_total", step="pass1", by="operator") == 1
    assert value(found, "medproc_incidents_total", kind="outage") == 1
    assert value(found, "medproc_incidents_open", kind="outage") == 1
    assert value(found, "medproc_records", step="pass1", state="waiting") == 1
    assert value(found, "processing_duration_count") == 0


@pytest.mark.django_db
def test_a_scrape_has_the_same_few_statements_for_one_and_for_many_records() -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            exposition()
        return len(queries)

    a_job()
    few = statements()
    for _ in range(30):
        a_job()

    assert few == statements() == SCRAPE_STATEMENTS
    assert value(scrape(), "medproc_records", step="pass1", state="waiting") == 31


@pytest.mark.django_db
def test_every_declared_metric_is_sent_with_its_type_and_without_other_labels() -> None:
    families = {f.name: f for f in text_string_to_metric_families(exposition().decode())}

    assert families.keys() == {family.name for family in catalogue.ALL}
    for family in catalogue.ALL:
        found = families[family.name]
        assert (found.type, found.documentation) == (family.kind.value, family.help)
        for sample in found.samples:
            assert sample.name in family.samples
            assert set(sample.labels) - {"le"} == set(family.labels)


@pytest.mark.django_db
def test_without_redis_the_database_still_speaks(settings: Any, redis_db: redis.Redis) -> None:
    settings.REDIS_URL = "unix:///nonexistent/valkey.sock"
    with refusing(ServerFault.REDIS_AWAY):
        found = scrape()

    assert value(found, "medproc_scrape_source_up", source="redis") == 0
    assert value(found, "medproc_scrape_source_up", source="database") == 1
    assert value(found, "medproc_server_fault", code="REDIS_AWAY") == 1
    assert value(found, "documents_processed_total", status="completed") == 0
    assert "medproc_workers" not in found


def test_without_the_database_redis_still_speaks(cloned_db: None, redis_db: redis.Redis) -> None:
    with refusing(ServerFault.POSTGRES_AWAY):
        found = scrape()

    assert value(found, "medproc_scrape_source_up", source="database") == 0
    assert value(found, "medproc_scrape_source_up", source="redis") == 1
    assert value(found, "medproc_server_fault", code="POSTGRES_AWAY") == 1
    assert value(found, "medproc_workers", state="idle") == 0
    assert "documents_processed_total" not in found


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("priority", "late_after_s", "of"),
    [(1, 900, "urgent"), (0, 14_400, "normal"), (-1, 86_400, "low")],
)
def test_a_record_is_late_after_the_target_of_its_priority(
    settings: Any, priority: int, late_after_s: int, of: str
) -> None:
    settings.TIME_SCALE = 1.0
    job = a_job(priority=priority)

    def late(age_s: int) -> dict[str, float]:
        Job.objects.filter(id=job.id).update(created_at=timezone.now() - timedelta(seconds=age_s))
        found = scrape()["medproc_sla_records_late"]
        return {dict(labels)["priority"]: number for labels, number in found.items()}

    assert set(late(late_after_s - 60).values()) == {0}
    assert late(late_after_s + 1) == {"urgent": 0, "normal": 0, "low": 0} | {of: 1}
