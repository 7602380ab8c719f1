"""The calls of the timeline as HTML: the bars, and the rows of the table.

Python builds the HTML instead of a template, because a record of 300 batches has 330 calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString

from observability.drilldown.timeline import CallBar, Timeline


@dataclass(frozen=True, kw_only=True)
class TimelineHtml:
    """The parts of the timeline that repeat for each call."""

    bars: SafeString
    rows: SafeString


def timeline_html(timeline: Timeline) -> TimelineHtml:
    """Return each call as a bar, and the listed calls as rows of the table."""
    return TimelineHtml(
        bars=SafeString(
            "\n".join(
                _bar(lane_title, call)
                for lane in timeline.lanes
                for lane_title in [escape(lane.title)]
                for call in lane.calls
            )
        ),
        rows=_rows(timeline.listed),
    )


# `format_html` needs ten times as long, because it looks at each number too. Every text is escaped
# here: the names, and the id.
def _bar(lane_title: str, call: CallBar) -> str:
    wait = ""
    if call.wait_width > 0:
        wait = (
            f'<rect class="b-wait" x="{call.wait_x}" y="{call.y}" width="{call.wait_width}"'
            ' height="5"/>'
        )
    return (
        f'{wait}<a href="?node={escape(call.node_id)}" tabindex="-1">'
        f'<rect class="b-{escape(call.kind)}" x="{call.x}" y="{call.y}" width="{call.width}"'
        f' height="5"><title>{lane_title}, {escape(call.title)}</title></rect></a>'
    )


def _rows(listed: Sequence[tuple[str, CallBar]]) -> SafeString:
    return SafeString(
        "\n".join(
            f'<tr><td>{escape(lane)}</td><td><a href="?node={escape(call.node_id)}">'
            f'{escape(call.title)}</a></td><td class="num">{escape(call.at)}</td></tr>'
            for lane, call in listed
        )
    )
