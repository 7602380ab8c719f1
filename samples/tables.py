"""Tables of results, vital signs and medicines, in the layouts that different facilities use.

Each row is printed from the same values as its truth.
"""

from __future__ import annotations

from collections.abc import Sequence

from samples.layout import Book
from samples.markup import Mention

Lab = tuple[str, str, str, str, str]
"""Name, value, flag, unit, reference range; "" for a missing part."""
Med = tuple[str, str, str, str]
"""Name, dose, route, frequency."""

LAB_LAYOUTS: dict[str, tuple[tuple[str, ...], tuple[int, ...], tuple[float, ...]]] = {
    "flag-first": (
        ("TEST", "RESULT", "FLAG", "UNITS", "REFERENCE"),
        (0, 1, 2, 3, 4),
        (0.36, 0.16, 0.1, 0.18, 0.2),
    ),
    "flag-last": (
        ("Component", "Value", "Units", "Reference Range", "Flag"),
        (0, 1, 3, 4, 2),
        (0.34, 0.16, 0.18, 0.22, 0.1),
    ),
    "range-first": (
        ("Analyte", "Ref. Interval", "Result", "Flag", "Unit"),
        (0, 4, 1, 2, 3),
        (0.34, 0.2, 0.16, 0.1, 0.2),
    ),
}


def lab_mention(lab: Lab, order: Sequence[int] = (0, 1, 2, 3, 4)) -> Mention:
    """Return the entity of a result row with its cells in `order`."""
    name, value, flag, unit, interval = lab
    attributes = {"value": value, "flag": flag, "unit": unit, "range": interval}
    return Mention(
        "lab",
        " ".join(lab[i] for i in order if lab[i]),
        name,
        attributes={key: words for key, words in attributes.items() if words},
    )


def labs(book: Book, rows: Sequence[Lab], layout: str = "flag-first") -> None:
    """Print a panel of results; the table may continue on the next page."""
    head, order, widths = LAB_LAYOUTS[layout]
    if book.room < book.style.leading * 3:
        book.new_page()
    book.row(head, widths, bold=True)
    book.rule()
    for lab in rows:
        book.row([lab[i] for i in order], widths, mentions=[lab_mention(lab, order)])
    book.gap(4)


def vitals_grid(
    book: Book,
    rows: Sequence[tuple[str, str, str, str, str, str]],
    first: str = "Time",
) -> None:
    """Print a flowsheet: time, BP, HR, RR, Temp (°F), SpO2 (%), one row per measurement."""
    names = ("BP", "HR", "RR", "Temp", "SpO2")
    units: tuple[str, ...] = ("mmHg", "bpm", "/min", "°F", "%")
    head = (first, *(f"{name} ({unit})" for name, unit in zip(names, units, strict=True)))
    widths = (0.2, 0.18, 0.15, 0.15, 0.16, 0.16)
    book.row(head, widths, bold=True)
    book.rule()
    for cells in rows:
        found = [
            Mention("vital", value, name, attributes={"value": value, "unit": unit})
            for name, unit, value in zip(names, units, cells[1:], strict=True)
        ]
        book.row(cells, widths, mentions=found)
    book.gap(4)


def med_mention(med: Med, status: str) -> Mention:
    """Return the entity of a medicine printed as name, dose, route, frequency."""
    name, dose, route, frequency = med
    parts = (("dose", dose), ("route", route), ("frequency", frequency), ("status", status))
    return Mention(
        "medication",
        " ".join(part for part in med if part),
        name,
        attributes={key: words for key, words in parts if words},
    )


def medicines(
    book: Book,
    rows: Sequence[tuple[Med, str]],
    head: Sequence[str] = ("Medication", "Dose", "Route", "Frequency", "Indication"),
) -> None:
    """Print a medication list with a last column of free (marked-up) text."""
    widths = (0.27, 0.14, 0.14, 0.19, 0.26)
    if book.room < book.style.leading * 3:
        book.new_page()
    book.row(head, widths, bold=True)
    book.rule()
    for med, remark in rows:
        status = "changed" if remark == "changed" else "active"
        book.row([*med, remark], widths, mentions=[med_mention(med, status)])
    book.gap(4)


def administrations(book: Book, rows: Sequence[tuple[Med, str]]) -> None:
    """Print a medication administration record: the medicines and their times."""
    head = ("Scheduled medication", "Dose", "Route", "Frequency", "Given / initials")
    medicines(book, rows, head)
