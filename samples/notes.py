"""Blocks of clinical notes whose values follow a seeded course, for the long and bulk records.

The same `random.Random` produces the same blocks.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from samples import phrases, tables
from samples.layout import Book
from samples.tables import Lab, Med

Course = tuple[str, str, float, float, int, float, float]
"""Name, unit, low and high limit of normal, decimals, value at the start and at the end."""

BLOOD: tuple[Course, ...] = (
    ("WBC", "K/uL", 4.0, 11.0, 1, 21.4, 8.2),
    ("Hemoglobin", "g/dL", 11.1, 15.9, 1, 10.2, 10.8),
    ("Hematocrit", "%", 34.0, 46.6, 1, 31.0, 32.6),
    ("Platelets", "K/uL", 150, 400, 0, 128, 312),
)
CHEMISTRY: tuple[Course, ...] = (
    ("Sodium", "mmol/L", 135, 145, 0, 129, 139),
    ("Potassium", "mmol/L", 3.5, 5.1, 1, 5.4, 4.3),
    ("Chloride", "mmol/L", 96, 106, 0, 95, 103),
    ("CO2", "mmol/L", 20, 29, 0, 17, 25),
    ("BUN", "mg/dL", 8, 27, 0, 58, 24),
    ("Creatinine", "mg/dL", 0.57, 1.0, 2, 2.84, 1.16),
    ("Glucose", "mg/dL", 70, 99, 0, 246, 148),
    ("Calcium", "mg/dL", 8.7, 10.3, 1, 8.1, 8.9),
    ("Magnesium", "mg/dL", 1.6, 2.3, 1, 1.5, 2.0),
)
CHRONIC: tuple[Course, ...] = (
    ("Total Cholesterol", "mg/dL", 100, 199, 0, 208, 186),
    ("LDL Cholesterol", "mg/dL", 0, 99, 0, 121, 94),
    ("HDL Cholesterol", "mg/dL", 40, 90, 0, 44, 49),
    ("Triglycerides", "mg/dL", 0, 149, 0, 196, 151),
    ("Hemoglobin A1c", "%", 4.0, 5.6, 1, 7.9, 7.0),
    ("TSH", "mIU/L", 0.45, 4.5, 2, 3.1, 2.6),
    ("Vitamin B12", "pg/mL", 232, 1245, 0, 310, 402),
    ("Ferritin", "ng/mL", 15, 150, 0, 38, 71),
    ("Albumin", "g/dL", 3.8, 4.9, 1, 3.6, 4.0),
    ("ALT", "U/L", 0, 32, 0, 29, 22),
    ("AST", "U/L", 0, 40, 0, 33, 24),
    ("Alkaline Phosphatase", "U/L", 44, 121, 0, 96, 88),
)
WARD_MEDS: tuple[Med, ...] = (
    ("ceftriaxone", "2 g", "IV", "daily"),
    ("azithromycin", "500 mg", "IV", "daily"),
    ("apixaban", "2.5 mg", "PO", "BID"),
    ("metoprolol tartrate", "25 mg", "PO", "BID"),
    ("insulin glargine", "14 units", "subcut", "at bedtime"),
    ("pantoprazole", "40 mg", "PO", "daily"),
    ("acetaminophen", "650 mg", "PO", "q6h PRN"),
    ("melatonin", "3 mg", "PO", "at bedtime"),
    ("polyethylene glycol", "17 g", "PO", "daily"),
    ("furosemide", "20 mg", "IV", "daily"),
)
HOME_MEDS: tuple[Med, ...] = (
    ("metformin", "500 mg", "PO", "BID"),
    ("lisinopril", "10 mg", "PO", "daily"),
    ("apixaban", "2.5 mg", "PO", "BID"),
    ("metoprolol tartrate", "25 mg", "PO", "BID"),
    ("atorvastatin", "20 mg", "PO", "at bedtime"),
    ("alendronate", "70 mg", "PO", "weekly"),
    ("calcium carbonate", "600 mg", "PO", "daily"),
    ("acetaminophen", "500 mg", "PO", "q8h PRN"),
    ("omeprazole", "20 mg", "PO", "daily"),
)


def results(rng: random.Random, panel: Sequence[Course], progress: float) -> list[Lab]:
    """Return rows of `panel` at `progress` (0–1) of its course, flagged against their limits."""
    rows: list[Lab] = []
    for name, unit, low, high, decimals, start, end in panel:
        value = start + (end - start) * min(1.0, progress)
        shown = f"{value * rng.uniform(0.97, 1.03):.{decimals}f}"
        flag = "L" if float(shown) < low else "H" if float(shown) > high else ""
        rows.append((name, shown, flag, unit, f"{low:.{decimals}f}-{high:.{decimals}f}"))
    return rows


def vitals(rng: random.Random, progress: float) -> tuple[str, str, str, str, str]:
    """Return BP, HR, RR, Temp and SpO2 of a patient at `progress` of the recovery."""
    systolic = round(96 + 30 * progress + rng.randint(-5, 5))
    diastolic = round(systolic * 0.6 + rng.randint(-3, 3))
    pulse = round(112 - 36 * progress + rng.randint(-5, 5))
    breaths = 26 - 2 * round(5 * progress) + 2 * rng.randint(-1, 1)
    heat = 101.4 - 3.1 * progress + rng.uniform(-0.3, 0.3)
    oxygen = min(99, round(90 + 6 * progress + rng.randint(-1, 1)))
    return f"{systolic}/{diastolic}", str(pulse), str(breaths), f"{heat:.1f}", str(oxygen)


def vitals_line(rng: random.Random, progress: float) -> str:
    """Return one marked-up line of vital signs."""
    pressure, pulse, breaths, heat, oxygen = vitals(rng, progress)
    return (
        f"{{v|BP;{pressure};mmHg}}, {{v|HR;{pulse};bpm}}, {{v|RR;{breaths}}}, "
        f"{{v|Temp;{heat};°F}}, {{v|SpO2;{oxygen}%}}."
    )


def progress_note(
    book: Book, rng: random.Random, day: dt.date, number: int, progress: float
) -> None:
    """Print one day of a stay: note, flowsheet, results, plan, administrations, nursing note."""
    book.title(f"PROGRESS NOTE - HOSPITAL DAY {number} - {day:%m/%d/%Y}")
    book.para("Subjective: " + rng.choice(phrases.SUBJECTIVE))
    book.para("Objective: " + vitals_line(rng, progress))
    book.para("Exam: " + rng.choice(phrases.EXAM))
    book.heading(f"RESULTS {day:%m/%d/%Y} 05:{rng.randint(10, 55)}")
    tables.labs(book, results(rng, BLOOD + CHEMISTRY, progress))
    book.heading("ASSESSMENT AND PLAN")
    book.items(*rng.sample(phrases.PLAN, 4), mark="1.")
    flowsheet(book, rng, progress)
    administration_record(book, rng, day)
    nursing_note(book, rng, day)


def flowsheet(book: Book, rng: random.Random, progress: float) -> None:
    """Print a day's vital signs every six hours."""
    book.heading("VITAL SIGNS FLOWSHEET")
    hours = ("02:00", "08:00", "14:00", "20:00")
    tables.vitals_grid(book, [(hour, *vitals(rng, progress)) for hour in hours])


def administration_record(book: Book, rng: random.Random, day: dt.date) -> None:
    """Print a day's medication administration record."""
    book.heading(f"MEDICATION ADMINISTRATION RECORD {day:%m/%d/%Y}")
    rows = []
    for med in WARD_MEDS:
        given = f"08{rng.randint(10, 40)} {rng.choice(('KD', 'MO', 'RT'))}"
        if med[3] == "BID":
            given += f"  20{rng.randint(10, 40)} {rng.choice(('AV', 'JS'))}"
        rows.append((med, given if rng.random() > 0.08 else "refused"))
    tables.administrations(book, rows)


def nursing_note(book: Book, rng: random.Random, day: dt.date) -> None:
    """Print a nursing note of the shift."""
    hour = rng.choice(("06:40", "14:30", "18:55", "22:10"))
    nurse = rng.choice(("K. Drummond, RN", "M. Oyelaran, RN", "R. Tsukuda, RN", "A. Vance, RN"))
    book.para(f"Nursing {day:%m/%d/%Y} {hour}: {rng.choice(phrases.NURSING)} {nurse}")


def home_medicines(book: Book, rng: random.Random, count: int = 9) -> None:
    """Print a home medication list."""
    book.heading("MEDICATIONS")
    remarks = ("taking", "taking as directed", "sometimes forgets", "refilled today")
    chosen = HOME_MEDS[:count]
    tables.medicines(
        book,
        [(med, rng.choice(remarks)) for med in chosen],
        ("Medication", "Dose", "Route", "Frequency", "Comment"),
    )


def visit_blocks(
    book: Book, rng: random.Random, progress: float, opening: Sequence[str] = ()
) -> Iterator[Callable[[], None]]:
    """Yield the blocks of an outpatient visit without end, for `Book.fill`.

    `opening` paragraphs come first; later rounds are interviews and addenda of the same visit.
    """
    pool: list[str] = []
    titles = ("", "INTERVIEW WITH THE DAUGHTER", "REVIEW OF OUTSIDE RECORDS", "ADDENDUM")
    for turn in itertools.count():
        if turn:
            yield partial(book.heading, titles[min(turn, 3)])
        for text in opening if turn == 0 else ():
            yield partial(book.para, text)
        if len(pool) < 6:
            pool = rng.sample(phrases.VISIT, len(phrases.VISIT))
        for _ in range(6):
            yield partial(book.para, pool.pop())
        if turn % 2 == 0:
            yield partial(_section, book, "VITAL SIGNS", vitals_line(rng, 0.9))
            yield partial(_section, book, "PHYSICAL EXAM", rng.choice(phrases.OFFICE_EXAM))
            yield partial(home_medicines, book, rng)
        else:
            yield partial(home_readings, book, rng)
        yield partial(_results, book, rng, progress, turn)
        yield partial(_plan, book, rng)


def therapy_blocks(book: Book, rng: random.Random) -> Iterator[Callable[[], None]]:
    """Yield the blocks of a course of therapy on one day without end, for `Book.fill`."""
    for number in itertools.count(1):
        text = phrases.THERAPY[number % len(phrases.THERAPY)]
        yield partial(_section, book, f"ACTIVITY {number}", text)
        yield partial(book.para, "Before: " + vitals_line(rng, 0.9))
        yield partial(book.para, "After: " + vitals_line(rng, 0.75))
        if number % 6 == 0:
            yield partial(home_readings, book, rng)


def home_readings(book: Book, rng: random.Random) -> None:
    """Print a patient's home readings of a week."""
    book.heading("HOME READINGS")
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
    tables.vitals_grid(book, [(day, *vitals(rng, 0.95)) for day in days], "Day")


def _section(book: Book, heading: str, text: str) -> None:
    book.heading(heading)
    book.para(text)


def _results(book: Book, rng: random.Random, progress: float, turn: int) -> None:
    book.heading("RESULTS REVIEWED" if turn == 0 else "EARLIER RESULTS")
    panel = CHRONIC if turn % 2 == 0 else CHEMISTRY
    tables.labs(book, results(rng, panel, max(progress, 0.8)), "flag-last")


def _plan(book: Book, rng: random.Random) -> None:
    book.heading("ASSESSMENT AND PLAN")
    book.items(*rng.sample(phrases.OFFICE_PLAN, 4), mark="1.")
