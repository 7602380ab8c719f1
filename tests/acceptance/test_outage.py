"""Ten records survive a minute without the provider, and complete without help.

Workers and scheduler are real. The scenario `outage` runs at the suite's time scale. A second run
empties Redis in the middle of the outage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings
from django.core.management import call_command
from django.db.models import QuerySet

from gemini_emulator import Emulator
from gemini_emulator.recorded_rows import prove_log
from gemini_emulator.request_log import LogLine
from gemini_emulator.scenario import load_scenario
from pipeline.core.states import IncidentKind, IncidentState, JobStatus
from pipeline.models import Batch, Incident, Job, ProviderCall, ShellFile
from pipeline.ratelimit import Breaker, RateLimiter
from pipeline.stages.intake import Received
from tests.support import records
from tests.support.record_runs import RECORD_PATIENCE_S, astray, ended
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand, until

pytestmark = [
    pytest.mark.xdist_group("acceptance-outage"),
    pytest.mark.timeout(1200),
    pytest.mark.slow(reason="two outages of a scaled minute under ten records: 45 s"),
]

Start = Callable[..., WorkerCommand]

RECORDS = 10
VISITS = 6
CALLS = 2
"""Calls in flight for each record, the maximum that an outage costs besides a probe."""
SCALE = 0.05
"""The suite's TIME_SCALE: the outage lasts one scaled minute for the workers too."""
LATENCY = "8/call"
"""Replaces the scenario's 2 s, so that no record completes before the outage."""
FROM_THE_FIFTH_FAILURE_S = 2.0
ONE_BATCH_A_SECTION = {
    "MEDPROC_PROVIDER": "gemini",
    "PASS1_CONCURRENCY_LIMIT": CALLS,
    "PASS1_BATCH_MIN_PAGES": 1,
    "PASS1_BATCH_MAX_PAGES": 1,
    "PASS1_BATCH_HARD_CEILING": 1,
}


@dataclass
class Outage:
    """The records, workers and service that a test observes during the outage."""

    received: list[Received]
    emulator: Emulator
    earlier: list[LogLine]
    """Calls of the emulators that ran before: Pass 0.5, and an outage that was ended."""
    running: ExitStack
    """Ends the emulator."""

    @property
    def jobs(self) -> list[Job]:
        return list(Job.objects.filter(id__in=[each.job_id for each in self.received]))

    def calls(self, outcome: str) -> QuerySet[ProviderCall]:
        """Return the calls of these records with this outcome."""
        ids = [each.shell_file_id for each in self.received]
        return ProviderCall.objects.filter(processing_session__shell_file__in=ids, outcome=outcome)

    def batches(self) -> QuerySet[Batch]:
        """Return the batches of these records."""
        ids = [each.shell_file_id for each in self.received]
        return Batch.objects.filter(processing_session__shell_file__in=ids)

    def end(self) -> None:
        """Replace the provider that is down by a working provider."""
        port = int(self.emulator.url.rsplit(":", 1)[1])
        self.running.close()
        self.earlier += self.emulator.log()
        self.emulator = self.running.enter_context(
            Emulator(latency=LATENCY, scale=SCALE, seed=5, port=port)
        )

    @property
    def log(self) -> list[LogLine]:
        return [*self.earlier, *self.emulator.log()]


@contextmanager
def an_outage(
    start_pool: Start, folder: Path, *, records_waiting: int = 0, changes: Mapping[str, Any] = {}
) -> Iterator[Outage]:
    """Bring records before Pass 1, then start ten workers and the scenario with these changes."""
    count = RECORDS + records_waiting
    files = [short_record(folder / f"{n}.pdf", VISITS, patient=f"P{n}") for n in range(count)]
    received = [records.submit(file) for file in files]
    with Emulator() as emulator:
        reading = start_pool(
            "--queues",
            "pass05",
            "pages",
            "--workers",
            "2",
            GEMINI_BASE_URL=emulator.url,
            **ONE_BATCH_A_SECTION,
        )
        before_pass1 = Job.objects.filter(current_step="pass1", status=JobStatus.PENDING)
        until(lambda: before_pass1.count() == count, RECORD_PATIENCE_S)
        reading.stop()
        earlier = emulator.log()
    scenario = {**load_scenario("outage").model_dump(mode="json"), "latency": LATENCY, **changes}
    with ExitStack() as running:
        emulator = running.enter_context(Emulator(scenario=scenario, scale=SCALE, seed=3))
        pool = start_pool(
            "--queues",
            "pass1",
            "--workers",
            str(RECORDS),
            GEMINI_BASE_URL=emulator.url,
            **ONE_BATCH_A_SECTION,
        )
        yield Outage(received, emulator, earlier, running)
        pool.stop()


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    """Provide the workers' Redis."""
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as found:
        yield found


def limiter() -> RateLimiter:
    return RateLimiter.for_("gemini", settings.GEMINI_MODEL)


def moment(client: redis.Redis, field: str) -> float:
    """Return a moment of the rate limiter by Redis's clock, which is also the workers' clock."""
    return float(str(client.hget(limiter()._keys[0], field), "ascii"))  # type: ignore[arg-type]


def the_incident() -> Incident:
    return Incident.objects.filter(kind=IncidentKind.OUTAGE).latest("opened_at")


def nothing_is_open() -> bool:
    return not Incident.objects.filter(state=IncidentState.OPEN).exists()


def ended_at(call: ProviderCall) -> float:
    return float(call.started_at.timestamp() + call.duration_ms / 1000)


def assert_nothing_was_lost_or_spent(outage: Outage) -> None:
    jobs = ended(*outage.received)
    assert [(job.status, job.last_error) for job in jobs] == [("completed", None)] * len(jobs)
    assert {(b.status, b.attempt_count) for b in outage.batches()} == {("succeeded", 1)}
    history = [e for b in outage.batches() for e in b.transient_error_history or ()]
    assert len(history) >= 5
    assert all(e["error_code"] == "API_5XX" and e["refunded"] for e in history)
    for each in outage.received:
        assert not astray(ShellFile.objects.get(id=each.shell_file_id))
    proof = prove_log(outage.log)
    assert proof.findings == []
    assert proof.counts["items"] == proof.counts["accepted calls"]


def test_ten_records_in_flight_outlive_an_outage_and_complete_by_themselves(
    start_pool: Start,
    scheduler: WorkerCommand,
    client: redis.Redis,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with an_outage(start_pool, tmp_path) as outage:
        until(lambda: limiter().state().breaker is not Breaker.CLOSED, RECORD_PATIENCE_S)
        opened_at = moment(client, "open_since")
        in_flight = [job.status for job in outage.jobs]
        incident = until(lambda: Incident.objects.filter(state=IncidentState.OPEN).first())
        assert incident is not None
        call_command("explain", str(incident.id))
        while_open = capsys.readouterr().out

        assert_nothing_was_lost_or_spent(outage)
        until(nothing_is_open)

    assert in_flight == [JobStatus.PROCESSING] * RECORDS
    failed = sorted(outage.calls("API_5XX"), key=ended_at)
    assert opened_at - ended_at(failed[4]) <= FROM_THE_FIFTH_FAILURE_S
    down_s = ended_at(failed[-1]) - opened_at
    probes = 1 + down_s / (settings.GATE_PROBE_S * settings.TIME_SCALE)
    assert len(failed) <= RECORDS * CALLS + 5 + probes
    call_command("explain", str(incident.id))
    afterwards = capsys.readouterr().out
    assert while_open.startswith(f"gemini {settings.GEMINI_MODEL} has been down for")
    assert "Nothing to do: probes are sent, and work resumes by itself." in while_open
    assert afterwards.startswith(f"Closed: gemini {settings.GEMINI_MODEL} was down for")
    assert "the provider answers again" in afterwards
    assert "total: API_5XX" in afterwards


def test_an_outage_goes_on_where_redis_is_emptied_in_the_middle_of_it(
    start_pool: Start, scheduler: WorkerCommand, client: redis.Redis, tmp_path: Path
) -> None:
    # The outage lasts until the test has seen it: three seconds are too short on a busy machine.
    lasting = {"timeline": ["from 30s: down"]}
    with an_outage(start_pool, tmp_path, records_waiting=2, changes=lasting) as outage:
        until(lambda: Incident.objects.filter(state=IncidentState.OPEN).exists(), RECORD_PATIENCE_S)
        until(lambda: limiter().state().breaker is not Breaker.CLOSED)
        answered = outage.calls("OK").count()

        client.flushdb()

        until(lambda: limiter().state().outage_since is not None)
        assert moment(client, "first_failure") == pytest.approx(
            the_incident().first_failure_at.timestamp(), abs=0.001
        )
        assert limiter().state().counters.breaker_trips == 1
        outage.end()
        assert_nothing_was_lost_or_spent(outage)
        assert outage.calls("OK").count() > answered
        until(nothing_is_open)
