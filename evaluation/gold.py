"""Labelled notes in their usual formats: Anafora XML, brat, JSON lines.

A label's kind is mapped to one of this project: `drug`, `finding` or `procedure`.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_ANAFORA_KINDS = {
    "Disease_Disorder": "finding",
    "Sign_symptom": "finding",
    "Medications/Drugs": "drug",
    "Procedure": "procedure",
}
_BRAT_KINDS = {
    "Disease_disorder": "finding",
    "Sign_symptom": "finding",
    "Medication": "drug",
    "Therapeutic_procedure": "procedure",
}
_BRAT_BESIDE: dict[str, tuple[str, ...]] = {
    "Diagnostic_procedure": ("procedure",),
    "History": ("finding",),
    "Family_history": ("finding",),
    "Coreference": ("finding", "procedure"),
}
"""Labels of MACCROBAT for mentions that are no error of ours, and that its other labels leave out.

An ECG is a procedure of ours and a diagnostic procedure there. A whole history is one label, and a
second mention of a finding is a coreference.
"""
_MAX_XML = 20_000_000
"""Bytes; a larger file is skipped."""


@dataclass(frozen=True, kw_only=True)
class GoldSpan:
    """A labelled mention at `text[start:end]`."""

    start: int
    end: int
    kind: str
    negated: bool | None = None
    """None if the data set does not state it."""


@dataclass(frozen=True, kw_only=True)
class GoldNote:
    """A text with its labels."""

    name: str
    text: str = field(repr=False)
    spans: tuple[GoldSpan, ...]
    beside: tuple[GoldSpan, ...] = ()
    """Mentions that the data set labels as a neighbouring kind; neither expected nor wrong."""


def anafora(folder: Path) -> Iterator[GoldNote]:
    """Yield the notes of a folder of Anafora XML files beside their texts."""
    for path in sorted(folder.glob("*.xml")):
        source = folder / path.name.partition(".")[0]
        if not source.is_file() or path.stat().st_size > _MAX_XML:
            continue
        head = path.read_text(encoding="utf-8", errors="replace")
        if "<!DOCTYPE" in head or "<annotations>" not in head:
            continue
        spans = tuple(_anafora_spans(ET.fromstring(head)))  # noqa: S314 - no DOCTYPE, local file
        text = source.read_bytes().decode("utf-8", errors="replace")
        yield GoldNote(name=source.name, text=_fitting(text, spans), spans=spans)


def _anafora_spans(root: ET.Element) -> Iterator[GoldSpan]:
    for entity in root.iter("entity"):
        kind = _ANAFORA_KINDS.get(entity.findtext("type") or "")
        if kind is None:
            continue
        bounds = [int(number) for number in re.findall(r"\d+", entity.findtext("span") or "")]
        if len(bounds) < 2:
            continue
        cue = entity.findtext("properties/negation_indicator") or ""
        yield GoldSpan(start=bounds[0], end=bounds[-1], kind=kind, negated=bool(cue.strip()))


def _fitting(text: str, spans: tuple[GoldSpan, ...]) -> str:
    """Return the text with the kind of line ends that aligns most labels with words."""
    unix = text.replace("\r\n", "\n")
    return max((unix, unix.replace("\n", "\r\n")), key=lambda t: _edges(t, spans))


def _edges(text: str, spans: tuple[GoldSpan, ...]) -> int:
    padded = f" {text} "
    return sum(
        (not padded[s.start].isalnum() and padded[s.start + 1 : s.start + 2].isalnum())
        + (padded[s.end : s.end + 1].isalnum() and not padded[s.end + 1 : s.end + 2].isalnum())
        for s in spans
        if s.end < len(text)
    )


def brat(folder: Path) -> Iterator[GoldNote]:
    """Yield the notes of a folder of brat files that label drugs or findings."""
    for path in sorted(folder.glob("*.ann")):
        source = path.with_suffix(".txt")
        if not source.is_file():
            continue
        labels = path.read_text(encoding="utf-8")
        kinds: Mapping[str, tuple[str, ...]] = {k: (kind,) for k, kind in _BRAT_KINDS.items()}
        spans = tuple(_brat_spans(labels, kinds))
        if spans:
            text = source.read_bytes().decode("utf-8", errors="replace")
            beside = tuple(_brat_spans(labels, _BRAT_BESIDE))
            yield GoldNote(name=path.stem, text=text, spans=spans, beside=beside)


def _brat_spans(labels: str, kinds: Mapping[str, tuple[str, ...]]) -> Iterator[GoldSpan]:
    for line in labels.splitlines():
        m = re.match(r"T\d+\t(\S+) (\d+)[\d ;]*? ?(\d+)\t", line)
        if m is not None:
            for kind in kinds.get(m[1], ()):
                yield GoldSpan(start=int(m[2]), end=int(m[3]), kind=kind)


def contexts(path: Path, language: str = "en") -> Iterator[tuple[GoldNote, dict[str, str]]]:
    """Yield the one-sentence cases of a JSON-lines file with their expected values."""
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line) if line.startswith("{") else {}
        if case.get("language") != language or "target" not in case:
            continue
        text, target = case["text"], case["target"]["text"]
        start = text.find(target)
        if start < 0:
            continue
        expected = case["expected"]
        span = GoldSpan(
            start=start,
            end=start + len(target),
            kind="finding",
            negated=expected["negation"] == "negated",
        )
        yield GoldNote(name=case["case_id"], text=text, spans=(span,)), expected
