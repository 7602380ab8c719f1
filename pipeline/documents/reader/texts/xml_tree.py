"""XML as a tree of elements with short names. Entities, deep nesting and huge trees are refused.

Expat of the standard library is enough: a refused document type leaves no entity to expand, and
nothing is loaded from elsewhere. lxml and defusedxml were not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from .. import refusals

DEEPEST = 256
REQUIRES = "Requires"
"""The attribute of `mc:Choice` that names namespaces by their prefixes."""
MOST_ELEMENTS = 1_500_000


def parse(raw: bytes, namespaces: Mapping[str, str], kind: str) -> Element:
    """Return the root element. `kind` names the format in a refusal.

    `namespaces` gives a short prefix for each namespace: `w.p` for `w:p`, since a colon has another
    meaning in `Element.find`. Names of other namespaces begin with `?.`. `Requires` holds
    namespaces in place of prefixes. Raises InputRefused.
    """
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    names: dict[str, str] = {}
    spaces: dict[str | None, str] = {}
    depth = count = 0

    def name(full: str) -> str:
        if full not in names:
            space, _, local = full.rpartition(" ")
            names[full] = f"{namespaces.get(space, '?')}.{local}" if space else local
        return names[full]

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > DEEPEST:
            raise refusals.too_deep(kind)
        if count > MOST_ELEMENTS:
            raise refusals.too_much_markup(kind, MOST_ELEMENTS)
        if REQUIRES in attributes:
            prefixes = attributes[REQUIRES].split()
            attributes[REQUIRES] = " ".join(spaces.get(each, each) for each in prefixes)
        builder.start(name(tag), {name(key): value for key, value in attributes.items()})

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name(tag))

    def doctype(*_: object) -> None:
        raise refusals.defines_entities()

    parser.StartElementHandler = start
    parser.StartNamespaceDeclHandler = spaces.__setitem__
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(raw, True)
        return builder.close()
    except (expat.ExpatError, LookupError, ValueError, AssertionError):
        raise refusals.broken_document(kind) from None
