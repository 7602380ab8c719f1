"""Template filters for figures, times and statuses, with the words of the command line.

A time is relative, with the absolute time in its title. A status is a word, a shape and a colour.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.db.models import Model
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from observability.diagnostics.failures import FailureGroup
from observability.drilldown import summary
from observability.drilldown.lookup import located_models
from observability.drilldown.nodes import Node, NodeKind
from observability.listing.pagination import place_of
from observability.metrics.workers import WorkerFleet, WorkerView
from observability.phi.pages import PageView
from observability.phi.source import SourceView
from pipeline.clinical.page_text.marks import HighlightRun
from pipeline.core import labels
from pipeline.core.labels import SHAPES, WORDS, StatusWord, duration
from pipeline.core.states import Step
from pipeline.models import Incident, IncidentJob, Job, Pause, ProviderCall, Session
from pipeline.models.work_tables import WORK_TABLES

register = template.Library()


@register.filter
def chip(status: str) -> SafeString:
    """Return a status as a word and a shape; the class adds the colour."""
    word = StatusWord(WORDS.get(status, status))
    return format_html(
        '<span class="chip is-{}"><span aria-hidden="true">{}</span> {}</span>',
        word,
        SHAPES[word],
        word,
    )


@register.filter
def mark(status: str) -> str:
    """Return the single character of a status."""
    return SHAPES[StatusWord(WORDS.get(status, status))]


@register.filter
def shape(status: str) -> SafeString:
    """Return a status as a shape, with the word for a screen reader."""
    word = StatusWord(WORDS.get(status, status))
    return format_html(
        '<span class="shape is-{}" role="img" aria-label="{}">{}</span>', word, word, SHAPES[word]
    )


@register.filter
def ago(at: datetime | None) -> SafeString | str:
    """Return a time as `5 min ago` or `in 12 s`."""
    if at is None:
        return "–"
    seconds = (timezone.now() - at).total_seconds()
    said = f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"
    return _time(at, said)


@register.filter
def age(at: datetime | None) -> SafeString | str:
    """Return the time since then as `5 min`."""
    if at is None:
        return "–"
    return _time(at, duration((timezone.now() - at).total_seconds()))


@register.filter
def until(at: datetime | None) -> SafeString | str:
    """Return the time until then as `5 min`; `0 s` for a time that has passed."""
    if at is None:
        return "–"
    return _time(at, duration(max(0.0, (at - timezone.now()).total_seconds())))


@register.filter
def clock(at: datetime | None) -> SafeString | str:
    """Return the time of day, with the date if it is not today."""
    if at is None:
        return "–"
    is_today = at.astimezone(UTC).date() == timezone.now().date()
    return _time(at, f"{at:%H:%M:%S}" if is_today else f"{at:%Y-%m-%d %H:%M:%S}")


def _time(at: datetime, text: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        at.isoformat(timespec="seconds"),
        f"{at:%Y-%m-%d %H:%M:%S}",
        text,
    )


@register.filter
def seconds(number: float | None) -> str:
    """Return a number of seconds as `12 s` or `4 min`."""
    return "–" if number is None else duration(number)


@register.filter
def milliseconds(number: float | None) -> str:
    """Return a number of milliseconds as `12 s` or `4 min`."""
    return "–" if number is None else duration(number / 1000)


@register.filter
def percent(share: float | None) -> str:
    """Return a share (0–1) in per cent; never 100 % for an incomplete share."""
    if share is None:
        return "–"
    shown = min(99.9, round(100 * share, 1)) if share < 1 else 100 * share
    return f"{shown:.0f} %" if shown == int(shown) else f"{shown:.1f} %"


@register.filter
def big(number: int) -> str:
    """Return `840`, `7.6k`, `3.1M`."""
    return summary.thousands(int(number))


@register.filter
def money(amount: Any) -> str:
    """Return an amount in US dollars."""
    return summary.dollars(float(amount))


@register.filter
def counted(number: int, noun: str) -> str:
    """Return `1 job`, `12 batches`."""
    return labels.counted(number, noun)


@register.filter
def pass_title(step: str) -> str:
    """Return `Pass 0.5` for `pass05`."""
    return labels.PASS_TITLES[Step(step)]


@register.simple_tag
def list_query(within: str, row: Model, column: str) -> str:
    """Return the query that names the list of a record page and the row's place in the list."""
    return urlencode({"in": within, "at": place_of(row, column)})


@register.filter
def retry_query(query: dict[str, str]) -> str:
    """Return the filter of a group of failures as the query of a retry."""
    names = {"cause": "error_code"}
    return urlencode({names.get(name, name): of for name, of in query.items() if name != "source"})


@register.filter
def query_string(query: dict[str, str]) -> str:
    """Return a filter as the query of an address."""
    return urlencode(query)


@register.filter
def group_query(group: FailureGroup) -> str:
    """Return the query of the failures that a group of the overview counts."""
    return urlencode(
        {"source": group.source, "window": "24h", "cause": group.cause, "step": group.step}
    )


@register.filter
def attempt_title(call: ProviderCall) -> str:
    """Return `2`, or `2 split 1a` for a call about a split of its batch."""
    return f"{call.attempt} split {call.split}" if call.split else str(call.attempt)


@register.filter
def call_title(call: ProviderCall, item: str) -> str:
    """Return `call 2 of encounter 3, batch 1, split 1a`; `item` names the work item."""
    work = f" of {item}" if item else ""
    split = f", split {call.split}" if call.split else ""
    return f"call {call.attempt}{work}{split}"


@register.filter
def page_span(span: tuple[int | None, int | None]) -> str:
    """Return `page 3`, or `pages 3–5`."""
    first, last = span
    return f"page {first}" if first == last else f"pages {first}–{last}"


@register.filter
def call_pages(call: ProviderCall) -> str:
    """Return the page range of a call."""
    return page_span((call.page_range_start, call.page_range_end))


@register.filter
def worker_status(worker: WorkerView) -> StatusWord:
    """Return the status whose shape a worker shows."""
    if not worker.is_alive:
        return StatusWord.FAILED
    return StatusWord.RUNNING if worker.state == "busy" else StatusWord.WAITING


@register.filter
def workers_known(fleet: WorkerFleet) -> str:
    """Return the number of known workers and of live workers."""
    known = f"{fleet.alive} of {fleet.number} alive"
    if fleet.is_redis_away:
        known = f"{fleet.number} hold a job; of the others nothing is known"
    return f"{known}; the first {fleet.number} of more are shown" if fleet.is_capped else known


@register.filter
def marked_text(view: PageView) -> SafeString:
    """Return the text of a page, with a link from each mark to its entity.

    The text is inside a `<pre>`, where the line breaks of a template would be visible.
    """
    return format_html_join("", "{}", ((_marked(run, view.review),) for run in view.runs))


@register.filter
def quoted_text(source: SourceView) -> SafeString:
    """Return the text of a page with the marked quote of one entity, for a `<pre>`."""
    return format_html_join("", "{}", ((_quoted(run),) for run in source.runs))


def _quoted(run: HighlightRun) -> SafeString | str:
    if not run.numbers:
        return run.text
    name = format_html(' id="m{}"', run.first_of[0]) if run.first_of else ""
    return format_html("<mark{}>{}</mark>", name, run.text)


def _marked(run: HighlightRun, review: Collection[int]) -> SafeString | str:
    if not run.numbers:
        return run.text
    first, *others = run.first_of or (None,)
    return format_html(
        '<a class="r-mark{}" data-e="{}" href="#e{}"{}>{}{}</a>',
        " is-review" if any(number in review for number in run.numbers) else "",
        " ".join(map(str, run.numbers)),
        run.numbers[0],
        format_html(' id="m{}"', first) if first is not None else "",
        format_html_join("", '<span id="m{}"></span>', ((number,) for number in others)),
        run.text,
    )


@register.filter
def about(amount: Any) -> str:
    """Return `≈ $0.021`, or `less than $0.001`."""
    said = summary.dollars(float(amount))
    return f"≈ {said}" if said.startswith("$") else said


@register.filter
def about_minutes(minutes: float) -> str:
    """Return `≈ 4.2 min`, or `less than 0.1 min`."""
    return f"≈ {minutes:.1f} min" if minutes >= 0.05 else "less than 0.1 min" if minutes else "none"


@register.filter
def console_url(row: Model) -> str:
    """Return the URL of a row's page in the console, or an empty string."""
    if isinstance(row, Incident):
        return reverse("admin:incident", args=[row.pk])
    if isinstance(row, Pause):
        return reverse("admin:queues")
    if isinstance(row, IncidentJob):
        return reverse("admin:incident", args=[row.incident_id])
    record = getattr(row, "shell_file_id", None)
    if record and (isinstance(row, Job | Session) or type(row) not in located_models()):
        return reverse("admin:record", args=[record])
    return (
        reverse("admin:search", query={"q": str(row.pk)}) if type(row) in located_models() else ""
    )


_TABLES: dict[str, str] = {
    NodeKind.RECORD: "shellfile",
    NodeKind.ENCOUNTER: "encounter",
    NodeKind.CALL: "providercall",
}


@register.filter
def table_url(node: Node) -> str:
    """Return the URL of a node's row in the tables; empty for a pass."""
    name = _TABLES.get(node.kind) or next(
        (t.model._meta.model_name for t in WORK_TABLES.values() if t.noun == node.kind), None
    )
    return reverse(f"admin:pipeline_{name}_change", args=[node.id]) if name else ""


@register.filter
def work_item(call: ProviderCall) -> str:
    """Return the name of a failed call's work item; `failed_calls` has read its index."""
    index, encounter_index = (
        getattr(call, "item_index", None),
        getattr(call, "encounter_index", None),
    )
    if index is None:
        return "call"
    return labels.work_item(WORK_TABLES[Step(call.step)].noun, index, encounter_index)


@register.filter
def short(identifier: object) -> str:
    """Return the first eight digits of an id; `explain` and the search accept them."""
    return str(identifier)[:8]
