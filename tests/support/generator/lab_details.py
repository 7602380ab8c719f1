"""Generated laboratory rows with unusual names, flags, units, ranges, footnotes and series."""

from __future__ import annotations

import random
import re

from tests.support.generator.cases import Expected, FactKind, Made, Said
from tests.support.generator.labs import ANALYTES, bounds_text, fact_of, result

HEAD = ("TEST", "RESULT", "UNITS", "REFERENCE")
GAPS = ("\t", "\t", "    ")
UNITS = (
    ("WBC", "6.2", ("10*9/L", "x10^9/L", "K/uL", "/nL", "G/L", "10³/µL", "10^3/mm3", "thou/uL")),
    ("RBC", "4.41", ("10*12/L", "x10^12/L", "M/uL", "10⁶/µL", "/pL", "T/L")),
    ("eGFR", "58", ("mL/min/1.73m2", "mL/min/1.73 m2", "mL/min/1.73 m²", "mL/min")),
    ("Hemoglobin A1c", "6.8", ("%", "% of total Hgb")),
    ("Hemoglobin A1c", "51", ("mmol/mol",)),
    ("ESR", "44", ("mm/hr", "mm/h", "mm/1st hr")),
    ("Osmolality", "291", ("mOsm/kg", "mosmol/kg")),
    ("MCV", "88.4", ("fL", "fl")),
    ("MCH", "29.1", ("pg",)),
    ("PTT", "41", ("sec", "seconds", "s", "sec.")),
    ("Fibrinogen", "412", ("mg/dL", "mg/dl")),
    ("HIV-1 RNA", "212", ("copies/mL", "cp/mL")),
    ("CD4", "388", ("cells/uL", "cells/µL", "/mm3")),
    ("Urine albumin/creatinine ratio", "33", ("mg/g", "mg/g creat", "mg/mmol")),
    ("AST", "0.61", ("µkat/L", "ukat/L")),
    ("Lactate", "2.4", ("mmol/L", "mmol/l", "mEq/L")),
    ("Troponin I", "0.04", ("ng/mL", "µg/L", "ug/L")),
    ("Anti-TPO", "18", ("IU/mL", "kIU/L", "U/mL")),
    ("Urine WBC", "12", ("/HPF", "/hpf", "per HPF")),
    ("PSA", "3.1", ("ng/mL", "µg/L", "ng/ml")),
)
RANGES = (
    "{l}-{h}", "{l} - {h}", "({l}-{h})", "[{l} - {h}]", "{l} to {h}", "{l} – {h}", "{l}–{h}",
    "<{h}", "< {h}", "<={h}", "≤{h}", ">{l}", "> {l}", ">={l}", "≥{l}", "≥ {l}",
    "up to {h}", "Up to {h}", "less than {h}",
)  # fmt: skip
DIGIT_NAMES = (
    ("Vitamin B12", "vitamin b-?12|cobalamin", "412", "pg/mL"),
    ("CA 19-9", "ca 19-9", "31", "U/mL"),
    ("CA-125", "ca[- ]125", "18", "U/mL"),
    ("T3, Free", "t3", "2.9", "pg/mL"),
    ("Free T4", "t4", "1.12", "ng/dL"),
    ("25-OH Vitamin D", "25-oh vitamin d|vitamin d", "22", "ng/mL"),
    ("Complement C3", "c3", "101", "mg/dL"),
    ("Hemoglobin A1c", "a1c", "7.1", "%"),
    ("17-OH Progesterone", "17-oh progesterone|progesterone", "84", "ng/dL"),
    ("Beta-2 Microglobulin", "microglobulin", "2.4", "mg/L"),
    ("Factor VIII Activity", "factor viii", "61", "%"),
    ("CD4 Count", "cd4", "388", "cells/uL"),
    ("IGF-1", "igf-1", "133", "ng/mL"),
    ("HCG, Quant", "hcg", "1840", "mIU/mL"),
    ("Lipoprotein (a)", "lipoprotein", "46", "nmol/L"),
    ("Interleukin-6", "interleukin-6|il-6", "5.9", "pg/mL"),
)
CELLS = ("Neutrophils", "Lymphocytes", "Monocytes", "Eosinophils", "Basophils")
FLAGGED = (
    ("{v} H", "H"), ("{v}\tH", "H"), ("H {v}", "H"), ("{v}H", "H"), ("{v} (H)", "H"),
    ("{v} HH", "HH"), ("{v} L", "L"), ("L {v}", "L"), ("{v} ↑", "↑"), ("{v} ↓", "↓"),
    ("{v} High", "High"), ("{v} Low", "Low"), ("{v} (HIGH)", "HIGH"), ("{v} H*", "H"),
    ("{v} CRIT", "CRIT"), ("{v} Critical", "Critical"), ("{v} Abnormal", "Abnormal"),
    ("{v} A", "A"), ("{v} [L]", "L"), ("{v} LL", "LL"), ("{v} !", ("!", "")),
)  # fmt: skip
MARKS = ("¹", " ¹", " ²", " *", "*", " (1)", " [1]", " [a]", "^1", " †", " ¹²", " ᵃ")
NOTES = (
    "Specimen slightly hemolyzed.",
    "Performed at the reference laboratory.",
    "Reference range changed in 2024.",
    "Result called at 09:15.",
)


def units(rng: random.Random) -> Made:
    """Return one to four rows with units of all kinds."""
    rows, facts = [], []
    chosen = {row[0]: row for row in rng.sample(UNITS, k=rng.randint(1, 4))}
    for name, value, of_name in chosen.values():
        unit = rng.choice(of_name)
        rows.append((name, value, unit))
        # `Urine WBC` contains `WBC`.
        fields: dict[str, Said] = {"value": value, "unit": unit}
        facts.append(Expected(category="lab", name=f"^{re.escape(name.lower())}", fields=fields))
    gap = rng.choice([*GAPS, " ", ": "])
    lines = [gap.join([name, f"{value} {unit}" if gap == ": " else f"{value}{gap}{unit}"])
             for name, value, unit in rows]  # fmt: skip
    head = [gap.join(HEAD[:3])] if gap not in (" ", ": ") and rng.random() < 0.6 else []
    return "LABS", "\n".join([*head, *lines]), tuple(facts)


def unit_rows(rng: random.Random) -> Made:
    """Return one to four whole rows with units, flags and ranges of all kinds."""
    rows, facts = [], []
    gap = rng.choice(["\t", " ", "   "])
    chosen = {row[0]: row for row in rng.sample(UNITS, k=rng.randint(1, 4))}
    for name, value, of_name in chosen.values():
        unit, flag = rng.choice(of_name), rng.choice(["", "", "H", "L", "HH"])
        low, high = (f"{float(value) * part:.1f}" for part in (0.6, 1.4))
        reference = rng.choice(["{l}-{h}", "{l} - {h}", "<{h}", "({l}-{h})"]).format(l=low, h=high)
        cells = [name, value, flag, unit, reference]
        rows.append(gap.join(cells if gap == "\t" else filter(None, cells)))
        fields: dict[str, Said] = {"value": value, "unit": unit, "reference_range": reference}
        pattern = f"^{re.escape(name.lower())}"
        facts.append(Expected(category="lab", name=pattern, fields=fields))
    head = gap.join(["TEST", "RESULT", "FLAG", "UNITS", "REFERENCE"])
    return "LABS", "\n".join([head, *rows]), tuple(facts)


def ranges(rng: random.Random) -> Made:
    """Return one to four rows with ranges of all styles."""
    rows, facts = [], []
    for name, unit, bounds, digits, _ in rng.sample(ANALYTES, k=rng.randint(1, 4)):
        value = result(rng, bounds, digits)
        low, high = (f"{sum(bounds) / 2 * part:.{digits}f}" for part in (0.5, 1.3))
        reference = rng.choice(RANGES).format(l=low, h=high)
        rows.append((name, value, unit, reference))
        facts.append(fact_of(name, value=value, unit=unit, reference_range=reference))
    gap = rng.choice(GAPS)
    return "LABS", "\n".join(map(gap.join, [HEAD, *rows])), tuple(facts)


def names_with_digits(rng: random.Random) -> Made:
    """Return one to four rows whose names contain digits, commas or brackets."""
    rows, facts = [], []
    for name, pattern, value, unit in rng.sample(DIGIT_NAMES, k=rng.randint(1, 4)):
        rows.append((name, value, unit))
        stated = {"value": value, "unit": unit}
        facts.append(Expected(category="lab", name=pattern, fields=stated))
    gap = rng.choice([*GAPS, ": "])
    lines = [f"{n}{gap}{v}{' ' if gap == ': ' else gap}{u}" for n, v, u in rows]
    return "LABS", "\n".join(lines), tuple(facts)


def flags(rng: random.Random) -> Made:
    """Return one to four rows with a flag before or after the value, or joined to the value."""
    rows, facts = [], []
    for name, unit, bounds, digits, usual in rng.sample(ANALYTES, k=rng.randint(1, 4)):
        value = result(rng, bounds, digits)
        shape, flag = rng.choice(FLAGGED)
        reference = bounds_text(rng, usual)
        rows.append((name, shape.format(v=value), unit, reference))
        facts.append(
            fact_of(name, value=value, unit=unit, reference_range=reference, abnormal_flag=flag)
        )
    gap = rng.choice(GAPS)
    return "LABS", "\n".join(map(gap.join, rows)), tuple(facts)


def footnotes(rng: random.Random) -> Made:
    """Return two to four rows with footnote marks, and the footnotes."""
    rows, facts = [], []
    mark = rng.choice(MARKS)
    for name, unit, bounds, digits, usual in rng.sample(ANALYTES, k=rng.randint(2, 4)):
        value = result(rng, bounds, digits, has_comparator=False)
        reference = bounds_text(rng, usual)
        is_marked = rng.random() < 0.6
        rows.append((name, value + mark if is_marked else value, unit, reference))
        facts.append(fact_of(name, value=value, unit=unit, reference_range=reference))
    gap = rng.choice(GAPS)
    lines = [*map(gap.join, [HEAD, *rows]), "", f"{mark.strip()} {rng.choice(NOTES)}"]
    return "LABS", "\n".join(lines), tuple(facts)


def percent_and_absolute(rng: random.Random) -> Made:
    """Return a differential: each kind of cell as a share and as a count."""
    rows, facts = [], []
    for cell in rng.sample(CELLS, k=rng.randint(1, 3)):
        share, count = f"{rng.uniform(0.2, 80):.1f}", f"{rng.uniform(0.01, 9):.2f}"
        first, second = rng.choice(
            [
                (f"{cell} %", f"{cell} Abs"),
                (f"{cell} (%)", f"{cell} (absolute)"),
                (f"{cell} %", f"{cell} #"),
                (f"{cell}", f"Absolute {cell}"),
            ]
        )
        rows += [(first, share, "%"), (second, count, "K/uL")]
        facts += [fact_of(cell, value=share, unit="%"), fact_of(cell, value=count, unit="K/uL")]
    return "LABS", "\n".join(map(rng.choice(GAPS).join, rows)), tuple(facts)


def series(rng: random.Random) -> Made:
    """Return several results of one test, dated or in order; each of them is a result."""
    name, unit, bounds, digits, _ = rng.choice(ANALYTES)
    values: list[str] = []
    while len(values) < 3:
        value = result(rng, bounds, digits, has_comparator=False)
        if value not in values:
            values.append(value)
    a, b, c = values
    text, shown = rng.choice(
        [
            (f"{name} {a} (1/3), {b} (1/4), {c} (1/5)", values),
            (f"{name}: {a} -> {b} -> {c} {unit}", values),
            (f"{name} {a}, {b}, {c} {unit}", values),
            (f"{name} {a} on 01/03/2025 and {b} on 01/05/2025.", [a, b]),
            (f"{name} {a} {unit} at 06:00, {b} {unit} at 14:00", [a, b]),
        ]
    )
    facts = [fact_of(name, kind=FactKind.ANY_TIME, value=value) for value in shown]
    return "LABS", text, tuple(facts)


def decimal_commas(rng: random.Random) -> Made:
    """Return rows of a laboratory that prints decimal commas."""
    rows, facts = [], []
    decimals = [analyte for analyte in ANALYTES if analyte[3] == 1 and "-" in analyte[4]]
    for name, unit, bounds, digits, usual in rng.sample(decimals, k=rng.randint(2, 4)):
        value = result(rng, bounds, digits, has_comparator=False)
        row = (name, value.replace(".", ","), unit, usual.replace(".", ","))
        rows.append(row)
        facts.append(fact_of(name, value=row[1], unit=unit, reference_range=row[3]))
    gap = rng.choice(GAPS)
    return "LABS", "\n".join(map(gap.join, [HEAD, *rows])), tuple(facts)
