"""Every page of the console over millions of batches: duration, size, number of statements.

Run `python -m bench.console [--batches N] [--requests N] [--only TEXT]`. Seeds five million batches
in 3 to 4 min on its own PostgreSQL and Valkey, then measures for about 4 min. Exits 1 if the p95 of
a page exceeds 100 ms. Other bounds are 120 ms and 300 KB for a record of 300 batches, 300 ms for
the preview of a bulk operation, and 150 ms for the review and the results of 1,000 entities. The
process is prepared as a worker of the web server.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any

from bench._environment import seeded_records

BATCHES = 5_000_000
BOUND_MS = 100.0
BOUNDS_MS = {"record, 300 batches": 120.0, "bulk preview": 300.0, "1,000 entities": 150.0}
"""Other bounds, by a part of the page's name."""
LARGE_BOUND_BYTES = 300_000
WARM = 2
ENTITIES = 1_000
"""Entities of the record whose review and results are measured."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The measurements of one page."""

    name: str
    least_ms: float
    p50_ms: float
    p95_ms: float
    size: int
    statements: int
    bound_ms: float = BOUND_MS
    bound_bytes: int | None = None

    @property
    def is_missed(self) -> bool:
        """Return whether a bound is exceeded."""
        return self.p95_ms >= self.bound_ms or self.size >= (self.bound_bytes or sys.maxsize)


def main() -> int:
    """Seed, measure every page, print a table, and return the exit code."""
    asked = _arguments()
    with seeded_records(asked.batches, lambda line: print(line, flush=True)):
        return measure(asked.requests, asked.only)


def measure(requests: int, only: str) -> int:
    """Request every page and print its measurements; return 1 if a bound is missed."""
    from django.contrib.auth.models import User
    from django.test import Client

    from medproc.web.warming import warm
    from tests.support.large_rows import a_large_record
    from tests.support.review_rows import a_reviewed_record, claimed

    warm()
    client = Client(SERVER_NAME="127.0.0.1")
    user = User.objects.create_superuser("bench")
    client.force_login(user)
    large = a_large_record()
    review = claimed(a_reviewed_record(entities=ENTITIES), f"user:{user.pk}")
    missed = []
    print(f"{'page':44} {'least':>8} {'p50':>8} {'p95':>8} {'size':>9} statements")
    for name, url in pages(large, review):
        if only not in name:
            continue
        found = _measured(client, name, url, requests)
        missed += [name] if found.is_missed else []
        times = " ".join(f"{ms:5.0f} ms" for ms in (found.least_ms, found.p50_ms, found.p95_ms))
        note = "  MISSED" if found.is_missed else ""
        size = f"{found.size / 1000:6.0f} KB"
        print(f"{name:44} {times} {size} {found.statements:5}{note}", flush=True)
    print(f"bounds missed: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


def pages(large: Any, review: Any) -> list[tuple[str, str]]:
    """Return the name and URL of every measured page."""
    from django.apps import apps
    from django.contrib import admin
    from django.urls import reverse

    from observability.actions.bulk_kinds import KINDS
    from observability.models import BulkOperation
    from pipeline.core.states import JobStatus, WorkStatus
    from pipeline.models import Batch, Incident, Job, ProviderCall

    def one(status: JobStatus) -> Job:
        jobs = Job.objects.filter(status=status).exclude(shell_file_id=large)
        return jobs.order_by("-created_at")[0]

    failed, parked, done = map(one, (JobStatus.FAILED, JobStatus.PARKED, JobStatus.COMPLETED))
    batch = Batch.objects.filter(status=WorkStatus.FAILED)[0]
    middle = Job.objects.order_by("-created_at")[100_000:][:1] or [done]
    place = f"{middle[0].created_at.isoformat()}~{middle[0].id}".replace("+", "%2B")
    call, other = ProviderCall.objects.filter(processing_session__shell_file=large)[:2]
    incident = Incident.objects.order_by("opened_at")[0]
    operation = BulkOperation.objects.order_by("created_at")[0]
    named = {name: reverse(f"admin:{name}") for name in (
        "overview", "records", "failures", "failure_members", "search", "retry",
        "bulk_operations", "queues", "upload", "tables", "incidents", "stale", "audit", "reviews",
        "review_learning",
    )}  # fmt: skip
    members = f"{named['failure_members']}?window=7d&cause="
    listed = list(named.items() - {("retry", named["retry"])})
    listed += [
        ("record, 300 batches", reverse("admin:record", args=[large])),
        *((f"record, {job.status}", reverse("admin:record", args=[job.shell_file_id]))
          for job in (failed, parked, done)),
        *((f"records, {word}", f"{named['records']}?is={word}")
          for word in ("running", "waiting", "parked", "failed", "dead")),
        ("records, deep", f"{named['records']}?after={place}"),
        *((f"failures, {window}", f"{named['failures']}?window={window}")
          for window in ("1h", "24h", "7d")),
        ("failure_members, API_5XX", f"{members}API_5XX&step=pass1"),
        ("failure_members, failed for good", f"{members}API_5XX&state=failed"),
        ("failure_members, rare cause", f"{members}PARSE_JSON&state=absorbed"),
        ("failure_members, jobs", f"{members}INPUT_ENCRYPTED&source=job"),
        ("search, batch", f"{named['search']}?q={batch.id}"),
        ("search, beginning", f"{named['search']}?q={str(batch.id)[:8]}"),
        ("retry, record", f"{named['retry']}?record={failed.shell_file_id}"),
        ("retry, cause within 24 h", f"{named['retry']}?error_code=API_5XX&window=24h"),
        ("review, 1,000 entities", reverse("admin:review", args=[review.id])),
        ("results, 1,000 entities", reverse("admin:record_results", args=[review.shell_file_id])),
        ("record_page", reverse("admin:record_page", args=[large, 1])),
        ("call_reading", reverse("admin:call_reading", args=[call.id])),
        ("bulk_operation", reverse("admin:bulk_operation", args=[operation.id])),
        ("incident", reverse("admin:incident", args=[incident.id])),
        ("compare", reverse("admin:compare", args=[large]) + f"?a={call.id}&b={other.id}"),
        ("confirm", reverse("admin:confirm", args=["pause"]) + "?target=pass1"),
        *((f"bulk preview, {name}", reverse("admin:bulk_preview", args=[name]))
          for name in KINDS if name != "retry"),
        ("release, job", reverse("admin:bulk_preview", args=["release"]) + f"?job={parked.id}"),
    ]  # fmt: skip
    for model in apps.get_models():
        if not admin.site.is_registered(model):
            continue
        shown = admin.site.get_model_admin(model)
        base = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        url = reverse(f"{base}_changelist")
        listed.append((f"list of {model._meta.db_table}", url))
        for column in shown.get_list_filter(None):  # type: ignore[arg-type]  # no request
            if model._meta.app_label == "auth":
                continue
            field: Any = model._meta.get_field(str(column))
            values = [value for value, _ in field.choices or [("1", "")]]
            listed += [
                (f"… {model._meta.db_table} {column}={value}", f"{url}?{column}__exact={value}")
                for value in values
            ]
        row = model._default_manager.first()
        if row is not None:
            listed.append((f"… {model._meta.db_table}, searched", f"{url}?q={row.pk}"))
            listed.append(
                (f"row of {model._meta.db_table}", reverse(f"{base}_change", args=[row.pk]))
            )
    return sorted(listed[:10]) + listed[10:]


def _measured(client: Any, name: str, url: str, requests: int) -> Measured:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        response = client.get(url)
        statements = len(captured)
    if response.status_code not in {200, 302}:
        raise SystemExit(f"{name}: {url} answers {response.status_code}")
    for _ in range(WARM):
        client.get(url)
    took = []
    for _ in range(requests):
        began = time.perf_counter()
        response = client.get(url)
        took.append(1000 * (time.perf_counter() - began))
    return Measured(
        name=name,
        least_ms=min(took),
        p50_ms=statistics.median(took),
        p95_ms=statistics.quantiles(took, n=20)[-1],
        size=len(response.content),
        statements=statements,
        bound_ms=next((ms for part, ms in BOUNDS_MS.items() if part in name), BOUND_MS),
        bound_bytes=LARGE_BOUND_BYTES if name == "record, 300 batches" else None,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--requests", type=int, default=30)
    parser.add_argument("--only", default="", help="only pages whose name contains this")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
