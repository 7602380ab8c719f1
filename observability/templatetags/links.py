"""Links inside results and reviews as tags: to another part of a list, and to a source.

A page has a hundred of these links. A tag takes a third of the time of an included template.
"""

from __future__ import annotations

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag
def part_link(
    section: str, address: str, words: object, anchor: str = "", rel: str = "", name: str = "at"
) -> SafeString:
    """Return a link that shows another part of the element with the id `section`.

    `address` names a row of the part, as the parameter `name` of the query. The page scrolls to the
    id `anchor`. `rel` is `prev` or `next` for the part before or after.
    """
    return format_html(
        '<a href="?{}={}{}"{} hx-boost="true" hx-target="#{}" hx-select="#{}"'
        ' hx-swap="outerHTML show:none">{}</a>',
        name,
        address,
        f"#{anchor}" if anchor else "",
        format_html(' rel="{}"', rel) if rel else "",
        section,
        section,
        words,
    )


@register.simple_tag
def source_link(
    record_id: object, entity_id: object, words: object, item_id: object = ""
) -> SafeString:
    """Return a link that opens an entity in the panel of its page, or as a page without script.

    `item_id` names the list entry whose mentions the panel shows.
    """
    return format_html(
        '<a hx-boost="true" href="{}{}">{}</a>',
        reverse("admin:source", args=[record_id, entity_id]),
        f"?item={item_id}" if item_id else "",
        words,
    )
