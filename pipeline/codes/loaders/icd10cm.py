"""ICD-10-CM from the tabular XML and the list of codes inside the package simple-icd-10-cm.

The XML is read as a stream. The package's own rule for the seventh character applies: a leaf below
a `sevenChrDef` gets one code per extension, if the list of codes holds the extended code.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.codes.loaders import packages
from pipeline.codes.loaders.files import sha256_of
from pipeline.codes.loaders.refusals import CodesError, CodesErrorCode
from pipeline.codes.loaders.rows import CodeRow, Row, TermRow
from pipeline.models.codes import SystemKey

DISTRIBUTION = "simple-icd-10-cm"
_NODES = frozenset({"chapter", "section", "diag"})
_TERMS = {"inclusionTerm": "inclusion", "includes": "includes"}
_EXCLUDES = ("excludes1", "excludes2")
_CODE = r"[A-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4})?"
_CITED = re.compile(rf"({_CODE})(?:\.?-({_CODE})?)?")
_PARENTHESIS = re.compile(r"\(([^()]*)\)")


@dataclass(slots=True)
class _Node:
    """A chapter, a section or a diagnosis whose data are being read."""

    tag: str
    code: str
    parent: _Node | None
    is_leaf: bool = True
    display: str = ""
    terms: list[tuple[str, str]] = field(default_factory=list)
    properties: dict[str, list[str]] = field(default_factory=dict)
    extensions: dict[str, str] | None = None
    """The nearest `sevenChrDef`: its own, or its nearest ancestor's."""


@dataclass(frozen=True)
class Icd10Cm:
    """The reader of ICD-10-CM."""

    key = SystemKey.ICD10CM
    licence = "public domain (CDC/NCHS); package: MIT"
    revision = 1
    has_second_displays = False

    @property
    def name(self) -> str:
        """The package with its version."""
        return packages.name_with_version(DISTRIBUTION)

    @cached_property
    def _folder(self) -> Path:
        return packages.data_folder(
            "simple_icd_10_cm", "pip install --require-hashes -r requirements.lock"
        )

    @property
    def _xml(self) -> Path:
        return packages.only_file(self._folder, "icd10c*-tabular-*.xml")

    @property
    def _list(self) -> Path:
        return packages.only_file(self._folder, "code-list-*.txt")

    def version(self) -> str:
        """Return the release, for example `April 1 2026`."""
        return self._xml.stem.split("-tabular-")[1].replace("-", " ")

    def digest(self) -> str:
        """Return the SHA-256 of both files."""
        return sha256_of(self._xml, self._list)

    def rows(self) -> Iterator[Row]:
        """Yield codes with their terms, each parent before its children."""
        listed = frozenset(self._list.read_text("utf-8").split())
        reader = _IcdReader(listed)
        try:
            # The lock file pins the hash of the package that the file is part of.
            parsed = ET.iterparse(self._xml, events=("start", "end"))  # noqa: S314 - a pinned file
            for event, element in parsed:
                yield from reader.feed(event, element)
        except ET.ParseError as error:
            raise CodesError(
                f"{self._xml.name} is not complete XML: {error}", code=CodesErrorCode.CODES_ROW
            ) from None


class _IcdReader:
    """Turns the events of the XML into rows; holds only the path to the present element."""

    def __init__(self, listed: frozenset[str]) -> None:
        self._listed = listed
        self._node: _Node | None = None

    def feed(self, event: str, element: ET.Element) -> Iterator[Row]:
        if event == "start":
            if element.tag in _NODES:
                yield from self._open(element)
            return
        node = self._node
        if node is None:
            return
        if element.tag in _NODES:
            yield from self._close(node)
            element.clear()
            self._node = node.parent
        else:
            _read(node, element)

    def _open(self, element: ET.Element) -> Iterator[Row]:
        parent = self._node
        if parent is not None and parent.is_leaf:
            # All data of a node precede its first child.
            parent.is_leaf = False
            yield from _rows_of(parent, billable=False)
        self._node = _Node(
            tag=element.tag,
            code=element.get("id", ""),
            parent=parent,
            extensions=parent.extensions if parent else None,
        )

    def _close(self, node: _Node) -> Iterator[Row]:
        if not node.is_leaf:
            return
        extended = list(self._extended(node)) if node.tag == "diag" else []
        yield from _rows_of(node, billable=node.tag == "diag" and not extended)
        yield from extended

    def _extended(self, node: _Node) -> Iterator[Row]:
        stem = f"{node.code}." if len(node.code) == 3 else node.code
        stem = stem.ljust(7, "X")
        for character, meaning in (node.extensions or {}).items():
            code = stem + character
            if code.replace(".", "") in self._listed:
                yield CodeRow(
                    code=code,
                    display=f"{node.display}, {meaning}",
                    parent=_identity(node),
                    billable=True,
                    kind="extended subcategory",
                )


def _read(node: _Node, element: ET.Element) -> None:
    match element.tag:
        case "name":
            # A chapter's name is its number.
            node.code = _text(element)
        case "desc":
            node.display = _text(element)
        case "sevenChrDef":
            node.extensions = _extensions(element)
        case tag if tag in _TERMS:
            node.terms += [(_text(note), _TERMS[tag]) for note in element if _text(note)]
        case tag if tag in _EXCLUDES:
            notes = [_text(note) for note in element if _text(note)]
            node.properties.setdefault(tag, []).extend(notes)
            codes = [code for note in notes for code in cited(note)]
            node.properties.setdefault(f"{tag}_codes", []).extend(codes)


def _extensions(element: ET.Element) -> dict[str, str]:
    found: dict[str, str] = {}
    last = None
    for child in element:
        if child.tag == "extension":
            last = child.attrib["char"]
            found[last] = _text(child)
        elif child.tag == "note" and last is not None:
            found[last] = " ".join(f"{found[last]}/{child.text or ''}".split())
    return found


def _rows_of(node: _Node, *, billable: bool) -> Iterator[Row]:
    if not node.code or not node.display:
        raise CodesError(
            f"A {node.tag} below {node.parent.code if node.parent else 'the root'} has no code or"
            " no title.",
            code=CodesErrorCode.CODES_ROW,
        )
    code = _identity(node)
    properties: dict[str, Any] = {name: each for name, each in node.properties.items() if each}
    yield CodeRow(
        code=code,
        display=node.display,
        parent=_identity(node.parent) if node.parent else None,
        billable=billable,
        kind=_kind(node),
        properties=properties,
    )
    for text, kind in node.terms:
        yield TermRow(code=code, text=text, kind=kind)


def _identity(node: _Node) -> str:
    """Return the code; a section of one category has the notation `B99-B99`.

    The XML gives this section the code of its category.
    """
    if node.tag == "section" and "-" not in node.code:
        return f"{node.code}-{node.code}"
    return node.code


def _kind(node: _Node) -> str:
    if node.tag != "diag":
        return node.tag
    return "category" if len(node.code) == 3 else "subcategory"


def cited(note: str) -> list[str]:
    """Return the codes that an Excludes note names, as prefixes (`B60.1`) or ranges (`E08-E13`).

    A parenthesis with further words (`with final character 5`) is a condition that a code alone
    cannot express, so its codes are left out.
    """
    found: list[str] = []
    for inside in _PARENTHESIS.findall(note):
        parts = [part for part in re.split(r",\s*|\s+", inside.strip()) if part]
        matches = [_CITED.fullmatch(part) for part in parts]
        if not parts or None in matches:
            continue
        for match in matches:
            if match is not None:
                found.append(f"{match[1]}-{match[2]}" if match[2] else match[1])
    return found


def _text(element: ET.Element) -> str:
    return " ".join((element.text or "").split())
