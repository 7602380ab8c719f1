"""Repeated parts of a page as tags: a card, a term of a definition list, and a table head.

The tags wrap the given content. They read no data and format no figure.
"""

from __future__ import annotations

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

_NUMERIC = "#"
"""The prefix of a column whose cells are right-aligned figures."""


@register.simple_block_tag
def card(content: str, title: str, note: object = "", key: str = "") -> SafeString:
    """Wrap content in a titled card; `key` names the card for a screen reader."""
    name = format_html(' id="{}-title"', key) if key else ""
    label = format_html(' aria-labelledby="{}-title"', key) if key else ""
    return format_html(
        '<section class="c-card"{}><h2{}>{}{}</h2>\n{}</section>',
        label,
        name,
        title,
        format_html(" <small>{}</small>", note) if note != "" else "",
        _stripped(content),
    )


@register.simple_block_tag
def term(content: str, name: str) -> SafeString:
    """Wrap content as the value of a term in a definition list."""
    return format_html("<div><dt>{}</dt><dd>{}</dd></div>", name, _stripped(content))


@register.simple_tag
def table_head(columns: str) -> SafeString:
    """Return the head of a table; `Record|#Pages` has a column of text and a column of figures."""
    cells = (
        (mark_safe(' class="num"') if name.startswith(_NUMERIC) else "", name.lstrip(_NUMERIC))
        for name in columns.split("|")
    )
    return format_html(
        "<thead><tr>{}</tr></thead>", format_html_join("", '<th scope="col"{}>{}</th>', cells)
    )


def _stripped(content: str) -> SafeString:
    # The template engine has already escaped the content, but `strip` returns a plain string.
    return mark_safe(content.strip())  # noqa: S308
