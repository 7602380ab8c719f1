"""The structured attributes of a medication.

A part that is not understood keeps its printed text and gets a flag. Nothing is guessed: an
abbreviation with two meanings is not understood.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pipeline.clinical.attributes import MedicationAttributes, Quantity, Timing
from pipeline.clinical.dates import partial_date
from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged
from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.clinical.medications.amounts import ReadDose, dose_of, strength_of
from pipeline.clinical.medications.daily_dose import daily_dose
from pipeline.clinical.medications.dose_units import UnitKind, kind_of_code
from pipeline.clinical.medications.sig import BARE_COUNT
from pipeline.clinical.medications.sig_forms import route_word
from pipeline.clinical.medications.status import status_of
from pipeline.clinical.medications.timing import DOSE_COUNT, ReadTiming, timing_of
from pipeline.clinical.structured import Printed, Structured

_INGREDIENTS = "UNII"
_TWO_MEANINGS = frozenset({"ms"})
"""Morphine sulfate or magnesium sulfate."""
_COMBINATION = re.compile(r"[a-z]{4,}[ ]?(?:/|-|\+|,|&|[ ]and[ ]|[ ]with[ ])[ ]?[a-z]{4,}", re.I)
_NO_INGREDIENT = re.compile(
    r"-(?:release|coated|acting|free|dose|strength)|(?:alpha|beta|omega|depo|solu|co|pro)-", re.I
)
_PLACE = re.compile(r"\b(?:eyes?|ears?|nostrils?|nares?|each|both|O[DSU]|A[DSU])\b", re.I)
_EXCEPTION = re.compile(r"\b(?:except|excluding|skip(?:ping)?)\b", re.I)
"""A day without the dose: the frequency is not the whole timing."""
_NO_INDICATION = re.compile(
    r"(?:for[ ])?(?:(?:the[ ])?(?:next|first|last|another)?[ ]?\d.*|now|a[ ]total[ ]of.*"
    r"|as[ ](?:directed|needed)|(?:an?|one|two|three|four|five|six|seven|ten|several|few|the)?[ ]?"
    r"(?:few[ ])?(?:more[ ])?(?:days?|weeks?|months?|years?|doses?)(?:[ ].*)?)",
    re.I,
)
_EYES = frozenset({"ophthalmic", "both eyes", "left eye", "right eye", "intravitreal"})


def medication_attributes(printed: Printed) -> Structured:
    """Return the attributes of a medication. Nothing raises, whatever the texts say."""
    facts = printed.facts
    flags = list[str]()
    route = route_word(printed.route) if printed.route else None
    is_combination = _is_combination(printed)
    sign = printed.decimal_sign
    plain_dose = dose_of(printed.dose, decimal_sign=sign) if printed.dose else None
    timing = _timing(printed.frequency, plain_dose, route)
    if timing is not None:
        timing = _with_count(timing, facts.quote)
    if timing is not None and _EXCEPTION.search(facts.quote):
        timing = ReadTiming(timing=Timing(printed=timing.timing.printed), is_understood=False)
    if timing is not None and not timing.is_understood:
        flags.append(flagged(EnrichmentFlag.TIMING_NOT_UNDERSTOOD, "timing"))
    dose = (
        dose_of(
            printed.dose,
            is_combination=is_combination,
            is_as_needed=timing is not None and timing.timing.as_needed,
            decimal_sign=sign,
        )
        if printed.dose
        else None
    )
    if dose is not None and (not dose.is_understood or _has_two_counts(dose, timing)):
        flags.append(flagged(EnrichmentFlag.DOSE_NOT_UNDERSTOOD, "dose"))
    strength, is_strength_read = _strength(printed, dose, is_combination)
    if not is_strength_read:
        flags.append(flagged(EnrichmentFlag.DOSE_NOT_UNDERSTOOD, "strength"))
    old = facts.previous_dose
    previous = dose_of(old, decimal_sign=sign) if old else None
    if previous is not None and not previous.is_understood:
        flags.append(flagged(EnrichmentFlag.DOSE_NOT_UNDERSTOOD, "previous_dose"))
    start, stop = _dates(printed, flags)
    status, status_flags = status_of(printed, stop)
    flags.extend(status_flags)
    taken = dose.quantity if dose else None
    when = timing.timing if timing else None
    return Structured(
        attributes=MedicationAttributes(
            ingredient=_ingredient(printed),
            strength=strength,
            dose=taken,
            daily_dose=(
                None
                if _is_doubted(facts)
                else _daily(taken, when, strength, _place_of(printed, route), flags)
            ),
            previous_dose=previous.quantity if previous else None,
            route=route,
            printed_route=_one_line(printed.route),
            timing=when,
            start=start,
            stop=stop,
            status=status,
            indication=_indication(printed.indication),
            step=facts.step,
        ),
        flags=tuple(dict.fromkeys(flags)),
    )


def _place_of(printed: Printed, route: str | None) -> str | None:
    """Return the route; a route that names an eye, an ear or a nostril is a route to a place."""
    return "nasal" if _PLACE.search(f"{printed.route or ''} {printed.dose or ''}") else route


def _one_line(text: str | None) -> str | None:
    return " ".join(text.split()) or None if text else None


def _indication(text: str | None) -> str | None:
    """Return the reason of a medication; None for a length of time, as in `for 7 days`."""
    words = _one_line(text)
    return None if words is None or _NO_INDICATION.fullmatch(words) else words


def _with_count(timing: ReadTiming, quote: str) -> ReadTiming:
    """Add the total number of doses that only the quote prints (`q12h x 3 doses`)."""
    counts = {m["n"] for m in DOSE_COUNT.finditer(quote) if m["n"].isdigit()}
    if timing.timing.period_unit in ("min", "h"):
        counts |= {m.group().lstrip("xX× ") for m in BARE_COUNT.finditer(quote)}
    if not timing.is_understood or timing.timing.count is not None or len(counts) != 1:
        return timing
    known = timing.timing.model_copy(update={"count": int(counts.pop())})
    return replace(timing, timing=known)


def _timing(text: str | None, dose: ReadDose | None, route: str | None) -> ReadTiming | None:
    if not text or not text.strip():
        return None
    is_piece = dose is not None and kind_of_code(dose.quantity.unit) is UnitKind.PIECE
    return timing_of(text, is_once_daily=is_piece or (route is not None and route not in _EYES))


def _has_two_counts(dose: ReadDose, timing: ReadTiming | None) -> bool:
    """Return whether `1-0-1` counts pieces and the dose counts pieces too."""
    if timing is None or not timing.has_slots:
        return False
    kind = kind_of_code(dose.quantity.unit)
    return kind is not UnitKind.MASS and dose.quantity.number != 1


def _strength(
    printed: Printed, dose: ReadDose | None, is_combination: bool
) -> tuple[tuple[Quantity, ...], bool]:
    """Return the strength, and whether the printed strength was understood."""
    text = (printed.strength or "").strip()
    sign = printed.decimal_sign
    found = strength_of(text, is_combination=is_combination, decimal_sign=sign) if text else ()
    if found is None:
        return (), False
    return found or (dose.strength if dose else ()), True


def _is_doubted(facts: EntityFacts) -> bool:
    """Return whether Pass 1 doubts a part of the daily dose (`decimal_sign_contradicts:dose`)."""
    doubted = {flag.partition(":")[2] for flag in facts.review_flags}
    return bool(doubted & {"dose", "strength", "frequency"})


def _daily(
    dose: Quantity | None,
    timing: Timing | None,
    strength: tuple[Quantity, ...],
    route: str | None,
    flags: list[str],
) -> Quantity | None:
    """Return the daily dose; a part that is not understood leaves no daily dose."""
    parts = {flagged(EnrichmentFlag.DOSE_NOT_UNDERSTOOD, name) for name in ("dose", "strength")}
    if dose is None or timing is None or parts & set(flags):
        return None
    return daily_dose(dose, timing, strength, route=route)


def _is_combination(printed: Printed) -> bool:
    names = (printed.facts.name, printed.ingredient or "")
    return any(_COMBINATION.search(_NO_INGREDIENT.sub("", name)) for name in names)


def _dates(printed: Printed, flags: list[str]) -> tuple[str | None, str | None]:
    day = printed.facts.encounter_date
    found: dict[str, str | None] = {"start": None, "stop": None}
    for name, text in (("start", printed.start), ("stop", printed.stop)):
        if text and text.strip():
            found[name], doubts = partial_date(
                text, encounter_date=day, order=printed.order, attribute=name
            )
            flags.extend(doubts)
    start, stop = found["start"], found["stop"]
    if start and stop:
        size = min(len(start), len(stop))
        if start[:size] > stop[:size]:
            flags.append(flagged(EnrichmentFlag.DATE_NOT_UNDERSTOOD, "stop"))
    return start, stop


def _ingredient(printed: Printed) -> str | None:
    """Return the active substance: of the chosen code, or as the page names the substance."""
    facts = printed.facts
    if facts.name.strip(" .").casefold() in _TWO_MEANINGS:
        return None
    substances = [each for each in facts.candidates if each.system == _INGREDIENTS]
    chosen = next((each for each in substances if each.token == facts.code), None)
    if chosen is not None:
        return chosen.display.lower() if chosen.display.isupper() else chosen.display
    if printed.ingredient and not _is_other_name(printed.ingredient, substances, facts):
        return _one_line(printed.ingredient)
    return facts.name if _names(facts.name, substances) else None


def _names(name: str, substances: list[Candidate]) -> bool:
    low = " ".join(name.split()).casefold()
    return any(each.display.casefold() == low for each in substances)


def _is_other_name(ingredient: str, substances: list[Candidate], facts: EntityFacts) -> bool:
    """Return whether the name is a brand: the shortlist has substances, and none has the name."""
    is_own_name = " ".join(ingredient.split()).casefold() == facts.name.casefold()
    return is_own_name and bool(substances) and not _names(ingredient, substances)
