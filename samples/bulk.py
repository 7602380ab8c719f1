"""Text records of any size for tests and benchmarks, from the same blocks as the samples.

The same arguments produce the same bytes.
"""

from __future__ import annotations

import datetime as dt
import random

from samples import notes, truth
from samples.layout import BARRED, SANS, SERIF, TYPED, Book

_KINDS = (
    ("office_visit", "Quillhaven Internal Medicine", "OFFICE VISIT", SANS),
    ("emergency", "Corvane Memorial Hospital Emergency Department", "EMERGENCY VISIT", BARRED),
    ("inpatient", "Corvane Memorial Hospital", "INPATIENT RECORD", TYPED),
    ("consultation", "Ferrow Valley Nephrology", "NEPHROLOGY CONSULTATION", SERIF),
)
PATIENT = truth.PatientTruth(
    name="Sutherland-Bao, Ingrid",
    birth_date=dt.date(1955, 8, 21),
    identifier="BLK-20077",
    sex="F",
)


def make_text_record(pages: int, encounters: int, seed: int = 0) -> bytes:
    """Return a PDF of `pages` full pages with `encounters` encounters of nearly equal length."""
    return make_book(pages, encounters, seed).pdf()


def make_book(pages: int, encounters: int, seed: int = 0) -> Book:
    """Return the book behind `make_text_record`, which also knows its truth.

    Raises ValueError if there are fewer pages than encounters.
    """
    if not 1 <= encounters <= pages:
        raise ValueError(f"{encounters} encounters do not fit {pages} pages")
    book = Book(PATIENT)
    rng = random.Random(seed)
    day = dt.date(2021, 1, 4)
    for number in range(encounters):
        last_page = pages * (number + 1) // encounters
        _encounter(book, rng, day, number, last_page)
        day += dt.timedelta(days=14)
    return book


def _encounter(book: Book, rng: random.Random, day: dt.date, number: int, last_page: int) -> None:
    type_, facility, title, style = _KINDS[number % len(_KINDS)]
    stay = type_ == "inpatient"
    end = day + dt.timedelta(days=9) if stay else None
    book.running = ""
    book.new_page()
    book.begin(type_, facility, day, end, style=style)
    book.letterhead(facility, left=True)
    book.title(title)
    shown = [("Patient:", PATIENT.name), ("DOB:", "08/21/1955"), ("MRN:", PATIENT.identifier)]
    if end:
        shown.append(("Admission Date:", f"{day:%m/%d/%Y}"))
        shown.append(("Discharge Date:", f"{end:%m/%d/%Y}"))
    else:
        shown.append(("Date of Service:", f"{day:%m/%d/%Y}"))
    book.fields(*shown)
    book.running = f"{PATIENT.name}    Page {{page}} of {{total}}"
    book.fill(last_page, notes.visit_blocks(book, rng, 0.5))
