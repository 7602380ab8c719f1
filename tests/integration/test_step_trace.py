"""A record that an operator runs again stays one trace, with a span for each run."""

from __future__ import annotations

from typing import Any

import pytest

from medproc.telemetry import traces
from pipeline.operations import operator_actions
from tests.support import records
from tests.support.telemetry_receiver import receiving_telemetry
from tests.support.workers import PATIENCE_S

pytestmark = pytest.mark.usefixtures("cloned_db", "redis_db")


def test_a_retried_record_has_a_span_for_each_run_below_one_root(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "FLUSH_S", PATIENCE_S)
    with receiving_telemetry() as receiver:
        settings.OTEL_EXPORTER_OTLP_ENDPOINT = receiver.url
        record = records.failed_record(records.VISITS, records.ONE_BROKEN_BATCH)
        operator_actions.record_retry(record.id, reason="the provider is repaired")
        records.run_again(record.id)
        traces.flush()
        spans = receiver.spans()

    assert {span.trace for span in spans} == {record.id}
    (root,) = (span for span in spans if not span.parent)
    (again,) = (span for span in spans if span.name == "another run")
    assert (root.name, root.attributes["medproc.outcome"]) == ("record", "MAX_RETRIES_EXCEEDED")
    assert root.has_failed
    assert again.parent == root.id
    assert again.attributes["medproc.outcome"] == "completed"
    assert root.ended_ns <= again.began_ns < again.ended_ns
    runs = [span for span in spans if span.name == "pass1"]
    assert [span.parent for span in runs] == [root.id] * 2
    assert len({span.id for span in spans}) == len(spans)
