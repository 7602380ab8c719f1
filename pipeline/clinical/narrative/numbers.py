"""Compare the numbers that a sentence gives to a name with the numbers of an entity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from pipeline.clinical.narrative.amounts import StatedAmount, number_of
from pipeline.clinical.narrative.items import PartKind, SentencePart
from pipeline.clinical.narrative.known import CitedEntity, NumberRole
from pipeline.clinical.narrative.reasons import UnsupportedReason, reason
from pipeline.clinical.narrative.text import words_of
from pipeline.clinical.narrative.told import ToldStatement

_PAST = {"previous", "prior", "former", "previously", "formerly", "earlier"}
_FROM = _PAST | {"from", "instead", "instead of", "than"}
_RISES = {"increased", "raised", "increase", "increasing", "doubled", "uptitrated", "rose", "up",
          "escalated"}  # fmt: skip
_FALLS = {"decreased", "reduced", "lowered", "decrease", "reduction", "decreasing", "halved",
          "fell", "dropped", "down", "cut"}  # fmt: skip
_DURATIONS = {"day", "week", "month"}
_TWICE = {"doubled": Decimal(2), "halved": Decimal("0.5")}
_FORMS = {"tablet", "tablets", "capsule", "capsules", "strength", "patch", "inhaler", "pill",
          "pills", "solution", "suspension", "tab", "tabs"}  # fmt: skip


def amount_reasons(
    told: ToldStatement, parts: Sequence[tuple[SentencePart, str]], known: CitedEntity
) -> Iterator[str]:
    """Yield why the entity does not have the numbers, each in its meaning and unit."""
    roles: list[NumberRole] = []
    for item, context in parts:
        if item.kind is not PartKind.AMOUNT or item.amount is None:
            continue
        found = _role(item.amount, context, known)
        if isinstance(found, NumberRole):
            roles.append(found)
        else:
            yield found
    if known.facts.category != "medication":
        return
    doses = [amount for role, amount in known.amounts if role is NumberRole.DOSE]
    if NumberRole.STRENGTH in roles and NumberRole.DOSE not in roles and doses:
        # A strength alone would be read as the dose.
        timed = any(item.kind is PartKind.FREQUENCY for item, _ in parts)
        if timed or not any(_FORMS & set(context.split(" ")) for _, context in parts):
            yield reason(
                UnsupportedReason.NUMBER,
                next(i.text for i, _ in parts if i.kind is PartKind.AMOUNT),
            )
    yield from _direction(told, known)


def _role(amount: StatedAmount, context: str, known: CitedEntity) -> NumberRole | str:
    """Return the meaning of a number, or the reason why the entity does not have the number."""
    before, _, after = context.partition(" |")
    words = set(before.split(" "))
    wanted = _wanted(amount, words, after, known)
    equal = [(role, each) for role, each in known.amounts if role in wanted and amount.equals(each)]
    if not equal:
        return reason(UnsupportedReason.NUMBER, amount.printed)
    if not amount.unit and after.strip() == "in" and known.facts.category == "vital":
        # "165 in" may be 165 inches.
        return reason(UnsupportedReason.UNIT, amount.printed)
    if _counts_another_sign(amount, known):
        return reason(UnsupportedReason.UNIT, amount.printed)
    for role, each in equal:
        if amount.unit == each.unit or (not amount.unit and role not in _NEEDS_UNIT):
            return role
        if not each.unit and not amount.unit:
            return role
    return reason(UnsupportedReason.UNIT, amount.printed)


def _counts_another_sign(amount: StatedAmount, known: CitedEntity) -> bool:
    """Return whether beats are counted as breaths, or the reverse; both print as `/min`."""
    return any(
        word in amount.printed and known.names & {words_of(name) for name in names}
        for word, names in (("breath", _OF_BEATS), ("beat", _OF_BREATHS))
    )


_OF_BEATS = ("heart rate", "pulse")
_OF_BREATHS = ("respiratory rate",)
_NEEDS_UNIT = {
    NumberRole.DOSE,
    NumberRole.STRENGTH,
    NumberRole.PREVIOUS,
    NumberRole.DAILY,
    NumberRole.CONVERTED,
}


def _wanted(
    amount: StatedAmount, words: set[str], after: str, known: CitedEntity
) -> set[NumberRole]:
    if known.facts.category in ("lab", "vital"):
        return {NumberRole.RANGE} if "range" in words else {NumberRole.VALUE, NumberRole.CONVERTED}
    if known.facts.category == "immunization":
        # "Dose 2" and "the second dose" are not "2 doses".
        is_named = "dose" in words or bool(amount.join)
        return {NumberRole.ORDINAL} if is_named else set()
    if amount.unit in _DURATIONS and known.facts.category == "medication":
        return {NumberRole.DURATION}
    if "by" in words and known.status == "changed":
        return set()
    if words & _FROM and known.status == "changed":
        return {NumberRole.PREVIOUS}
    if words & _PAST and known.status == "active":
        return {NumberRole.PREVIOUS}
    if "total" in words or after.strip() == "total":
        return {NumberRole.DAILY}
    return {NumberRole.DOSE, NumberRole.STRENGTH, NumberRole.TIMING}


def _direction(told: ToldStatement, known: CitedEntity) -> Iterator[str]:
    """Yield the word of a change whose direction contradicts the two doses."""
    doses = {
        role: amount
        for role, amount in known.amounts
        if role in (NumberRole.DOSE, NumberRole.PREVIOUS)
    }
    old, new = doses.get(NumberRole.PREVIOUS), doses.get(NumberRole.DOSE)
    for cue in told.kinds("changed"):
        words = set(cue.words)
        if not words & (_RISES | _FALLS):
            continue
        before = number_of(old.first) if old is not None else None
        now = number_of(new.first) if new is not None else None
        if before is None or now is None or old is None or new is None or old.unit != new.unit:
            if not known.has(tuple(words & (_RISES | _FALLS))):
                yield reason(UnsupportedReason.STATUS, cue.text)
            continue
        wrong_factor = any(now != before * by for word, by in _TWICE.items() if word in words)
        wrong_way = (words & _RISES and now <= before) or (words & _FALLS and now >= before)
        if wrong_factor or wrong_way:
            yield reason(UnsupportedReason.STATUS, cue.text)
