"""Spans have ids that every process derives alike, and a sender that never holds a step up."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from medproc.env import PROJECT_ROOT
from medproc.telemetry import traces
from medproc.telemetry.collector_pause import CollectorPause
from medproc.telemetry.spans import ROOT, TraceSpan, is_sampled, span_id_of
from tests.support.telemetry_receiver import TelemetryReceiver, receiving_telemetry
from tests.support.workers import PATIENCE_S, until

RECORD = UUID("3f0c6a52-77a1-4a5e-9d5b-0a4c6d0f1b22")


@pytest.fixture
def receiver(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[TelemetryReceiver]:
    """Provide the collector of this process, which no test before has found away."""
    monkeypatch.setattr(traces, "PAUSE", CollectorPause())
    with receiving_telemetry() as receiver:
        settings.OTEL_EXPORTER_OTLP_ENDPOINT = receiver.url
        yield receiver
        # A thread that still sends would log into the next test.
        receiver.status, receiver.hangs = 200, False
        receiver.over.set()
        until(lambda: all(thread.name != "spans" for thread in threading.enumerate()))


def spans(count: int, record_id: UUID = RECORD) -> list[TraceSpan]:
    now = datetime.now(UTC)
    return [
        TraceSpan(record_id=record_id, key=f"call {n}", name="call", began_at=now, ended_at=now)
        for n in range(count)
    ]


def test_the_trace_id_is_the_id_of_the_record_and_span_ids_follow_from_their_keys() -> None:
    (span,) = spans(1)

    assert f"{span.trace_id:032x}" == RECORD.hex
    assert span.span_id == span_id_of(RECORD, "call 0") != span_id_of(uuid4(), "call 0")
    assert 0 < span.span_id < 2**64
    assert span.parent_id == span_id_of(RECORD, ROOT) not in (span.span_id, None)
    root = TraceSpan(
        record_id=RECORD, key=ROOT, name="r", began_at=span.began_at, ended_at=span.ended_at
    )
    assert root.parent_id is None
    # A constant: other versions of medproc, on other hosts, must derive the same id.
    assert f"{span_id_of(RECORD, ROOT):016x}" == "8b643da4fef059fc"


def test_the_share_of_sampled_records_is_what_was_asked_for() -> None:
    ids = [uuid4() for _ in range(4000)]

    sampled = {
        share: {each for each in ids if is_sampled(each, share)} for share in (0, 0.1, 0.5, 1)
    }

    assert not sampled[0]
    assert 300 < len(sampled[0.1]) < 500
    assert 1850 < len(sampled[0.5]) < 2150
    assert sampled[0.1] < sampled[0.5] < sampled[1] == set(ids)


def test_spans_of_records_that_are_not_sampled_are_not_sent(
    receiver: TelemetryReceiver, settings: Any
) -> None:
    settings.OTEL_TRACES_SAMPLER_ARG = 0.5
    ids = [uuid4() for _ in range(40)]

    for each in ids:
        traces.send(spans(1, each))
    traces.flush()

    assert {span.trace for span in receiver.spans()} == {i for i in ids if is_sampled(i, 0.5)}


def test_all_spans_arrive_in_the_end_however_many(receiver: TelemetryReceiver) -> None:
    sender = traces.SpanSender()

    sender.add(spans(traces.SEND_AT * 2 + 1))
    sender.flush(PATIENCE_S)

    assert len({span.id for span in receiver.spans()}) == traces.SEND_AT * 2 + 1


def test_a_collector_that_hangs_is_waited_for_once_and_is_asked_again_later(
    receiver: TelemetryReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.hangs = True
    sender = traces.SpanSender()

    took = []
    for _ in range(3):
        began = time.monotonic()
        sender.add(spans(10))
        sender.flush(traces.FLUSH_S)
        took.append(time.monotonic() - began)

    assert traces.FLUSH_S <= took[0] < traces.FLUSH_S + 5
    assert max(took[1:]) < traces.FLUSH_S / 2
    assert [each.action for each in caplog.records] == ["collector_away"]  # type: ignore[attr-defined]  # of `extra`
    receiver.hangs = False
    receiver.over.set()
    until(lambda: traces.PAUSE.is_over)
    sender = traces.SpanSender()
    sender.add(spans(1))
    sender.flush(traces.FLUSH_S)
    # The first sender lives on here, unlike in a worker, and its request can still arrive.
    assert receiver.spans()
    assert "about 20 were dropped" in caplog.text


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_a_collector_that_refuses_costs_no_error(
    status: int, receiver: TelemetryReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.status = status
    sender = traces.SpanSender()

    sender.add(spans(10))
    sender.flush(traces.FLUSH_S)
    sender.add(spans(10))
    sender.flush(traces.FLUSH_S)

    assert len(caplog.records) == 1
    assert not traces.PAUSE.is_over


def test_no_collector_at_the_address_costs_no_error(
    receiver: TelemetryReceiver, settings: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = f"http://127.0.0.1:{port}"
    sender = traces.SpanSender()

    sender.add(spans(10))
    sender.flush(traces.FLUSH_S)

    assert not traces.PAUSE.is_over


def test_a_system_without_a_free_thread_costs_no_error(
    receiver: TelemetryReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step has just written results that were paid for; it must not end as failed."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    sender = traces.SpanSender()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        sender.add(spans(traces.SEND_AT))
        sender.flush(traces.FLUSH_S)

    assert not sender._waiting
    assert not traces.PAUSE.is_over


def test_a_hanging_collector_bounds_the_memory(receiver: TelemetryReceiver) -> None:
    receiver.hangs = True
    sender = traces.SpanSender()

    for _ in range(20):
        sender.add(spans(traces.SEND_AT))

    assert len(sender._waiting) <= traces.KEPT
    sender.flush(0)
    assert not sender._waiting


def test_without_the_variables_nothing_is_imported() -> None:
    program = (
        "import sys, django; django.setup()\n"
        "import pipeline.workers.pool, pipeline.workers.run_step\n"
        "from medproc import telemetry\n"
        "telemetry.prepare(); telemetry.errors.report(KeyError()); telemetry.flush()\n"
        # The client of Redis imports the metrics of OpenTelemetry by itself, where it finds them.
        "ours = ('opentelemetry.sdk.trace', 'opentelemetry.exporter', 'sentry_sdk')\n"
        "print([name for name in sys.modules if name.startswith(ours)])"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT_ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "medproc.settings"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout == "[]\n"
