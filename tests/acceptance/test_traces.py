"""A record is one trace, whichever workers ran it; a hanging collector costs a record nothing."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gemini_emulator import Emulator
from medproc.env import PROJECT_ROOT
from pipeline.models import Batch, Chunk, ProviderCall
from pipeline.stages.intake import Received
from tests.support import records
from tests.support.record_runs import ended
from tests.support.short_records import short_record
from tests.support.telemetry_receiver import (
    ReceivedSpan,
    TelemetryReceiver,
    receiving_telemetry,
)
from tests.support.workers import WorkerCommand, until

pytestmark = [
    pytest.mark.xdist_group("acceptance-traces"),
    pytest.mark.slow(reason="real workers process a record, and a worker is killed: 15 s"),
]
SLOW_PAGE = 3
ATTRIBUTES = {
    "record": "record job outcome crashes",
    "pass": "record job pass attempt worker outcome",
    "item": "work_item pass outcome attempts rate_limit_waits gen_ai.usage.input_tokens"
    " gen_ai.usage.output_tokens",
    "call": "call pass outcome attempt split wait_ms gen_ai.provider.name gen_ai.request.model"
    " gen_ai.usage.input_tokens gen_ai.usage.output_tokens http.response.status_code",
}
FAULTS: tuple[dict[str, Any], ...] = (
    {"kind": "entities", "page": 1, "attempt": 1, "fault": "bad-json"},
    {"kind": "entities", "page": SLOW_PAGE, "attempt": 1, "fault": "slow", "delay_s": 100},
)


@pytest.fixture(scope="module")
def receiver() -> Iterator[TelemetryReceiver]:
    with receiving_telemetry() as receiver:
        yield receiver


class Traced:
    """A record of three batches whose first worker in Pass 1 was killed, and what was sent."""

    def __init__(self, received: Received, receiver: TelemetryReceiver) -> None:
        self.record_id = received.shell_file_id
        self.job_id = received.job_id
        self.receiver = receiver

    @property
    def spans(self) -> list[ReceivedSpan]:
        return [span for span in self.receiver.spans() if span.trace == self.record_id]

    def named(self, name: str, **attributes: Any) -> list[ReceivedSpan]:
        wanted = {f"medproc.{key}": value for key, value in attributes.items()}
        return [
            span for span in self.spans
            if span.name == name and wanted.items() <= span.attributes.items()
        ]  # fmt: skip


@pytest.fixture(scope="module")
def traced(
    start_pool: Callable[..., WorkerCommand],
    receiver: TelemetryReceiver,
    tmp_path_factory: pytest.TempPathFactory,
) -> Traced:
    """Run the record with workers and a scheduler that send spans."""
    with Emulator(faults=FAULTS) as emulator:
        sends = {
            "MEDPROC_PROVIDER": "gemini",
            "GEMINI_BASE_URL": emulator.url,
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
            "OTEL_EXPORTER_OTLP_HEADERS": "X-Token=s%20t,other=1",
            "OTEL_SERVICE_NAME": "medproc-test",
        }
        pool = start_pool(**sends)
        scheduler = start_pool(command="rqcron", **sends)
        path = short_record(tmp_path_factory.mktemp("traces") / "record.pdf", SLOW_PAGE)
        traced = Traced(records.submit(path), receiver)
        until(lambda: len(traced.named("batch")) == SLOW_PAGE - 1)
        for horse in pool.horses():
            os.kill(horse, signal.SIGKILL)
        until(lambda: traced.named("record"))
        assert pool.stop() == 0
        assert scheduler.stop() == 0
    return traced


def test_a_record_is_one_trace_with_one_root_and_no_lost_parent(
    traced: Traced, receiver: TelemetryReceiver
) -> None:
    assert {span.trace for span in receiver.spans()} == {traced.record_id}
    ids = [span.id for span in traced.spans]
    assert len(set(ids)) == len(ids)
    (root,) = (span for span in traced.spans if not span.parent)
    assert (root.name, root.attributes["medproc.outcome"]) == ("record", "completed")
    assert {span.parent for span in traced.spans} - {b""} <= set(ids)
    assert all(root.began_ns <= span.began_ns <= span.ended_ns for span in traced.spans)


def test_each_attempt_of_a_pass_is_below_the_record(traced: Traced) -> None:
    (root,) = traced.named("record")
    passes = [span for span in traced.spans if span.parent == root.id]

    found = [(span.name, span.attributes["medproc.outcome"], span.has_failed) for span in passes]

    assert sorted(found) == [
        ("pages", "completed", False),
        ("pass05", "completed", False),
        ("pass1", "WORKER_LOST", True),
        ("pass1", "completed", False),
    ]
    lost, again = (traced.named("pass1", outcome=each)[0] for each in ("WORKER_LOST", "completed"))
    assert lost.attributes["medproc.attempt"] < again.attributes["medproc.attempt"]
    assert lost.began_ns < lost.ended_ns <= again.began_ns


def test_each_item_is_below_its_attempt_of_the_pass_and_each_call_below_its_item(
    traced: Traced,
) -> None:
    passes = {span.id: span for span in traced.spans if span.name.startswith("pass")}
    items = {span.id: span for name in ("chunk", "batch") for span in traced.named(name)}
    calls = traced.named("call")
    own = {"processing_session__shell_file": traced.record_id}

    assert {span.attributes["medproc.work_item"] for span in items.values()} == {
        str(row.id)
        for row in (*Batch.objects.filter(**own), *Chunk.objects.filter(**own))
    }  # fmt: skip
    assert {item.parent for item in items.values()} <= set(passes)
    assert {span.attributes["medproc.pass"] for span in items.values()} == {"pass05", "pass1"}
    lost, again = (traced.named("pass1", outcome=each)[0] for each in ("WORKER_LOST", "completed"))
    assert Counter(span.parent for span in traced.named("batch")) == {lost.id: 2, again.id: 1}
    assert {span.parent for span in calls} <= set(items)
    written = {
        str(row.id): (row.outcome, row.input_tokens, row.queue_wait_ms)
        for row in ProviderCall.objects.filter(**own)
    }
    assert {
        span.attributes["medproc.call"]: (
            span.attributes["medproc.outcome"],
            span.attributes["gen_ai.usage.input_tokens"],
            span.attributes["medproc.wait_ms"],
        )
        for span in calls
    } == written
    (failed,) = (span for span in calls if span.has_failed)
    assert failed.attributes["medproc.outcome"] == "PARSE_JSON"
    assert failed.attributes["medproc.attempt"] == 1
    assert sorted(span.attributes["medproc.attempt"] for span in calls) == [1, 1, 1, 1, 2]


def test_a_span_has_exactly_the_documented_attributes(traced: Traced) -> None:
    found: dict[str, set[str]] = {}
    for span in traced.spans:
        name = {"batch": "item", "chunk": "item"}.get(span.name, span.name)
        name = name if name in ("record", "item", "call") else "pass"
        found.setdefault(name, set()).update(span.attributes)

    assert found == {
        name: {f"medproc.{each}" if "." not in each else each for each in names.split()}
        for name, names in ATTRIBUTES.items()
    }
    page = (PROJECT_ROOT / "docs" / "telemetry.md").read_text("utf-8")
    assert [name for names in found.values() for name in names if f"`{name}`" not in page] == []


def test_each_request_carries_the_headers_and_the_name_of_the_service(
    traced: Traced, receiver: TelemetryReceiver
) -> None:
    for each in receiver.posted:
        assert each.headers["x-token"] == "s t"
        assert b"medproc-test" in each.body


def test_a_collector_that_hangs_costs_a_record_nothing(
    start_pool: Callable[..., WorkerCommand],
    receiver: TelemetryReceiver,
    tmp_path: Path,
) -> None:
    receiver.hangs = True
    pool = start_pool(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)

    (job,) = ended(records.submit(short_record(tmp_path / "record.pdf", 2)))

    assert job.status == "completed"
    assert pool.stop() == 0
    assert pool.printed().count("the collector did not take the spans") == 1
