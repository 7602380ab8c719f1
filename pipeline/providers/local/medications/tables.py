"""Medication tables: rows below a header that names the columns.

The header says what each cell means. A row is published only if every cell is understood by its
column. A row with another number of cells, or with a strange cell, is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from pipeline.clinical.date_forms import DateOrder, iso_day
from pipeline.clinical.medications.sig import (
    BETWEEN,
    DOSE,
    DURATION,
    FREQUENCY,
    GAP,
    ROUTE,
    Amount,
    kind_of,
    printed,
)
from pipeline.clinical.page_text.lines import PrintedLine, bullet_end
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.medications.cues import ADMINISTRATION
from pipeline.providers.local.medications.doubts import has_doubt
from pipeline.providers.local.medications.steps import read_directions
from pipeline.providers.local.names.lexicon import lexicon
from pipeline.providers.schemas import NOT_TAKEN, MedicationStatus

_COLUMNS: dict[str, tuple[str, ...]] = {
    "name": (
        "medication", "medications", "medication name", "drug", "drug name", "medicine", "name",
        "med", "meds", "generic name", "generic", "product", "agent", "brand name", "brand",
    ),
    "strength": ("strength", "form/strength", "product strength", "concentration", "str"),
    "dose": ("dose", "dosage", "new dose", "current dose", "dose/amount", "amount", "each dose"),
    "old": ("old dose", "previous dose", "prior dose", "dose before", "former dose", "home dose"),
    "route": ("route", "rte", "route of administration", "roa"),
    "frequency": (
        "frequency", "freq", "freq.", "schedule", "how often", "interval", "times", "when",
        "timing",
    ),
    "sig": ("sig", "directions", "instructions", "how to take", "dose and frequency", "regimen"),
    "status": ("status", "state", "action", "disposition", "reconciliation", "change"),
    "taking": ("taking", "taking?", "still taking", "still taking?", "takes", "taken", "active?"),
    "stop": ("stop", "stop date", "end", "end date", "stopped", "discontinued", "date stopped"),
    "note": (
        "indication", "indications", "reason", "purpose", "used for", "for", "diagnosis",
        "prescriber", "prescribed by", "provider", "ordered by", "ordering provider", "source",
        "start", "start date", "started", "date started", "since", "date", "last dose",
        "last taken", "last filled", "refills", "refill", "qty", "quantity", "supply", "pharmacy",
        "form", "days", "duration", "class",
    ),
    "remark": ("comments", "comment", "notes", "note", "remarks", "additional information"),
}  # fmt: skip
_STATUS: dict[MedicationStatus, str] = {
    "active": r"active|current(?:ly taking)?|taking|continued?|continuing|yes|on|new|started|start"
    r"|ongoing|unchanged|no change|resumed?|restarted|refilled|prescribed|taking as prescribed",
    "stopped": r"discontinued?|stop(?:ped)?|inactive|ended|completed?|expired|d/?c'?e?d|finished"
    r"|no longer taking|d/c|ceased|withdrawn|past|historical|previous|former|cancell?ed|replaced",
    "on_hold": r"on hold|held|hold|holding|suspended|paused|withheld",
    "planned": r"planned|pending|ordered|proposed|to start|to be started|scheduled|future"
    r"|recommended|not yet started",
    "not_started": r"declined|refused|never (?:started|taken|filled|took)|not (?:taking|started"
    r"|taken|filled|given)|no|patient declined|not currently taking",
    "entered_in_error": r"entered in error|error|in error|erroneous|wrong patient",
    "changed": r"changed?|dose changed?|increased?|decreased?|reduced?|modified|adjusted"
    r"|dose (?:increased?|decreased?|reduced?)",
}
_DOSE_COLUMNS = frozenset({"dose", "strength", "sig", "frequency"})
_STATE_COLUMNS = frozenset({"stop", "status", "taking"})
_DRUGS = re.compile(r"(?:medication|drug|medicine|meds?\b|prescription|rx\b)", re.I)
"""A heading that names drugs also without a column of doses."""
_EMPTY = re.compile(r"(?:[-–—*]*|n/?a|none|unknown|not stated|nil)$", re.I)
_OPEN = re.compile(r"(?:[-–—]*|n/?a|none|ongoing|present|current|open|active|no|never)$", re.I)
_CELLS = re.compile(r"\t|[ ]{2,}|[ ]*\|[ ]*")
_STRUCK = re.compile(r"~~")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9'’/+-]*(?:[ ][A-Za-z0-9'’/+-]+)*")


class _Cell(NamedTuple):
    start: int
    end: int
    text: str


class _Table(NamedTuple):
    columns: tuple[str, ...]
    starts: tuple[int, ...]
    """Where the header's cells begin in their line."""
    by_tab: bool


def read_medication_tables(reading: DocumentState) -> None:
    """Add the rows of all medication tables."""
    table: _Table | None = None
    for line in reading.lines:
        raw = reading.document.raw[line.start : line.end]
        if not raw.strip():
            table = table if table and table.by_tab else None
            continue
        header = _header(raw)
        if header is not None:
            zone = reading.zones.at(line.start)
            is_record = zone is not None and ADMINISTRATION.search(zone.heading or "")
            table = None if is_record or "allerg" in raw.lower() else header
            if table is not None:
                reading.claim(line.start, line.end)
            continue
        if table is not None and not _read_row(reading, line, raw, table):
            table = None


def _header(raw: str) -> _Table | None:
    cells = list(_cells(raw, by_tab="\t" in raw))
    if not 2 <= len(cells) <= 14:
        return None
    names = [cell.text.strip(" :*").lower() for cell in cells]
    columns = tuple(_column_of().get(name, "") for name in names)
    if columns.count("name") < 1 or not (_DOSE_COLUMNS | _STATE_COLUMNS) & set(columns):
        return None
    if not _DOSE_COLUMNS & set(columns) and not _DRUGS.match(names[columns.index("name")]):
        return None
    if not all(columns):
        return None
    first = columns.index("name")
    columns = tuple(c if c != "name" or i == first else "note" for i, c in enumerate(columns))
    return _Table(columns, tuple(cell.start for cell in cells), "\t" in raw)


@cache
def _column_of() -> dict[str, str]:
    return {name: column for column, names in _COLUMNS.items() for name in names}


def _cells(raw: str, *, by_tab: bool) -> Iterator[_Cell]:
    """Yield the cells of a line. An empty cell between two tabs is yielded too."""
    at = bullet_end(raw)
    for m in (re.compile(r"\t") if by_tab else _CELLS).finditer(raw, at):
        yield _Cell(at, m.start(), raw[at : m.start()])
        at = m.end()
    if raw[at:].strip() or by_tab:
        yield _Cell(at, len(raw), raw[at:])


def _row(raw: str, table: _Table) -> list[_Cell] | None:
    """Return one cell for each column, or None if the cells do not fit the columns."""
    cells = list(_cells(raw, by_tab=table.by_tab))
    size = len(table.columns)
    if table.by_tab or len(cells) == size:
        if len(cells) > size:
            return None
        return cells + [_Cell(len(raw), len(raw), "")] * (size - len(cells))
    placed: list[_Cell] = [_Cell(0, 0, "")] * size
    for cell in cells:
        near = [i for i, start in enumerate(table.starts) if abs(start - cell.start) <= 1]
        if len(near) != 1 or placed[near[0]].text:
            return None
        placed[near[0]] = cell
    return placed


def _read_row(reading: DocumentState, line: PrintedLine, raw: str, table: _Table) -> bool:
    """Read one row; return whether the line belongs to the table."""
    if table.by_tab is not ("\t" in raw) and len(table.columns) > 1:
        return False
    cells = _row(raw, table)
    name = cells[table.columns.index("name")] if cells else next(_cells(raw, by_tab=table.by_tab))
    words = _NAME.match(name.text.replace("~~", "  ").strip())
    if words is None:
        return cells is not None
    offset = line.start + name.start + name.text.index(words.group())
    drug = _drug_at(reading, offset, line.start + name.end)
    if drug is None and (cells is None or not _is_dosed(cells, table)):
        return False
    start, end = drug or (offset, offset + len(words.group()))
    zone = reading.zones.at(start)
    found = Finding(
        category="medication",
        start=start,
        end=line.start + len(raw.rstrip()),
        head_end=end,
        name=own_words(reading.text[start:end]),
        rule="med.table.v1",
        engine_confidence=0.95 if drug else 0.7,
        zone=zone.zone if zone else None,
    )
    read = _understood(reading, found, line, cells, table) if cells else None
    if read is None:
        read = [replace(found, rule="med.table-not-understood.v1", end=end)]
    for each in read:
        reading.findings.append(each)
    _claim_row(reading, line, cells, table)
    return True


def _claim_row(
    reading: DocumentState, line: PrintedLine, cells: list[_Cell] | None, table: _Table
) -> None:
    """Claim a row except its notes: later rules read an indication as a disease."""
    at = line.start
    for column, cell in zip(table.columns, cells or (), strict=False):
        if column == "note":
            reading.claim(at, line.start + cell.start)
            at = line.start + cell.end
    reading.claim(at, line.end)


def _is_dosed(cells: list[_Cell], table: _Table) -> bool:
    return any(
        column in ("dose", "strength", "sig") and DOSE.search(cell.text)
        for column, cell in zip(table.columns, cells, strict=True)
    )


def _drug_at(reading: DocumentState, start: int, end: int) -> tuple[int, int] | None:
    """Return the place of the drug's name that a cell begins with."""
    for match in lexicon().find(reading.tokens_in(start, end)):
        if match.start == start and match.reading("medication"):
            return match.start, match.end
        break
    return None


def _understood(
    reading: DocumentState, found: Finding, line: PrintedLine, cells: list[_Cell], table: _Table
) -> list[Finding] | None:
    """Return the entities of a row, or None if a cell is not understood."""
    if _STRUCK.search(line.text):
        found = replace(found, status="stopped", temporality="historical", negated=True)
    status: MedicationStatus = found.status or "active"
    doses: list[Finding] = [found]
    for column, cell in zip(table.columns, cells, strict=True):
        value = cell.text.replace("~~", " ").strip()
        if column == "name":
            rest = reading.text[found.head_end : line.start + cell.end]
            is_name = bool(_DOSE_COLUMNS & set(table.columns))
            doses = _with_directions(doses, rest, is_name=is_name) if rest.strip(" ~") else doses
        elif _EMPTY.match(value) and column not in ("stop",):
            continue
        elif column in ("dose", "strength", "old"):
            doses = _with_amount(doses, column, value)
        elif column == "route":
            doses = [replace(f, route=value) for f in doses] if ROUTE.fullmatch(value) else []
        elif column == "frequency":
            doses = _with_frequency(doses, value)
        elif column == "sig":
            doses = _with_directions(doses, value)
        elif column in ("status", "taking"):
            said = _status_of(value)
            if said is None:
                return None
            status = status if status in NOT_TAKEN else said
        elif column == "stop" and not _OPEN.match(value):
            if not _is_over(value, reading):
                return None
            status = "stopped"
        elif column == "remark" and has_doubt("", value):
            return None
        if not doses:
            return None
    return [_in_status(each, status) for each in doses]


def _is_over(stop: str, reading: DocumentState) -> bool:
    """Return whether a stop date has passed; False if the date perhaps lies ahead."""
    orders = [reading.date_order] if reading.date_order else list(DateOrder)
    days = {iso_day(stop, order) for order in orders}
    own = reading.own_day
    if own is None or not re.search(r"\d", stop):
        return True
    return all(day is not None and day <= own.isoformat() for day in days)


def _in_status(found: Finding, status: MedicationStatus) -> Finding:
    if status == "active" and found.previous_dose:
        status = "changed"
    if status == "stopped":
        return replace(found, status=status, temporality="historical", negated=True)
    if status == "planned":
        return replace(found, status=status, temporality="planned", certainty="hypothetical")
    if status in NOT_TAKEN:
        return replace(found, status=status, negated=True)
    return replace(found, status=status)


def _status_of(value: str) -> MedicationStatus | None:
    words = re.sub(r"[\s.]+", " ", re.sub(r"[(].*?[)]|\d{1,2}/\d{1,2}/\d{2,4}", "", value)).strip()
    ticked = re.fullmatch(r"\[([ xX])\]", value.strip())
    if ticked:
        return "active" if ticked[1] in "xX" else "not_started"
    return next((s for s, p in _STATUS.items() if re.fullmatch(p, words, re.I)), None)


def _with_amount(doses: list[Finding], column: str, value: str) -> list[Finding]:
    m = DOSE.fullmatch(value)
    if m is None:
        return _with_directions(doses, value) if column == "dose" else []
    amount = printed(value)
    if column == "strength" or (column == "dose" and kind_of(value) is Amount.CONTENT):
        return [replace(f, strength=amount) for f in doses]
    if column == "old":
        return [replace(f, previous_dose=amount) for f in doses]
    return [replace(f, dose=amount) for f in doses]


def _with_frequency(doses: list[Finding], value: str) -> list[Finding]:
    at, begin, end = 0, None, 0
    while at < len(value):
        gap = GAP.match(value, at)
        at = gap.end() if gap else at
        if at >= len(value):
            break
        m = FREQUENCY.match(value, at) or re.compile(r"(?:for|and|&)\b", re.I).match(value, at)
        if m is not None and FREQUENCY.match(value, at):
            begin, end = (at if begin is None else begin), m.end()
        m = m or DURATION.match(value, at)
        m = m or re.compile(r"(?<=for )[a-z ]{3,30}$", re.I).match(value, at)
        if m is None:
            return []
        at = m.end()
    if begin is None:
        return []
    return [replace(f, frequency=printed(value[begin:end])) for f in doses]


def _with_directions(doses: list[Finding], value: str, *, is_name: bool = False) -> list[Finding]:
    """Read the words of a cell as directions; a product's name can end with its strength."""
    read = read_directions(value, 0, len(value))
    passed = " ".join(value[a:b] for a, b in read.passed)
    if read.unexplained is not None or has_doubt("", passed):
        return []
    steps = [s for s in read.steps if s.dose or s.frequency or s.route]
    if is_name:
        if len(steps) > 1 or (steps and steps[0].frequency):
            return []
        return [replace(f, strength=steps[0].dose) for f in doses] if steps else doses
    if any(f.dose and s.dose and f.dose != s.dose for f in doses for s in steps):
        return []
    found = [
        replace(
            first,
            strength=step.strength or first.strength,
            dose=step.dose or first.dose,
            route=step.route or first.route,
            frequency=read.frequency(value, step) or first.frequency,
            step=number if len(steps) > 1 else None,
        )
        for first in doses
        for number, step in enumerate(steps, start=1)
    ]
    return found or (doses if BETWEEN.fullmatch(value.strip()) else [])
