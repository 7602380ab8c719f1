"""The inline markup of the sample texts, which makes truth and print one source.

`{m|lisinopril;10 mg;by mouth;daily}` prints its parts and is a medication. A sign after the letter
asserts: `-` negated, `~` historical, `?` hypothetical, `^` family. `|name=…` overrides the reported
name, `|say=…` the printed words, `|status=…`, `|step=…` and `|strength=…` other attributes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

CATEGORIES = {
    "m": "medication",
    "c": "condition",
    "s": "symptom",
    "v": "vital",
    "l": "lab",
    "a": "allergy",
    "i": "immunization",
    "p": "procedure",
}
ASSERTIONS = {
    "": "present",
    "-": "negated",
    "~": "historical",
    "?": "hypothetical",
    "^": "family",
}
SLOTS = {
    "m": ("name", "dose", "route", "frequency"),
    "v": ("name", "value", "unit"),
    "l": ("name", "value", "unit"),
}
_MARK = re.compile(r"\{([mcsvlaip])([-~?^]?)\|([^{}|]+)((?:\|[^{}|]+)*)\}")
_LINK_WORDS = re.compile(r"(:| of| is| was)$")


@dataclass(frozen=True)
class Mention:
    """A printed entity: its category, its words and its attributes."""

    category: str
    quote: str
    name: str
    assertion: str = "present"
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MarkedRun:
    """A run of text that is never broken across lines, with its entity, if any."""

    text: str
    mention: Mention | None = None


def mention(mark: re.Match[str]) -> Mention:
    """Parse one `{…}`. Raises KeyError for an unknown slot."""
    letter, sign, body, tail = mark.groups()
    parts = [part.strip() for part in body.split(";")]
    slots = SLOTS.get(letter, ("name",))
    if len(parts) > len(slots):
        raise KeyError(f"too many parts in {mark.group(0)}")
    attributes = {slot: part for slot, part in zip(slots, parts, strict=False) if part}
    quote = " ".join(part for part in parts if part)
    value = attributes.get("value", "")
    if value.endswith("%") and "unit" not in attributes:
        attributes |= {"value": value.removesuffix("%"), "unit": "%"}
    for pair in filter(None, tail.split("|")):
        key, _, words = pair.partition("=")
        attributes[key] = words
    quote = attributes.pop("say", quote)
    name = _LINK_WORDS.sub("", attributes.pop("name"))
    return Mention(CATEGORIES[letter], quote, name, ASSERTIONS[sign], attributes)


def tokens(text: str) -> list[list[MarkedRun]]:
    """Split marked-up text into words; a word is a run of pieces without a space."""
    words: list[list[MarkedRun]] = []
    glued = False
    position = 0

    def plain(run: str) -> None:
        nonlocal glued
        for chunk in re.findall(r"\s+|\S+", run):
            if chunk.isspace():
                glued = False
                continue
            if glued:
                words[-1].append(MarkedRun(chunk))
            else:
                words.append([MarkedRun(chunk)])
            glued = True

    for mark in _MARK.finditer(text):
        plain(text[position : mark.start()])
        found = mention(mark)
        piece = MarkedRun(found.quote, found)
        if glued:
            words[-1].append(piece)
        else:
            words.append([piece])
        glued = True
        position = mark.end()
    plain(text[position:])
    if any("{" in piece.text or "}" in piece.text for word in words for piece in word):
        raise ValueError(f"broken markup in {text!r}")
    return words


def read(text: str) -> tuple[str, list[Mention]]:
    """Return the printed form of `text` and its entities."""
    words = tokens(text)
    printed = " ".join("".join(piece.text for piece in word) for word in words)
    return printed, [p.mention for word in words for p in word if p.mention]
