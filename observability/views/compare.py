"""Two attempts of one batch or chunk side by side; the replies need the right to read PHI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse

from medproc.reading import reading
from observability.drilldown.summary import thousands
from observability.phi.calls import reply_lines
from observability.phi.diff import COMPARED_LINES, DiffRow, difference
from observability.views.decorators import PhiResponse, page, phi
from observability.views.render import render_page
from pipeline.core.labels import duration, ranges
from pipeline.core.states import Step
from pipeline.models import ProviderCall
from pipeline.models.work_tables import WORK_TABLES

_ROWS: tuple[tuple[str, Any], ...] = (
    ("Outcome", lambda c: c.outcome + (", accepted" if c.accepted else "")),
    ("Message", lambda c: _or_dash(c.message)),
    ("HTTP", lambda c: _or_dash(c.http_status)),
    ("Finish reason", lambda c: _or_dash(c.finish_reason)),
    ("Split", lambda c: c.split or "whole"),
    ("Pages", lambda c: _pages(c)),
    ("Waited", lambda c: _ms(c.queue_wait_ms)),
    ("Took", lambda c: _ms(c.duration_ms)),
    ("Hint", lambda c: _ms(c.retry_after_ms)),
    ("Input tokens", lambda c: thousands(c.input_tokens)),
    ("Output tokens", lambda c: thousands(c.output_tokens)),
    ("Thinking tokens", lambda c: thousands(c.thinking_tokens)),
    ("Model", lambda c: f"{c.provider} {c.model}"),
    ("Model version", lambda c: _or_dash(c.model_version)),
    ("Prompt version", lambda c: _or_dash(c.prompt_version)),
    ("Schema version", lambda c: _or_dash(c.schema_version)),
    ("Response id", lambda c: _or_dash(c.response_id)),
    ("Quota", lambda c: _or_dash(c.quota_id)),
    ("Started", lambda c: f"{c.started_at:%Y-%m-%d %H:%M:%S} UTC"),
)


@dataclass(frozen=True, kw_only=True)
class Replies:
    """Two replies line by line; `missing` names the attempts without a stored reply."""

    lines: Sequence[DiffRow]
    missing: Sequence[str]
    is_cut: bool

    @property
    def changed(self) -> int:
        """The number of lines that differ."""
        return sum(line.kind == "changed" for line in self.lines)


@page()
def compare(request: HttpRequest, record_id: UUID) -> HttpResponse:
    """Show the facts of two calls (`?a=…&b=…`)."""
    return _shown(request, record_id)


@phi
def compare_replies(request: HttpRequest, record_id: UUID) -> PhiResponse:
    """Show the facts of two calls and the differences between their replies."""
    with reading():
        a, b, _ = _attempts(request, record_id)
        response = _shown(request, record_id, replies=_replies(a, b))
    return PhiResponse(
        response=response,
        target_kind="call",
        target_id=a.id,
        facts={"record": str(record_id), "compared_with": str(b.id)},
    )


def _shown(request: HttpRequest, record_id: UUID, replies: Replies | None = None) -> HttpResponse:
    a, b, attempts = _attempts(request, record_id)
    return render_page(
        request,
        "console/compare.html",
        f"Attempts {a.attempt} and {b.attempt}",
        record_id=record_id,
        a=a,
        b=b,
        attempts=attempts,
        sides=[("a", a), ("b", b)],
        work_id=a.work_item_id,
        work_noun=WORK_TABLES[Step(a.step)].noun,
        facts=[(name, left, right, left != right) for name, left, right in _facts(a, b)],
        replies=replies,
    )


def _attempts(
    request: HttpRequest, record_id: UUID
) -> tuple[ProviderCall, ProviderCall, list[ProviderCall]]:
    """Return both calls and all of their work item; without `a` and `b`, its last two."""
    calls = ProviderCall.objects.filter(processing_session__shell_file_id=record_id)
    of: UUID | None
    try:
        if "of" in request.GET:
            of = UUID(request.GET["of"])
            wanted: list[UUID] = []
        else:
            wanted = [UUID(request.GET[side]) for side in ("a", "b")]
            one = calls.get(id=wanted[0])
            of = one.work_item_id
    except (KeyError, ValueError, ProviderCall.DoesNotExist):
        raise Http404 from None
    if of is None:
        raise Http404
    # On a busy host two attempts can change places by `started_at`: the executor computes it from
    # the moment at which it hears of a call's end.
    attempts = list(calls.filter(work_item_id=of).order_by("attempt", "started_at"))
    by_id = {each.id: each for each in attempts}
    if len(attempts) < 2 or not by_id.keys() >= set(wanted):
        raise Http404
    a, b = (by_id[each] for each in wanted) if wanted else attempts[-2:]
    return a, b, attempts


def _facts(a: ProviderCall, b: ProviderCall) -> list[tuple[str, str, str]]:
    return [(name, of(a), of(b)) for name, of in _ROWS]


def _replies(a: ProviderCall, b: ProviderCall) -> Replies:
    left, right = reply_lines(a.id), reply_lines(b.id)
    kept = left is not None and right is not None
    return Replies(
        lines=difference(left, right) if left is not None and right is not None else (),
        missing=[
            f"attempt {call.attempt}" for call, lines in ((a, left), (b, right)) if lines is None
        ],
        is_cut=kept and max(len(left or ()), len(right or ())) > COMPARED_LINES,
    )


def _or_dash(value: Any) -> str:
    return "–" if value in (None, "") else str(value)


def _pages(call: ProviderCall) -> str:
    first, last = call.page_range_start, call.page_range_end
    return "–" if first is None or last is None else ranges(range(first, last + 1))


def _ms(value: int | None) -> str:
    return "–" if value is None else duration(value / 1000)
