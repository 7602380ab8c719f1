"""Generated vital signs in tables and with context: posture, oxygen, two units, goals."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, FactKind, Made
from tests.support.generator.labs import grid
from tests.support.generator.vitals import SIGNS, Sign

BP, HR, RR, TEMP, SPO2 = SIGNS
TIMES = ("06:00", "08:00", "12:00", "16:00", "22:00")
WEIGHT = r"\bwt\b|weight"
NOT_DRY = r"(?<!dry )(?:\bwt\b|weight)|today"
PLAIN = r"^(body )?(weight|wt)$"
HEIGHT = r"\bht\b|height"


def flowsheet(rng: random.Random) -> Made:
    """Return one row per time and one column per sign, or the other way round."""
    signs = rng.sample(SIGNS, k=rng.randint(2, 4))
    times = sorted(rng.sample(TIMES, k=rng.randint(2, 3)))
    values = {sign.name: _values(rng, sign, len(times)) for sign in signs}
    names = {sign.name: rng.choice(sign.printed) for sign in signs}
    if rng.random() < 0.6:
        head = {"time": "Time", **names}
        rows = [
            {"time": at, **{sign.name: values[sign.name][row] for sign in signs}}
            for row, at in enumerate(times)
        ]
    else:
        head = {"sign": "Vital sign", **{at: at for at in times}}
        rows = [
            {"sign": names[sign.name], **dict(zip(times, values[sign.name], strict=True))}
            for sign in signs
        ]
    facts = [_fact(sign.name, value) for sign in signs for value in values[sign.name]]
    lines = grid([head, *rows], rng.choice(["\t", "\t", "   "]))
    return "VITALS", "\n".join(lines), tuple(facts)


def _values(rng: random.Random, sign: Sign, number: int) -> list[str]:
    values: list[str] = []
    while len(values) < number:
        value = sign.value(rng)
        if value not in values:
            values.append(value)
    return values


def listed(rng: random.Random) -> Made:
    """Return a table with a name, a value and a unit in each row."""
    signs = rng.sample(SIGNS, k=rng.randint(2, 5))
    rows, facts = [], []
    for sign in signs:
        value, unit = sign.value(rng), rng.choice(sign.units).strip()
        rows.append({"name": rng.choice(sign.printed), "value": value, "unit": unit})
        facts.append(_fact(sign.name, value, unit))
    head = [{"name": "Vital sign", "value": "Value", "unit": "Unit"}]
    rows = [*(head if rng.random() < 0.4 else []), *rows]
    return "VITALS", "\n".join(grid(rows, rng.choice(["\t", "\t", "   "]))), tuple(facts)


def context(rng: random.Random) -> Made:
    """Return readings with posture, oxygen, a second unit, or words instead of signs."""
    upper, lower = rng.randint(96, 188), rng.randint(50, 88)
    bp, other = f"{upper}/{lower}", f"{upper - 7}/{lower + 3}"
    low, high = rng.randint(80, 91), rng.randint(92, 100)
    fahrenheit = rng.randint(968, 1040) / 10
    kg = rng.randint(42, 140)
    pounds = f"{kg * 2.2046:.0f}"
    celsius = f"{(fahrenheit - 32) / 1.8:.1f}"
    text, facts = rng.choice(
        [
            (f"BP {upper} over {lower}", [_fact(BP.name, bp)]),
            (f"BP {bp} (sitting), {other} (standing)", [_fact(BP.name, bp), _fact(BP.name, other)]),
            (f"BP: {bp} left arm, {other} right arm", [_fact(BP.name, bp), _fact(BP.name, other)]),
            (f"SpO2 {low}% on room air, {high}% on 2 L NC",
             [_fact(SPO2.name, f"{low}"), _fact(SPO2.name, f"{high}")]),
            (f"SpO2 {high}% on 3 L", [_fact(SPO2.name, f"{high}")]),
            (f"Temp {fahrenheit} F ({celsius} C)", [_fact(TEMP.name, f"{fahrenheit}", "F")]),
            (f"Temp: {celsius} °C oral", [_fact(TEMP.name, celsius, ("°C", "C"))]),
            (f"Weight {kg} kg ({pounds} lb)", [_fact(WEIGHT, f"{kg}", "kg")]),
            (f"Wt: {pounds} lb ({kg} kg)", [_fact(WEIGHT, pounds, "lb")]),
            (f"HR {low} regular, RR 16 unlabored",
             [_fact(HR.name, f"{low}"), _fact(RR.name, "16")]),
            (f"HR {low}-{high}", [_fact(HR.name, f"{low}-{high}")]),
            (f"BP {bp} on 01/05, HR {low}", [_fact(BP.name, bp), _fact(HR.name, f"{low}")]),
            (f"Weight {kg} kg, height 170 cm, BMI 24.1",
             [_fact(WEIGHT, f"{kg}", "kg"), _fact(HEIGHT, "170", "cm"), _fact("bmi", "24.1")]),
            (f"BP today is {bp}.", [_fact(BP.name, bp)]),
            (f"Vitals: T {celsius} P {low} R 18 BP {bp} O2 sat {high}%",
             [_fact(BP.name, bp), _fact(r"\bp\b|pulse|hr|heart", f"{low}"),
              _fact(r"\br\b|rr|resp", "18"), _fact(r"\bt\b|temp", celsius),
              _fact(SPO2.name, f"{high}")]),
        ]
    )  # fmt: skip
    return "VITALS", text, tuple(facts)


def prose(rng: random.Random) -> Made:
    """Return readings in sentences, with the time or the place of each reading."""
    upper, lower, pulse = rng.randint(98, 178), rng.randint(50, 88), rng.randint(52, 118)
    kg = rng.randint(48, 128)
    bp, other = f"{upper}/{lower}", f"{upper - 11}/{lower - 4}"
    text, facts = rng.choice(
        [
            (f"Dry weight {kg} kg, today {kg + 3} kg.", [_fact(NOT_DRY, f"{kg + 3}")]),
            (f"Today she weighs {kg} kg.", [_fact(WEIGHT, f"{kg}")]),
            (f"BP is {bp} with a pulse of {pulse}.",
             [_fact(BP.name, bp), _fact(HR.name, f"{pulse}")]),
            (f"Blood pressure of {bp}, heart rate of {pulse}.",
             [_fact(BP.name, bp), _fact(HR.name, f"{pulse}")]),
            (f"Her pulse was {pulse} and regular.", [_fact(HR.name, f"{pulse}")]),
            (f"He was afebrile at 36.8 C, BP {bp}.", [_fact(BP.name, bp)]),
            (f"BP in the left arm {bp}, in the right arm {other}.",
             [_fact(BP.name, bp), _fact(BP.name, other)]),
            (f"Initial BP {bp}, repeat after 10 minutes {other}.",
             [_fact(BP.name, bp), _fact(BP.name, other)]),
            (f"Saturating 94% on room air, pulse {pulse}.", [_fact(HR.name, f"{pulse}")]),
            (f"Respirations 18, pulse {pulse}, pressure {bp}.", [_fact(HR.name, f"{pulse}")]),
            (f"Weight is {kg} kg; BMI {kg / 3:.1f}.", [_fact(WEIGHT, f"{kg}")]),
            (f"HR {pulse} at rest, {pulse + 30} after walking.",
             [_fact(HR.name, f"{pulse}"), _fact(HR.name, f"{pulse + 30}")]),
        ]
    )  # fmt: skip
    others = ("bmi", "resp", "temp|afebrile", SPO2.name, f"{BP.name}|pressure", "dry")
    return "EXAM", text, (*facts, *map(_free, others))


def not_today(rng: random.Random) -> Made:
    """Return a goal, an earlier value, a change or a threshold, and at times a value of today."""
    upper = rng.randint(100, 180)
    kg = rng.randint(48, 130)
    old, new = f"{upper}/84", f"{upper - 9}/72"
    text, facts = rng.choice(
        [
            (f"BP goal <{old}. BP today {new}.", [_fact(BP.name, new), _absent(BP.name, old)]),
            (f"BP at last visit {old}. BP today {new}.",
             [_fact(BP.name, new), _absent(BP.name, old)]),
            (f"BP {new} (was {old} in May)", [_fact(BP.name, new), _absent(BP.name, old)]),
            (f"BP {new}, goal {old}", [_fact(BP.name, new), _absent(BP.name, old)]),
            (f"Target BP is {old}.", [_absent(BP.name, old)]),
            (f"Hold metoprolol for BP below {old}.", [_absent(BP.name, old)]),
            (f"Call if BP is over {old}.", [_absent(BP.name, old)]),
            (f"Weight down 4 kg to {kg} kg.", [_fact(WEIGHT, f"{kg}"), _absent(WEIGHT, "4")]),
            (f"Weight {kg} kg, down 4 kg.", [_fact(WEIGHT, f"{kg}"), _absent(WEIGHT, "4")]),
            (f"Goal weight {kg} kg.", [_absent(WEIGHT, f"{kg}")]),
            (f"Ideal body weight {kg} kg.", [_absent(PLAIN, f"{kg}"), _free("ideal")]),
            (f"Weight {kg} kg (62nd percentile)", [_fact(WEIGHT, f"{kg}"), _absent(WEIGHT, "62")]),
            (f"Birth weight {kg // 30} kg.", [_absent(PLAIN, f"{kg // 30}"), _free("birth")]),
            (f"Maintain SpO2 above {upper % 7 + 88}%.", [_absent(SPO2.name, f"{upper % 7 + 88}")]),
            (f"Titrate oxygen to SpO2 of {upper % 7 + 88}%.",
             [_absent(SPO2.name, f"{upper % 7 + 88}")]),
            (f"Last recorded weight was {kg} kg in 2022.", [_absent(WEIGHT, f"{kg}")]),
        ]
    )  # fmt: skip
    return "VITALS", text, tuple(facts)


def _fact(name: str, value: str, unit: str | tuple[str, ...] = "") -> Expected:
    fields: dict[str, str | bool | tuple[str, ...]] = {"value": value}
    if unit:
        fields["unit"] = unit
    return Expected(category="vital", name=name, fields=fields)


def _free(name: str) -> Expected:
    return Expected(category="vital", name=name, kind=FactKind.FREE)


def _absent(name: str, value: str) -> Expected:
    return Expected(category="vital", name=name, fields={"value": value}, kind=FactKind.ABSENT)
