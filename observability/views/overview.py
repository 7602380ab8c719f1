"""The overview: is it healthy, and if not, what do I do?"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from observability.charts import Chart, stacked
from observability.overview import overview as read
from observability.queue import FAILED_WINDOW, Depth
from observability.rates import Rates
from observability.views.guard import page
from observability.views.shown import shown
from pipeline.words import PASS_TITLES, Word, counted

POLL_S = 5
CAUSES_SHOWN = 6


@page()
def overview(request: HttpRequest) -> HttpResponse:
    """Show the overview; the page asks for itself again every `POLL_S` while it is looked at."""
    found = read()
    return shown(
        request,
        "console/overview.html",
        "Overview",
        found=found,
        calls=_calls(found.rates),
        passes=[
            (PASS_TITLES[step], {word.value: of.get(word, Depth()) for word in Word})
            for step, of in found.queue.by_pass.items()
        ],
        totals={word.value: depth for word, depth in found.queue.totals.items()},
        causes=found.failures.groups[:CAUSES_SHOWN],
        failed_hours=int(FAILED_WINDOW.total_seconds() // 3600),
        poll_s=POLL_S,
    )


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
