"""Generated laboratory rows of mixed form: long names, text with numbers, double rows, prose."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, FactKind, Made
from tests.support.generator.labs import ANALYTES, FLAGS, bounds_text, fact_of, result

HEAD = "TEST RESULT FLAG UNITS REFERENCE"
SPECIMENS = (
    "{n}, Serum", "{n} (serum)", "{n}, Plasma", "{n} (venous)", "{n} [ISE]", "{n}, POC",
    "Serum {n}", "{n} - fasting", "{n} (calculated)", "{n}, random",
)  # fmt: skip
WORDS = (
    ("Urine culture", "culture", "No growth at 48 hours"),
    ("Blood culture", "culture", "No growth after 5 days"),
    ("HIV Ag/Ab", "hiv", "Non-reactive"),
    ("Hepatitis B surface antigen", "hepatitis b", "Reactive"),
    ("Rapid strep", "strep", "Negative"),
    ("COVID-19 PCR", "covid", "Not detected"),
    ("Fecal occult blood", "occult", "Positive"),
    ("Urine color", "color", "Yellow"),
    ("Urine bacteria", "bacteria", "Few"),
    ("Influenza B antigen", "influenza b", "NEGATIVE"),
    ("Lupus anticoagulant", "lupus", "Not present"),
    ("Antibody screen", "antibody", "Neg"),
)
SIGNED = (
    ("Base excess", "base excess", "mmol/L"),
    ("Anion gap change", "anion gap", "mmol/L"),
)
RATIOS = (
    ("BUN/Creatinine Ratio", "ratio", "18", "10-20"),
    ("A/G Ratio", "ratio", "1.4", "1.1-2.5"),
    ("LDL/HDL Ratio", "ratio", "2.9", "<3.5"),
    ("INR", "inr", "2.3", "0.9-1.1"),
    ("Specific Gravity", "gravity", "1.015", "1.005-1.030"),
    ("Urine pH", "ph", "6.0", "5.0-8.0"),
    ("pH, arterial", "ph", "7.31", "7.35-7.45"),
)
COUNTS = (
    ("Urine WBC", "urine wbc", ("0-2", "5-10", "10-20", ">50", "2"), "/HPF"),
    ("Urine RBC", "urine rbc", ("0-2", "3-5", "TNTC", "25"), "/HPF"),
    ("Squamous epithelial cells", "epithelial", ("0-5", "Few", "10-20"), "/HPF"),
)
LARGE = (
    ("HIV-1 RNA", "hiv", ("1,240,000", "<20", "212", "not detected"), "copies/mL"),
    ("HCV RNA", "hcv", ("4,120,000", "<15", "88,400"), "IU/mL"),
    ("Platelets", "platelets", ("150,000", "98,000", "1,012,000"), "/uL"),
    ("hCG, quantitative", "hcg", (">200,000", "12,400", "<5"), "mIU/mL"),
)


def spaces(rng: random.Random) -> Made:
    """Return rows whose cells only one space separates, as a text layer without columns has."""
    lines, facts = [HEAD], []
    for name, unit, bounds, digits, usual in rng.sample(ANALYTES, k=rng.randint(1, 4)):
        value, reference = result(rng, bounds, digits), bounds_text(rng, usual)
        flag = rng.choice(["", "", *FLAGS])
        cells = [name, value, flag, unit, reference]
        lines.append(" ".join(filter(None, cells)))
        facts.append(
            fact_of(name, value=value, unit=unit, reference_range=reference, abnormal_flag=flag)
        )
    return "LABS", "\n".join(lines), tuple(facts)


def specimens(rng: random.Random) -> Made:
    """Return rows whose name contains a specimen, a method or a remark."""
    gap = rng.choice(["\t", "    ", "  "])
    rows, facts = [], []
    for name, unit, bounds, digits, usual in rng.sample(ANALYTES, k=rng.randint(1, 4)):
        value, reference = result(rng, bounds, digits), bounds_text(rng, usual)
        printed = rng.choice(SPECIMENS).format(n=name)
        rows.append(gap.join([printed, value, unit, reference]))
        facts.append(fact_of(name, value=value, unit=unit, reference_range=reference))
    return "LABS", "\n".join(rows), tuple(facts)


def words(rng: random.Random) -> Made:
    """Return results in words, among them words with numbers."""
    gap = rng.choice(["\t", "    ", ": "])
    rows, facts = [], []
    for name, pattern, value in rng.sample(WORDS, k=rng.randint(1, 3)):
        rows.append(f"{name}{gap}{value}")
        facts.append(Expected(category="lab", name=pattern, fields={"value": value}))
    names = {fact.name for fact in facts}
    if len(names) < len(facts):
        return words(rng)
    return "LABS", "\n".join(rows), tuple(facts)


def signed(rng: random.Random) -> Made:
    """Return a negative number, or a ratio of two analytes."""
    gap = rng.choice(["\t", "    "])
    name, pattern, unit = SIGNED[0]
    value = f"{rng.choice(['-', '+', ''])}{rng.uniform(0.5, 12):.1f}"
    rows = [gap.join([name, value, unit])]
    facts = [Expected(category="lab", name=pattern, fields={"value": value, "unit": unit})]
    other, other_pattern, ratio, reference = rng.choice(RATIOS)
    rows.append(
        gap.join([other, ratio, "", reference] if gap == "\t" else [other, ratio, reference])
    )
    fields = {"value": ratio, "reference_range": reference}
    facts.append(Expected(category="lab", name=other_pattern, fields=fields))
    return "LABS", "\n".join(rows), tuple(facts)


def counts(rng: random.Random) -> Made:
    """Return counts: ranges such as `5-10`, thousands, and values below a limit."""
    gap = rng.choice(["\t", "    ", "  "])
    rows, facts = [], []
    for name, pattern, values, unit in rng.sample([*COUNTS, *LARGE], k=rng.randint(1, 3)):
        value = rng.choice(values)
        is_number = any(char.isdigit() for char in value)
        rows.append(gap.join([name, value, unit] if is_number else [name, value]))
        fields = {"value": value, **({"unit": unit} if is_number else {})}
        facts.append(Expected(category="lab", name=pattern, fields=fields))
    return "LABS", "\n".join(rows), tuple(facts)


def double(rng: random.Random) -> Made:
    """Return rows that contain two results each."""
    chosen = rng.sample(ANALYTES, k=4)
    gap = rng.choice(["\t", "     "])
    cells, facts = [], []
    for name, unit, bounds, digits, _ in chosen:
        value = result(rng, bounds, digits, has_comparator=False)
        cells.append(gap.join([name, value, unit]))
        facts.append(fact_of(name, value=value, unit=unit))
    rows = [gap.join(cells[:2]), gap.join(cells[2:])]
    return "LABS", "\n".join(rows), tuple(facts)


def prose(rng: random.Random) -> Made:
    """Return results of today beside earlier results, in words."""
    name, unit, bounds, digits, _ = rng.choice(ANALYTES)
    now, before = "", ""
    while now == before:
        now, before = (result(rng, bounds, digits, has_comparator=False) for _ in "12")
    other, other_unit, other_bounds, other_digits, _ = rng.choice(
        [analyte for analyte in ANALYTES if analyte[0] != name]
    )
    more = result(rng, other_bounds, other_digits, has_comparator=False)
    low = name.lower() if name not in ("WBC", "TSH", "ALT", "CRP") else name
    text, has_more = rng.choice(
        [
            (f"{name} {now} ({before})", False),
            (f"{name} {now} (prev {before})", False),
            (f"{name} {now} (was {before} on 11/02/2024)", False),
            (f"{name} {now}, previously {before}, and {other} {more}.", True),
            (f"Labs today: {name} {now}, {other} {more}.", True),
            (f"Labs: {name} {now} {unit}; {other} {more} {other_unit}", True),
            (f"Today's {low} is {now} {unit}; last month it was {before}.", False),
            (f"{name} rose from {before} to {now} {unit}.", False),
            (f"{name} has fallen to {now} from {before}.", False),
            (f"{name} improved to {now} (from {before}); {other} is {more}.", True),
            (f"{name} of {now} today, {before} in 2022.", False),
            (f"{name} remains {now}. {other} {more}.", True),
            (f"The last {low} was {before} in 2023. Today {now}.", False),
        ]
    )
    facts = [fact_of(name, value=now)]
    # An earlier value may be published with its time, but never as a value of today.
    if before in text:
        facts.append(
            Expected(
                category="lab",
                name=name.lower(),
                fields={"value": before, "entity_date": ""},
                kind=FactKind.ABSENT,
            )
        )
    if has_more:
        facts.append(fact_of(other, value=more))
    return "HISTORY OF PRESENT ILLNESS", text, tuple(facts)


def limits(rng: random.Random) -> Made:
    """Return a goal, a threshold or a condition beside a value of today, or alone."""
    name, unit, bounds, digits, _ = rng.choice(ANALYTES)
    now, limit = "", ""
    while now == limit:
        now, limit = (result(rng, bounds, digits, has_comparator=False) for _ in "12")
    low = name.lower() if name not in ("WBC", "TSH", "ALT", "CRP") else name
    text, is_measured = rng.choice(
        [
            (f"{name} {now}, goal {limit}.", True),
            (f"{name} {now} today; target below {limit} {unit}.", True),
            (f"{name} {now} (goal < {limit})", True),
            (f"Keep {low} above {limit}.", False),
            (f"Maintain {low} > {limit} {unit}.", False),
            (f"Recheck {low}; call if > {limit}.", False),
            (f"If {low} is below {limit}, give one dose.", False),
            (f"Hold for {low} under {limit}.", False),
            (f"Goal {low} of {limit} {unit}.", False),
            (f"We aim for a {low} of {limit}.", False),
            (f"Treat when {low} exceeds {limit}.", False),
            (f"{name} should be at least {limit} before surgery.", False),
            (f"Continue until {low} is less than {limit}.", False),
        ]
    )
    absent = Expected(
        category="lab", name=name.lower(), fields={"value": limit}, kind=FactKind.ABSENT
    )
    facts = (
        (fact_of(name, value=now), absent)
        if is_measured
        else (Expected(category="lab", name=name.lower(), kind=FactKind.ABSENT),)
    )
    return "ASSESSMENT AND PLAN", text, facts
