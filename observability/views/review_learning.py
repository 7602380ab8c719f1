"""What reviews teach: the precision of each rule and prompt, and how far two reviewers agree."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from observability.metrics.precision_charts import precision_chart
from observability.permissions import Right
from observability.views.decorators import page
from observability.views.render import render_page
from pipeline.operations.review.agreement import agreement
from pipeline.operations.review.learning import PrecisionChange, precision_trends

WEEKS = {"4": 4, "12": 12, "52": 52}
"""The lengths of time that the page offers, in weeks."""
SHOWN = 200
"""Rows of the table; what got worse comes first, then the most wrong entities."""
COLUMNS = (
    "Category|Found by|Rule|Prompt|#Precision|By week|Change|#Accepted|#Corrected|#Rejected|#Added"
)
SHAPES = {
    PrecisionChange.WORSE: ("▼", "failed"),
    PrecisionChange.BETTER: ("▲", "done"),
    PrecisionChange.SAME: ("=", "running"),
    PrecisionChange.UNKNOWN: ("·", "cancelled"),
}
"""The shape and the tone of each change."""


@page(Right.REVIEW)
def learning(request: HttpRequest) -> HttpResponse:
    """Show precision by category, engine, rule and prompt, with its trend, and the agreement."""
    weeks = WEEKS.get(request.GET.get("weeks", ""), 12)
    today = timezone.now().date()
    last = today - timedelta(days=today.weekday())
    first = last - timedelta(weeks=weeks - 1)
    since = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0) - (today - first)
    trends = precision_trends(since)
    return render_page(
        request,
        "console/review_learning.html",
        "What reviews teach",
        rows=[
            (
                trend,
                trend.weeks[0],
                precision_chart(trend.weeks, first, last),
                *SHAPES[trend.change],
            )
            for trend in trends[:SHOWN]
        ],
        columns=COLUMNS,
        left_out=max(0, len(trends) - SHOWN),
        worse=sum(trend.change is PrecisionChange.WORSE for trend in trends),
        compared=sum(trend.change is not PrecisionChange.UNKNOWN for trend in trends),
        agreements=agreement(since),
        weeks=str(weeks),
        choices=[(key, f"{number} weeks") for key, number in WEEKS.items()],
    )
