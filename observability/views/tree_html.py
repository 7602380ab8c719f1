"""The tree of a record as nested lists.

The tree has the same outline as `explain`. Python builds the HTML instead of a template, because an
unfolded record of 300 batches has a thousand rows.
"""

from __future__ import annotations

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from observability.drilldown.nodes import Node
from observability.drilldown.text import TreeRow, code, details
from pipeline.core.labels import SHAPES

_HERE = mark_safe(' id="here" aria-current="true"')


def tree_html(line: TreeRow, focus: str) -> SafeString:
    """Return the rows below and including `line`."""
    return format_html('<ul class="c-tree">{}</ul>', _item(line, focus))


def _item(line: TreeRow, focus: str) -> SafeString:
    below = format_html_join("", "{}", ((_item(each, focus),) for each in line.below))
    nested = format_html("<ul>{}</ul>", below) if line.below else ""
    return format_html("<li>{}{}</li>", _row(line, focus), nested)


def _row(line: TreeRow, focus: str) -> SafeString:
    if line.node is None:
        return format_html('<p class="c-remark">{}</p>', _remark(line))
    node = line.node
    here = _HERE if node.id == focus else ""
    return format_html(
        '<div class="c-row" data-row>{} <a href="?node={}"{}>{}</a> {}<small>{}</small></div>',
        _shape(node),
        node.id,
        here,
        node.title,
        format_html('<b class="t-{}">{}</b> ', node.status, why) if (why := code(node)) else "",
        " · ".join(details(node)),
    )


def _remark(line: TreeRow) -> SafeString | str:
    text = line.text.plain
    if not line.folded:
        return text
    first = line.folded[0]
    # The words begin with the bare shape; replace the shape by a coloured, named one.
    return format_html("{} {}", _shape(first), text.removeprefix(SHAPES[first.status]).strip())


def _shape(node: Node) -> SafeString:
    return format_html(
        '<span class="shape is-{}" role="img" aria-label="{}">{}</span>',
        node.status,
        node.status,
        SHAPES[node.status],
    )
