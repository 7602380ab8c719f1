"""The calls of the timeline as HTML: the bars, and the rows of the table.

Python builds the HTML instead of a template, because a record of 300 batches has 330 calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from observability.drilldown.timeline import CallBar, Timeline

_WAIT = '<rect class="b-wait" x="{}" y="{}" width="{}" height="5"/>'
_BAR = (
    '{}<a href="?node={}" tabindex="-1">'
    '<rect class="b-{}" x="{}" y="{}" width="{}" height="5"><title>{}, {}</title></rect></a>'
)
_ROW = '<tr><td>{}</td><td><a href="?node={}">{}</a></td><td class="num">{}</td></tr>'


@dataclass(frozen=True, kw_only=True)
class TimelineHtml:
    """The parts of the timeline that repeat for each call."""

    bars: SafeString
    rows: SafeString


def timeline_html(timeline: Timeline) -> TimelineHtml:
    """Return each call as a bar, and the listed calls as rows of the table."""
    return TimelineHtml(
        bars=format_html_join(
            "\n",
            "{}",
            ((_bar(lane.title, call),) for lane in timeline.lanes for call in lane.calls),
        ),
        rows=_rows(timeline.listed),
    )


def _bar(lane: str, call: CallBar) -> SafeString:
    wait = format_html(_WAIT, call.wait_x, call.y, call.wait_width) if call.wait_width > 0 else ""
    return format_html(
        _BAR, wait, call.node_id, call.kind, call.x, call.y, call.width, lane, call.title
    )


def _rows(listed: Sequence[tuple[str, CallBar]]) -> SafeString:
    return format_html_join(
        "\n", _ROW, ((lane, call.node_id, call.title, call.at) for lane, call in listed)
    )
