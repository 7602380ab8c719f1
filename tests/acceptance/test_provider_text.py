"""Nothing that a provider writes beside its answer reaches a person without the right to read PHI.

A proxy puts canaries into every text field of replies and errors. The tests search every column
that viewers can read, their pages, the output of commands and workers, and all of Redis.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from html import unescape
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.apps import apps
from django.contrib.admin import site
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from gemini_emulator import Emulator
from observability.admin.base import ReadOnlyAdmin
from observability.permissions import Role
from pipeline.core.states import JOB_TERMINAL, JobStatus
from pipeline.models import Entity, Incident, Job, ProviderCall
from tests.support import records
from tests.support.canary_proxy import (
    CANARY,
    FATAL,
    PARKS,
    RETRIED,
    STYLES,
    CanaryProxy,
    Variant,
    canary_proxy,
)
from tests.support.record_runs import RECORD_PATIENCE_S
from tests.support.redis_contents import everything
from tests.support.short_records import short_record
from tests.support.users import client_of
from tests.support.workers import WorkerCommand, until

pytestmark = [
    pytest.mark.xdist_group("acceptance-canary"),
    pytest.mark.slow(
        reason="a hundred odd replies through real workers, and a walk of the console"
    ),
]

PER_DAY = 3
"""The style whose quota id names a day, so that the provider counts as exhausted."""
LIMITED = RETRIED[0]
RETRIED_PLAN = [
    (variant, style)
    for style, variant in product(range(len(STYLES)), RETRIED)
    if style != PER_DAY or not variant.names_quota
]
FATAL_PLAN = [*product(FATAL, range(2))]
PARKING_PLAN: list[tuple[Variant, int]] = [(LIMITED, PER_DAY), *product(PARKS, range(2))]
PAGES = 150
"""The most pages of the console that the walk visits."""
ALIKE = 4
"""The most pages that the walk visits for one kind of address."""


class CanaryRecords:
    """The records, their proxy, and the pool that ran the records."""

    def __init__(self, pool: WorkerCommand, proxy: CanaryProxy) -> None:
        self.pool = pool
        self.proxy = proxy
        self.jobs: list[Job] = []

    def run(self, path: Any, plan: list[tuple[Variant, int]], visits: int) -> Job:
        """Process a record whose discovery meets odd replies only, and whose batches the plan."""
        received = records.submit(short_record(path, visits))
        done = [*JOB_TERMINAL, JobStatus.PARKED]
        started = Job.objects.filter(id=received.job_id)
        until(lambda: started.exclude(current_step__in=["pages", "pass05"]), RECORD_PATIENCE_S)
        self.proxy.plan += plan
        until(lambda: started.filter(status__in=done), RECORD_PATIENCE_S)
        self.proxy.plan.clear()
        self.jobs.append(started.get())
        return self.jobs[-1]


@pytest.fixture(scope="module")
def lived(
    start_pool: Callable[..., WorkerCommand], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CanaryRecords]:
    """Run a record that is retried, a record that fails, and a record that parks."""
    folder = tmp_path_factory.mktemp("canary")
    with Emulator() as emulator, canary_proxy(emulator.url) as proxy:
        pool = start_pool(
            MEDPROC_PROVIDER="gemini",
            GEMINI_BASE_URL=proxy.url,
            PASS1_MAX_RETRIES=6,
            RATE_LIMIT_BUDGET=20,
            GATE_BREAKER_FAILURES=1_000,
        )
        lived = CanaryRecords(pool, proxy)
        lived.run(folder / "retried.pdf", RETRIED_PLAN, 24)
        lived.run(folder / "fatal.pdf", FATAL_PLAN, 6)
        lived.run(folder / "parks.pdf", PARKING_PLAN, 6)
        yield lived


def found_in(text: str) -> list[str]:
    """Return the canaries of a text with some of the words around them."""
    return [text[max(0, m.start() - 40) : m.end() + 40] for m in CANARY.finditer(text)]


def test_every_variant_was_met(lived: CanaryRecords) -> None:
    wanted = {(v.name, style) for v, style in (*RETRIED_PLAN, *FATAL_PLAN)}

    assert wanted - lived.proxy.met == set()
    assert (LIMITED.name, PER_DAY) in lived.proxy.met
    assert [job.status for job in lived.jobs[1:]] == ["failed", "parked"]
    assert Incident.objects.exists()
    assert ProviderCall.objects.filter(message__contains="unreadable").exists()


def test_the_canary_reached_the_columns_that_hold_phi(lived: CanaryRecords) -> None:
    assert Entity.objects.filter(quote__icontains="zyxquill").exists()


def test_no_column_that_a_viewer_can_read_has_a_canary(lived: CanaryRecords) -> None:
    hidden = {
        (model._meta.db_table, getattr(model._meta.get_field(name), "column", name))
        for model, shown in site._registry.items()
        if isinstance(shown, ReadOnlyAdmin)
        for name in shown.phi
    }
    shown_columns = [
        (model._meta.db_table, str(field.column))
        for model in apps.get_models()
        if model._meta.managed
        for field in model._meta.local_concrete_fields
        if (model._meta.db_table, field.column) not in hidden
    ]

    found = {
        f"{table}.{column}": found_in(content(table, column)) for table, column in shown_columns
    }

    assert len(found) > 300
    assert {name: words[:3] for name, words in found.items() if words} == {}


def content(table: str, column: str) -> str:
    """Return all values of a column as text."""
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT "{column}"::text FROM "{table}"')  # noqa: S608 - names of models
        return "\n".join(value or "" for (value,) in cursor.fetchall())


def test_no_control_character_of_a_provider_is_stored_for_viewers(lived: CanaryRecords) -> None:
    columns = ("message", "model_version", "response_id", "finish_reason", "quota_id")
    texts = {text or "" for row in ProviderCall.objects.values_list(*columns) for text in row}

    assert {text for text in texts if not (text.isprintable() and text.isascii())} == set()


def test_no_worker_prints_a_canary(lived: CanaryRecords) -> None:
    assert "step_ended" in lived.pool.printed() or "step" in lived.pool.printed()
    assert found_in(lived.pool.printed()) == []


def test_redis_holds_no_canary(lived: CanaryRecords, module_redis: Any) -> None:
    assert found_in(everything(module_redis)) == []


def test_no_page_of_the_console_shows_a_canary(lived: CanaryRecords) -> None:
    # An operator sees each page that a viewer sees, and neither may read PHI.
    client = client_of(Role.OPERATOR)

    pages = walked(client, [f"/admin/records/{job.shell_file_id}/" for job in lived.jobs])

    assert len(pages) > 80
    assert {url: found_in(text)[:3] for url, text in pages.items() if CANARY.search(text)} == {}


def walked(client: Client, start: list[str]) -> dict[str, str]:
    """Return the pages that links lead to, by address; one page for each shape of a query."""
    waiting = ["/admin/", "/admin/tables/", *start]
    seen: set[tuple[str, str]] = set()
    pages: dict[str, str] = {}
    while waiting and len(pages) < PAGES:
        url = waiting.pop(0)
        response = client.get(url, follow=True)
        assert response.status_code in (200, 403, 404), url
        pages[url] = response.content.decode()
        for link in re.findall(r'href="([^"#]+)', pages[url]):
            parts = urlsplit(unescape(link))
            target = parts.path if not parts.query else f"{parts.path}?{parts.query}"
            shape = re.sub(r"[0-9a-f-]{36}|[0-9]+", "", parts.path)
            many = sum(each[1] == shape for each in seen)
            is_new = (target, shape) not in seen and many < ALIKE
            if parts.path.startswith("/admin/") and "logout" not in target and is_new:
                seen.add((target, shape))
                waiting.append(target)
    return pages


def test_no_command_prints_a_canary(lived: CanaryRecords) -> None:
    incident = Incident.objects.first()
    assert incident is not None
    call = ProviderCall.objects.filter(outcome="RATE_LIMIT").first()
    assert call is not None
    ids = [*(str(job.shell_file_id) for job in lived.jobs), str(incident.id), str(call.id)]
    commands = [
        *(["explain", each, "--all"] for each in ids),
        *(["explain", each, "--json"] for each in ids),
        ["health"],
        ["health", "--json"],
        ["retry", "--error-code", "API_4XX", "--reason", "a test", "--dry-run"],
        ["detect_incidents", "--json"],
        ["verify_audit"],
    ]

    printed = {" ".join(command): output(command) for command in commands}

    assert {name: found_in(text)[:3] for name, text in printed.items() if CANARY.search(text)} == {}
    assert all("HTTP 4" in printed[f"explain {each} --all"] for each in ids[1:2])


def output(command: list[str]) -> str:
    """Run a command; return its output and its errors."""
    out = io.StringIO()
    try:
        call_command(*command, stdout=out, stderr=out)
    except CommandError as error:
        out.write(str(error))
    except SystemExit:
        # The command has found a problem and has printed it.
        pass
    return out.getvalue()
