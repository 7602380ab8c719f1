"""Judge inputs with expectations: PDFs with `<name>.json` beside them, and lists of short texts.

Every input is read by the real reader. A short text becomes one page of a PDF; only characters
that a standard font lacks make it skip the PDF.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evaluation.expectations import WANTS, Checked, Expectation, Reading, check
from evaluation.paper import can_draw, draw
from evaluation.published import Published, ReadText, encounter_dates, publish
from pipeline.documents.reader import InputRefused, PageRead, probe, read_pages

HEAD = "OFFICE VISIT\nPatient: Elowen Tarrasch\nDate of Service: 03/04/2025\n\n"
"""The lines above each short text."""


_WARNINGS = {
    "partly_read": "PARTLY_READ",
    "attachments": "PARTLY_READ",
    "hidden_text": "INPUT_INVALID",
}
"""Warning of a page → warning of its record. Other warnings of a page stay with the page."""
_READERS = 2
"""Files that are read at once."""


class BadDataError(Exception):
    """A file that names expectations cannot be used; the message begins with a code."""


@dataclass(frozen=True, kw_only=True)
class ReportCase:
    """One input with its expectations."""

    id: str
    expect: tuple[Expectation, ...]
    text: str = field(default="", repr=False)
    file: Path | None = None


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """An input and how each of its expectations was met."""

    id: str
    checked: tuple[Checked, ...]

    @property
    def is_whole(self) -> bool:
        """Whether every expectation holds."""
        return all(each.holds for each in self.checked)

    @property
    def is_wrong(self) -> bool:
        """Whether something is wrong and unflagged."""
        return any(each.is_wrong for each in self.checked)


def cases(folder: Path) -> list[ReportCase]:
    """Return the inputs of one folder. Raises BadDataError for a file that cannot be used."""
    found: list[ReportCase] = []
    for path in sorted(folder.glob("*.json")):
        content = _content(path)
        if isinstance(content, list):
            items = [item for item in content if isinstance(item, dict) and "expect" in item]
            found += [_text_case(path, item) for item in items]
        elif isinstance(content, dict) and "expect" in content and "input" in content:
            found += _file_case(path, content)
    return found


def judge(cases: Sequence[ReportCase]) -> Iterator[CaseResult]:
    """Read and judge inputs, first files, then short texts."""
    files = [case for case in cases if case.file is not None]
    with ThreadPoolExecutor(_READERS) as pool:
        # Each file has a reader process of its own; the threads only wait.
        for case, pages in zip(files, pool.map(_pages, files), strict=True):
            yield _judged(case, _of_pages(pages))
    short = [case for case in cases if case.file is None]
    drawn = [case for case in short if can_draw(case.text)]
    texts = _drawn_texts(drawn)
    for case in short:
        text = texts.get(case.id, HEAD + case.text)
        yield _judged(case, _reading(publish({1: text})))


def _judged(case: ReportCase, reading: Reading) -> CaseResult:
    return CaseResult(id=case.id, checked=tuple(check(each, reading) for each in case.expect))


def _pages(case: ReportCase) -> list[PageRead] | InputRefused:
    path = str(case.file)
    try:
        return list(read_pages(path, 1, probe(path).page_count))
    except InputRefused as refused:
        return refused


def _of_pages(pages: list[PageRead] | InputRefused) -> Reading:
    if isinstance(pages, InputRefused):
        return Reading(refusal=pages.code)
    return _reading(
        publish({page.number: ReadText.of(page) for page in pages}),
        dates=frozenset(encounter_dates({page.number: page.text for page in pages})),
        warnings=frozenset(
            _WARNINGS[each] for page in pages for each in page.warnings if each in _WARNINGS
        ),
    )


def _reading(published: Published, **more: Any) -> Reading:
    return Reading(rows=published.rows, no_known_allergies=published.no_known_allergies, **more)


def _drawn_texts(short: Sequence[ReportCase]) -> dict[str, str]:
    if not short:
        return {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "texts.pdf"
        draw([HEAD + case.text for case in short], path)
        pages = list(read_pages(path, 1, len(short)))
    return {case.id: page.text for case, page in zip(short, pages, strict=True)}


def _content(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "not UTF-8"
        raise BadDataError(f"EVAL_BAD_JSON: {path} is no JSON ({where})") from error
    except OSError as error:
        raise BadDataError(f"EVAL_UNREADABLE: {path} ({error.strerror})") from error


def _text_case(path: Path, item: Mapping[str, Any]) -> ReportCase:
    name, text = item.get("id"), item.get("text")
    if not isinstance(name, str) or not isinstance(text, str):
        raise BadDataError(f"EVAL_BAD_CASE: an item of {path} lacks its id or its text")
    return ReportCase(id=name, text=text, expect=_expectations(path, name, item["expect"]))


def _file_case(path: Path, content: Mapping[str, Any]) -> list[ReportCase]:
    file = path.parent / str(content["input"])
    if file.parent.resolve() != path.parent.resolve() or file.suffix.lower() != ".pdf":
        return []
    if not file.is_file():
        raise BadDataError(f"EVAL_INPUT_MISSING: {file}, which {path.name} names, does not exist")
    name = str(content.get("id", path.stem))
    return [ReportCase(id=name, file=file, expect=_expectations(path, name, content["expect"]))]


def _expectations(path: Path, name: str, found: Any) -> tuple[Expectation, ...]:
    if not isinstance(found, list):
        raise BadDataError(f"EVAL_BAD_EXPECTATION: {name} in {path} has no list of expectations")
    for each in found:
        problem = _problem(each)
        if problem:
            raise BadDataError(f"EVAL_BAD_EXPECTATION: {name} in {path}: {problem}")
    return tuple(found)


def _problem(each: Any) -> str:
    if not isinstance(each, dict) or each.get("want") not in WANTS:
        return f"`want` must be one of {', '.join(WANTS)}"
    if each["want"] == "date":
        return "" if isinstance(each.get("value"), str) else "a date needs a `value`"
    if each["want"] not in ("present", "absent", "not"):
        return ""
    if not isinstance(each.get("category"), str) or not isinstance(each.get("name"), str):
        return "the category or the name is missing"
    try:
        re.compile(each["name"])
    except re.error as error:
        return f"the name is no pattern (position {error.pos})"
    return ""
