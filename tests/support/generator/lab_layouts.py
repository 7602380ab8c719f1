"""Generated laboratory tables of unusual layout: columns in any order, dated columns, gaps."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, FactKind, Made, Said
from tests.support.generator.labs import (
    ANALYTES,
    FIELDS,
    FLAGS,
    HEADINGS,
    SPECIMENS,
    bounds_text,
    fact_of,
    grid,
    result,
)

GAPS = ("\t", "\t", "   ")
MORE_HEADINGS = {
    "code": ("CODE", "Order Code"),
    "specimen": ("SPECIMEN", "Specimen"),
    "method": ("METHOD", "Method"),
    "collected": ("COLLECTED", "Date Collected"),
    "comment": ("COMMENT", "Notes"),
}
METHODS = ("ISE", "Enzymatic", "HPLC", "Calculated", "Immunoassay")
NO_RESULT = (
    "",
    "pending",
    "-",
    "--",
    "See note",
    "QNS",
    "Not performed",
    "Cancelled",
    "TNP",
    "N/A",
)
REMARKS = (
    "Repeat in 2 weeks.",
    "Specimen hemolyzed.",
    "Result verified by repeat 05/01/2025.",
    "Fasting for 12 hours.",
    "Called to RN at 14:20.",
    "Values above 10 need a second sample.",
)


def columns(rng: random.Random) -> Made:
    """Return a table with three to nine columns in any order, with empty cells."""
    extra = ["unit", "range", "flag", "code", "specimen", "method", "collected"]
    chosen = ["name", "value", *rng.sample(extra, k=rng.randint(1, len(extra)))]
    rng.shuffle(chosen)
    if rng.random() < 0.7:
        chosen.remove("name")
        chosen.insert(0, "name")
    rows, facts = [], []
    for name, unit, bounds, digits, usual in rng.sample(ANALYTES, k=rng.randint(1, 4)):
        cells = {
            "name": name,
            "value": result(rng, bounds, digits),
            "unit": unit if rng.random() < 0.85 else "",
            "range": bounds_text(rng, usual) if rng.random() < 0.85 else "",
            "flag": rng.choice(FLAGS) if rng.random() < 0.5 else "",
            "code": f"{rng.randint(100, 9999)}",
            "specimen": rng.choice(SPECIMENS),
            "method": rng.choice(METHODS) if rng.random() < 0.6 else "",
            "collected": "01/05/2025",
        }
        rows.append({column: cells[column] for column in chosen})
        stated: dict[str, Said] = {f: cells[c] if c in chosen else "" for c, f in FIELDS.items()}
        facts.append(Expected(category="lab", name=name.lower(), fields=stated))
    head = {c: rng.choice((HEADINGS | MORE_HEADINGS)[c]) for c in chosen}
    return "LABS", "\n".join(grid([head, *rows], rng.choice(GAPS))), tuple(facts)


def dated(rng: random.Random) -> Made:
    """Return a table with one column per date: each value has the date of its column."""
    dates = ["01/05/2025", "11/20/2024", "06/02/2024", "02/14/2023"][: rng.randint(2, 4)]
    if rng.random() < 0.3:
        dates.reverse()
    facts: list[Expected] = []
    rows = []
    for name, unit, bounds, digits, usual in rng.sample(ANALYTES, k=rng.randint(1, 4)):
        values: list[str] = []
        while len(values) < len(dates):
            value = result(rng, bounds, digits, has_comparator=False)
            if value not in values:
                values.append(value)
        cells = {"name": name, **dict(zip(dates, values, strict=True))}
        cells |= {"unit": unit, "range": bounds_text(rng, usual)}
        rows.append(cells)
        for at, value in zip(dates, values, strict=True):
            facts += _of_date(name, at, value, unit)
    head = {"name": rng.choice(HEADINGS["name"]), **{d: d for d in dates}}
    head |= {"unit": rng.choice(HEADINGS["unit"]), "range": rng.choice(HEADINGS["range"])}
    return "LABS", "\n".join(grid([head, *rows], rng.choice(GAPS))), tuple(facts)


def _of_date(name: str, at: str, value: str, unit: str) -> list[Expected]:
    if at == "01/05/2025":
        return [fact_of(name, value=value, unit=unit)]
    earlier = {"value": value, "entity_date": ""}
    return [Expected(category="lab", name=name.lower(), fields=earlier, kind=FactKind.ABSENT)]


def missing(rng: random.Random) -> Made:
    """Return a table in which a result is absent beside an earlier result or a range."""
    has_previous = rng.random() < 0.5
    rows, facts = [], []
    for name, unit, bounds, digits, usual in rng.sample(ANALYTES, k=rng.randint(2, 4)):
        is_missing = rng.random() < 0.6
        value = rng.choice(NO_RESULT) if is_missing else result(rng, bounds, digits)
        cells = {"name": name, "value": value}
        if has_previous:
            cells["previous"] = result(rng, bounds, digits, has_comparator=False)
        rows.append(cells | {"unit": unit, "range": bounds_text(rng, usual)})
        if is_missing:
            facts.append(_no_value(name, value))
        else:
            facts.append(fact_of(name, value=value, unit=unit))
    head = {c: rng.choice(HEADINGS[c]) for c in rows[0]}
    return "LABS", "\n".join(grid([head, *rows], rng.choice(GAPS))), tuple(facts)


def _no_value(name: str, printed: str) -> Expected:
    """Return the fact that a row has no number; the printed words are a fair value."""
    words: dict[str, Said] = {"value": printed}
    return Expected(category="lab", name=name.lower(), fields=words, kind=FactKind.NO_VALUE)


def remarks(rng: random.Random) -> Made:
    """Return rows with a remark below a row, which is no result."""
    lines, facts = [], []
    gap = rng.choice(GAPS)
    for name, unit, bounds, digits, usual in rng.sample(ANALYTES, k=rng.randint(1, 3)):
        value, reference = result(rng, bounds, digits), bounds_text(rng, usual)
        flag = rng.choice(["", rng.choice(FLAGS)])
        lines.append({"name": name, "value": value, "flag": flag, "unit": unit, "range": reference})
        facts.append(
            fact_of(name, value=value, unit=unit, reference_range=reference, abnormal_flag=flag)
        )
    head = {c: rng.choice(HEADINGS[c]) for c in lines[0]}
    first, *rows = grid([head, *lines], gap)
    at = rng.randint(1, len(rows))
    rows.insert(at, rng.choice(["", "  ", "Comment: "]) + rng.choice(REMARKS))
    return "LABS", "\n".join([first, *rows]), tuple(facts)


def beside(rng: random.Random) -> Made:
    """Return two panels that a page prints side by side."""
    chosen = rng.sample(ANALYTES, k=rng.randint(4, 8))
    half = len(chosen) // 2
    blocks, facts = [], []
    panels = {"CHEMISTRY": chosen[:half], "OTHER TESTS": chosen[half:]}
    for title, panel in panels.items():
        lines = [title]
        for name, unit, bounds, digits, _ in panel:
            value = result(rng, bounds, digits)
            lines.append("\t".join([name, value, unit]))
            facts.append(fact_of(name, value=value, unit=unit))
        blocks.append("\n".join(lines))
    return "LABS", "\v".join(blocks), tuple(facts)
