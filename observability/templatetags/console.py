"""How figures, times and statuses read on a page: the same words as on the command line.

Imports the pipeline's words. A time is relative, with the absolute one in its title; a status is a
word, a shape and a colour.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.db.models import Model
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from observability.drilldown import summary
from observability.drilldown.lookup import located_models
from observability.drilldown.nodes import Node, NodeKind
from observability.listing.pagination import place_of
from pipeline.core import labels
from pipeline.core.labels import SHAPES, WORDS, StatusWord, duration
from pipeline.core.states import Step
from pipeline.models import Incident, IncidentJob, Job, Pause, ProviderCall, Session
from pipeline.models.work_tables import WORK_TABLES

register = template.Library()


@register.filter
def chip(status: str) -> SafeString:
    """Return a status as word and shape; the class gives the colour."""
    word = StatusWord(WORDS.get(status, status))
    return format_html(
        '<span class="chip is-{}"><span aria-hidden="true">{}</span> {}</span>',
        word,
        SHAPES[word],
        word,
    )


@register.filter
def shape(status: str) -> SafeString:
    """Return a status as its shape alone, with the word for who does not see it."""
    word = StatusWord(WORDS.get(status, status))
    return format_html(
        '<span class="shape is-{}" role="img" aria-label="{}">{}</span>', word, word, SHAPES[word]
    )


@register.filter
def ago(at: datetime | None) -> SafeString | str:
    """Return how long ago, or in how long."""
    if at is None:
        return "–"
    seconds = (timezone.now() - at).total_seconds()
    said = f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"
    return _time(at, said)


@register.filter
def age(at: datetime | None) -> SafeString | str:
    """Return how long something has lasted since then."""
    if at is None:
        return "–"
    return _time(at, duration((timezone.now() - at).total_seconds()))


@register.filter
def clock(at: datetime | None) -> SafeString | str:
    """Return the time of day, with the date where it is not today's."""
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
    """Return seconds as people say them."""
    return "–" if number is None else duration(number)


@register.filter
def milliseconds(number: float | None) -> str:
    """Return milliseconds as people say them."""
    return "–" if number is None else duration(number / 1000)


@register.filter
def percent(share: float | None) -> str:
    """Return a share of one in per cent; never 100 % where something is missing."""
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
    """Return dollars."""
    return summary.dollars(float(amount))


@register.filter
def counted(number: int, noun: str) -> str:
    """Return `1 job`, `12 batches`."""
    return labels.counted(number, noun)


@register.filter
def pass_title(step: str) -> str:
    """Return `Pass 0.5` for `pass05`."""
    return labels.PASS_TITLES[Step(step)]


@register.filter
def place(row: Model, column: str) -> str:
    """Return the place of a row in its list, which `?at=` of its page carries."""
    return place_of(row, column)


@register.filter
def retry_query(query: dict[str, str]) -> str:
    """Return the filter of a group of failures as the retry of it."""
    names = {"cause": "error_code"}
    return urlencode({names.get(name, name): of for name, of in query.items() if name != "source"})


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
    """Return the console's page of a row of the tables; nothing where it has none."""
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
    """Return the row of the tables that a node of the tree stands for; nothing for a pass."""
    name = _TABLES.get(node.kind) or next(
        (t.model._meta.model_name for t in WORK_TABLES.values() if t.noun == node.kind), None
    )
    return reverse(f"admin:pipeline_{name}_change", args=[node.id]) if name else ""


@register.filter
def work_item(call: ProviderCall) -> str:
    """Return what a failed call of a list asks about; `failed_calls` has read its index."""
    index, encounter_index = (
        getattr(call, "item_index", None),
        getattr(call, "encounter_index", None),
    )
    if index is None:
        return "call"
    return labels.work_item(WORK_TABLES[Step(call.step)].noun, index, encounter_index)


@register.filter
def short(identifier: object) -> str:
    """Return the beginning of an id, which `explain` and the search take as well."""
    return str(identifier)[:8]
