"""The spans of this process on their way to the collector: bounded in memory and in time.

A step never waits for the collector while it runs: a short-lived thread sends what is there. At the
end of a step, `flush` waits for that thread, at most FLUSH_S. A collector that does not answer is
left alone for PAUSE_S by this process and its forks. Spans that cannot be sent are dropped.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings

from medproc.telemetry.collector_pause import CollectorPause
from medproc.telemetry.spans import TraceSpan, is_sampled
from medproc.timing import scaled

if TYPE_CHECKING:
    from medproc.telemetry.otlp import Collector

logger = logging.getLogger(__name__)

KEPT = 4096
"""Spans that wait in one process at most."""
SEND_AT = 512
"""Waiting spans at which they are sent before the step ends."""
SEND_EVERY_S = 5.0
"""Seconds after which spans are sent before the step ends, so that a crash loses few of them."""
FLUSH_S = 1.0
"""Seconds that the end of a step waits for the collector."""
PAUSE_S = 30.0
"""Seconds for which a collector that has not answered gets no request."""

PAUSE = CollectorPause()
"""Shared with the forks of this process."""


def is_on() -> bool:
    """Return whether spans are wanted."""
    return bool(settings.OTEL_EXPORTER_OTLP_ENDPOINT)


def prepare() -> None:
    """Import what is needed, so that each fork inherits it. Starts no thread."""
    if is_on():
        from medproc.telemetry import otlp  # noqa: F401 - imported for the forks


def send(spans: Iterable[TraceSpan]) -> None:
    """Send spans soon, or drop them; never waits."""
    _sender().add(spans)


def flush() -> None:
    """Wait until the waiting spans are sent, at most FLUSH_S."""
    if is_on():
        _sender().flush(FLUSH_S)


class SpanSender:
    """Sends spans in a thread that lives as long as spans wait."""

    def __init__(self) -> None:
        self._waiting: deque[TraceSpan] = deque()
        self._thread: threading.Thread | None = None
        self._sent_at = time.monotonic()
        self._collector: Collector | None = None

    def add(self, spans: Iterable[TraceSpan]) -> None:
        """Take spans. Start to send if SEND_AT spans wait, or SEND_EVERY_S after the last start."""
        for span in spans:
            if not is_sampled(span.record_id, settings.OTEL_TRACES_SAMPLER_ARG):
                continue
            if len(self._waiting) >= KEPT or not PAUSE.is_over:
                PAUSE.drop(1)
            else:
                self._waiting.append(span)
        is_due = time.monotonic() - self._sent_at >= scaled(SEND_EVERY_S)
        if is_due or len(self._waiting) >= SEND_AT:
            self._start()

    def flush(self, seconds: float) -> None:
        """Send the waiting spans, for at most `seconds`; drop the rest."""
        ends_at = time.monotonic() + seconds
        while (self._waiting or self._is_sending()) and PAUSE.is_over:
            self._start()
            if self._thread is not None:
                self._thread.join(max(0.0, ends_at - time.monotonic()))
            if time.monotonic() >= ends_at:
                self._give_up(len(self._waiting))
                self._waiting.clear()
                return
        if self._waiting:
            PAUSE.drop(len(self._waiting))
            self._waiting.clear()
        if not self._is_sending():
            self._close()

    def _is_sending(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _start(self) -> None:
        if not self._is_sending() and self._waiting and PAUSE.is_over:
            self._sent_at = time.monotonic()
            thread = threading.Thread(target=self._send, name="spans", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                # The system has no thread left. The caller has just written paid results, and an
                # error here would end its step.
                self._give_up(len(self._waiting))
                self._waiting.clear()
            else:
                self._thread = thread

    def _send(self) -> None:
        """Send what waits. Runs in a thread of its own; touches no row."""
        batch = [self._waiting.popleft() for _ in range(min(SEND_AT, len(self._waiting)))]
        try:
            if self._collector is None:
                from medproc.telemetry.otlp import Collector

                self._collector = Collector()
            is_taken = self._collector.send(batch)
        except Exception:  # noqa: BLE001 - whatever it is, no step may end because of it
            is_taken = False
        if not is_taken:
            self._close()
            self._give_up(len(batch))
        elif dropped := PAUSE.end():
            logger.warning(
                "traces: the collector takes spans again; about %d were dropped",
                dropped,
                extra={"action": "spans_dropped"},
            )

    def _close(self) -> None:
        """Close the connection; the next spans open another."""
        if self._collector is not None:
            self._collector.close()
            self._collector = None

    def _give_up(self, spans: int) -> None:
        if PAUSE.is_first_failure:
            logger.warning(
                "traces: the collector did not take the spans; they are dropped until it does",
                extra={"action": "collector_away"},
            )
        PAUSE.drop(spans)
        PAUSE.begin(scaled(PAUSE_S))


def _sender() -> SpanSender:
    """Return the sender of this process, never the sender of the process that forked it."""
    return _sender_of(os.getpid())


@cache
def _sender_of(pid: int) -> SpanSender:
    return SpanSender()
