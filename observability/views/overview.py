"""The overview: is the system healthy, and if not, what must an operator do?"""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse

from observability.diagnostics.overview import overview as read
from observability.metrics.charts import Chart, stacked
from observability.metrics.history import QUARTER_HOUR, QuarterHour
from observability.metrics.queue_depths import FAILED_WINDOW, Depth
from observability.metrics.sla_trends import TrendPeriod, trends
from observability.metrics.throughput import Rates
from observability.metrics.trend_charts import view_of
from observability.views.decorators import page
from observability.views.render import render_page
from pipeline.core.labels import PASS_TITLES, StatusWord, counted, duration

POLL_S = 5
TRENDS_POLL_S = 600
"""Seconds between two renewals of the trends, whose figures change once an hour."""
CAUSES_SHOWN = 6


@page()
def overview(request: HttpRequest) -> HttpResponse:
    """Show the overview; a visible page reloads every `POLL_S` seconds."""
    found = read()
    period = _period(request)
    # The poll of the other figures does not show the trends.
    shows_trends = request.headers.get("HX-Target") != "live"
    of_period = trends(period, found.taken_at) if shows_trends else None
    return render_page(
        request,
        "console/overview.html",
        "Overview",
        found=found,
        calls=_calls(found.rates),
        by_quarter_hour=calls_chart(found.fifteen_minute_history),
        times=latency_chart(found.fifteen_minute_history),
        passes=[
            (PASS_TITLES[step], {word.value: of.get(word, Depth()) for word in StatusWord})
            for step, of in found.queue.by_pass.items()
        ],
        totals={word.value: depth for word, depth in found.queue.totals.items()},
        causes=found.failures.groups[:CAUSES_SHOWN],
        failed_note=f"in {int(FAILED_WINDOW.total_seconds() // 3600)} h",
        poll_s=POLL_S,
        period=period,
        periods=list(TrendPeriod),
        trends=None if of_period is None else [view_of(each, period) for each in of_period],
        trends_until=of_period[0].until if of_period else None,
        trends_poll_s=TRENDS_POLL_S,
    )


def _period(request: HttpRequest) -> TrendPeriod:
    """Return the chosen period of the trends; any other text means 24 hours."""
    chosen = request.GET.get("sla", "")
    return TrendPeriod(chosen) if chosen in set(TrendPeriod) else TrendPeriod.DAY


def _calls(rates: Rates) -> Chart:
    peak = max(minute.calls for minute in rates.minutes)
    return stacked(
        [
            [
                ("ok", minute.calls - minute.failed - minute.limited),
                ("limited", minute.limited),
                ("failed", minute.failed),
            ]
            for minute in rates.minutes
        ],
        words=f"Calls in each minute of the last hour: {counted(rates.calls, 'call')},"
        f" at most {peak} a minute, {rates.last_whole_minute} in the last one.",
    )


def calls_chart(fifteen_minute_history: Sequence[QuarterHour]) -> Chart:
    """Return the calls of each fifteen minutes: answered, limited and failed."""
    every = sum(each.calls for each in fifteen_minute_history)
    limited, failed = (
        sum(getattr(q, kind) for q in fifteen_minute_history) for kind in ("limited", "failed")
    )
    peak = max(fifteen_minute_history, key=lambda each: each.calls)
    words = f"{counted(every, 'call')}, {limited} limited and {failed} failed"
    if every:
        words += f"; most at {_span(peak)}: {peak.calls}"
    return stacked(
        [
            [("ok", q.answered), ("limited", q.limited), ("failed", q.failed)]
            for q in fifteen_minute_history
        ],
        words=f"{words}.",
        titles=[
            f"{_span(q)}: {q.answered} answered, {q.limited} limited, {q.failed} failed"
            for q in fifteen_minute_history
        ],
    )


def latency_chart(fifteen_minute_history: Sequence[QuarterHour]) -> Chart:
    """Return the chart of the time to answer: p50 at the bottom, the rest up to p95 above."""
    known = [(q, q.p50_ms, q.p95_ms) for q in fifteen_minute_history if q.p50_ms and q.p95_ms]
    words = "No call was answered."
    if known:
        last, slowest = known[-1], max(known, key=lambda each: each[2])
        words = f"{_taken(*last)}; slowest {_taken(*slowest)}."
    by_start = {q.at: (q, p50, p95) for q, p50, p95 in known}
    return stacked(
        [
            [("p50", round(of[1])), ("p95", round(of[2] - of[1]))]
            if (of := by_start.get(q.at))
            else []
            for q in fifteen_minute_history
        ],
        words=words,
        titles=[_taken(*of) if (of := by_start.get(q.at)) else "" for q in fifteen_minute_history],
    )


def _span(quarter_hour: QuarterHour) -> str:
    return f"{quarter_hour.at:%H:%M}–{quarter_hour.at + QUARTER_HOUR:%H:%M}"


def _taken(quarter_hour: QuarterHour, p50_ms: float, p95_ms: float) -> str:
    p50, p95 = duration(p50_ms / 1000), duration(p95_ms / 1000)
    return f"{_span(quarter_hour)} p50 {p50}, p95 {p95}"
