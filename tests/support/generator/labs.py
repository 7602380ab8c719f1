"""Generated laboratory rows: three to nine columns in any order, with what laboratories print."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.support.generator.cases import Expected, FactKind, Made, Said

ANALYTES = (
    ("Potassium", "mmol/L", (2.5, 7.0), 1, "3.5-5.1"),
    ("Sodium", "mmol/L", (118, 160), 0, "135-145"),
    ("Hemoglobin", "g/dL", (5.0, 19.0), 1, "12.0-16.0"),
    ("Creatinine", "mg/dL", (0.4, 9.0), 2, "0.60-1.30"),
    ("Glucose", "mg/dL", (35, 480), 0, "70-99"),
    ("Platelets", "10^3/uL", (12, 900), 0, "150-400"),
    ("WBC", "10^3/uL", (0.5, 40.0), 1, "4.0-11.0"),
    ("TSH", "mIU/L", (0.01, 90.0), 2, "0.45-4.50"),
    ("Ferritin", "ng/mL", (3, 1500), 0, "30-400"),
    ("ALT", "U/L", (8, 900), 0, "7-56"),
    ("Magnesium", "mg/dL", (0.8, 3.5), 1, "1.7-2.2"),
    ("Vitamin B12", "pg/mL", (80, 1500), 0, "200-900"),
    ("D-dimer", "ug/mL FEU", (0.1, 20.0), 2, "<0.50"),
    ("Troponin T", "ng/L", (4, 2400), 0, "<14"),
    ("CRP", "mg/L", (0.3, 300.0), 1, "<5.0"),
    ("Albumin", "g/L", (18, 52), 0, "35-50"),
)
Analyte = tuple[str, str, tuple[float, float], int, str]
HEADINGS = {
    "name": ("TEST", "Test Name", "Analyte", "Component"),
    "value": ("RESULT", "Result", "Value", "Your Value"),
    "flag": ("FLAG", "Flag", "Abn"),
    "unit": ("UNITS", "Units", "Unit"),
    "range": ("REFERENCE", "Reference Range", "Ref Range", "Normal Range"),
    "previous": ("PREVIOUS", "Previous Result", "Prior"),
    "previous_date": ("PREV DATE", "Prior Date"),
    "specimen": ("SPECIMEN", "Specimen"),
    "comment": ("COMMENT", "Notes"),
}
FLAGS = ("H", "L", "HH", "LL", "H*", "(H)", "(L)", "A", "High", "Low")
SPECIMENS = ("Serum", "Plasma", "Whole blood", "Urine")
COMMENTS = ("hemolyzed", "repeat requested", "verified by repeat", "see note 2")
FOOTNOTES = ("¹", "²", " *", "^a")
COMPARATORS = ("<", ">", "<=", ">=", "< ", "> ")
FIELDS = {"value": "value", "unit": "unit", "range": "reference_range", "flag": "abnormal_flag"}
"""Column to field. An empty cell means that the row states no value for the field."""
NARROW = 12
"""Least width of a column that spaces align."""


@dataclass(frozen=True, kw_only=True)
class LabRow:
    """One row by columns, and its facts."""

    cells: dict[str, str]
    fact: Expected


def table(rng: random.Random) -> Made:
    """Return a table of one to five rows under a heading line."""
    columns = _columns(rng)
    gap = "\t" if rng.random() < 0.4 else rng.choice(["  ", "   ", " | "])
    analytes = rng.sample(ANALYTES, k=rng.randint(1, 5))
    rows = [_row(rng, analyte, columns) for analyte in analytes]
    head = {column: rng.choice(HEADINGS[column]) for column in columns}
    lines = grid([head, *(row.cells for row in rows)], gap)
    return "LABS", "\n".join(lines), tuple(row.fact for row in rows)


def sentence(rng: random.Random) -> Made:
    """Return one result in a sentence or in a short list."""
    name, unit, bounds, digits, usual = rng.choice(ANALYTES)
    value, earlier = (result(rng, bounds, digits) for _ in "12")
    reference = bounds_text(rng, usual)
    text = rng.choice(
        [
            f"{name}: {value} {unit}",
            f"{name} {value} {unit} (ref {reference})",
            f"{name} = {value} {unit}",
            f"{name} was {value} {unit} today.",
            f"{name} today is {value} {unit}, previously {earlier} {unit}.",
            f"{name} went from {earlier} to {value} {unit}.",
            f"{name} {value} {unit}, up from {earlier}.",
        ]
    )
    return "LABS", text, (fact_of(name, value=value, unit=unit),)


def _columns(rng: random.Random) -> list[str]:
    """Name first, then value and other columns in any order."""
    columns = ["value", *rng.sample(["unit", "range", "flag"], k=rng.randint(1, 3))]
    columns += [extra for extra in ("specimen", "comment") if rng.random() < 0.15]
    if rng.random() < 0.3:
        columns += ["previous", *(["previous_date"] if rng.random() < 0.5 else [])]
    if rng.random() < 0.5:
        rng.shuffle(columns)
    return ["name", *columns]


def _row(rng: random.Random, analyte: Analyte, columns: list[str]) -> LabRow:
    name, unit, bounds, digits, usual = analyte
    value = result(rng, bounds, digits)
    cells = {
        "name": name,
        "value": value,
        "flag": rng.choice(FLAGS) if rng.random() < 0.5 else "",
        "unit": unit if rng.random() < 0.9 else "",
        "range": bounds_text(rng, usual) if rng.random() < 0.9 else "",
        "previous": result(rng, bounds, digits, has_comparator=False),
        "previous_date": f"{rng.randint(1, 12):02d}/{rng.randint(13, 28)}/2024",
        "specimen": rng.choice(SPECIMENS),
        "comment": rng.choice(COMMENTS) if rng.random() < 0.5 else "",
    }
    stated: dict[str, Said] = {FIELDS[c]: cells[c] if c in columns else "" for c in FIELDS}
    fact = Expected(category="lab", name=name.lower(), fields=stated)
    if rng.random() < 0.05:
        cells["value"] += rng.choice(FOOTNOTES)
    return LabRow(cells={column: cells[column] for column in columns}, fact=fact)


def result(
    rng: random.Random,
    bounds: tuple[float, float],
    digits: int,
    *,
    has_comparator: bool | None = None,
) -> str:
    """Return a number as a laboratory prints it, sometimes with a comparator."""
    number = rng.uniform(*bounds)
    text = f"{number:,.{digits}f}" if rng.random() < 0.3 else f"{number:.{digits}f}"
    if has_comparator is None and rng.random() < 0.12:
        text = rng.choice(COMPARATORS) + text
    return text


def bounds_text(rng: random.Random, usual: str) -> str:
    """Return a reference range in one of the usual styles."""
    if "-" not in usual:
        return rng.choice([usual, f"{usual[0]} {usual[1:]}"])
    low, high = usual.split("-")
    shapes = ["{}-{}", "{} - {}", "({}-{})", "[{}-{}]", "{} to {}", "{}\N{EN DASH}{}"]
    return rng.choice(shapes).format(low, high)


def grid(rows: list[dict[str, str]], gap: str) -> list[str]:
    """Join the cells of each row; spaces align the columns, a TAB or a bar separates the cells."""
    width = dict.fromkeys(rows[0], 0)
    if gap.isspace() and gap != "\t":
        width = {c: max(NARROW, *(len(row[c]) + 1 for row in rows)) for c in rows[0]}
    return [gap.join(cell.ljust(width[c]) for c, cell in row.items()).rstrip() for row in rows]


def fact_of(name: str, *, kind: FactKind = FactKind.CURRENT, **fields: Said) -> Expected:
    """Return the fact of one result."""
    return Expected(category="lab", name=name.lower(), fields=fields, kind=kind)
