"""Whether a code names the analyte, the specimen and the kind of unit of a measurement."""

from __future__ import annotations

import re

from pipeline.clinical.facts import Candidate
from pipeline.clinical.lab_conversion import conventional_units
from pipeline.clinical.page_text.spellings import fold
from pipeline.providers.local.enrichment.mention_to_code import MentionToCode
from pipeline.providers.local.labs.analytes import find_analytes
from pipeline.providers.local.text.tokens import normal, tokenize

_DISPLAY = re.compile(
    r"(?P<analyte>[^\[]+?)(?:[ ]*\[(?P<property>[^\]]+)\])?(?:[ ]in[ ](?P<specimen>[^\[]+?))?"
    r"(?:[ ]by[ ](?P<method>.+))?",
    re.I,
)
_BLOOD = re.compile(r"\b(?:serum|plasma|blood)\b", re.I)
_OTHER = re.compile(
    r"\b(?:urine|urinary|ua|urinalysis|csf|cerebrospinal|stool|fecal|sputum|saliva|synovial|pleural"
    r"|peritoneal|ascit\w+|fluid|dialysate|semen|sweat|capillary|venous|arterial|abg|vbg|ionized"
    r"|fasting|fingerstick|poc|point[ ]of[ ]care|24[ -]?h\w*|random|spot|free|direct|indirect)\b",
    re.I,
)
"""Words that name another specimen or another form of the analyte."""
_KINDS = {
    "mass/volume": re.compile(r"(?:k|m|u|n|p)?g/(?:\d*m?d?l|ul)"),
    "moles/volume": re.compile(r"(?:m|u|n|p)?mol/(?:m?d?l)|meq/l"),
    "mass fraction": re.compile(r"%"),
    "mass ratio": re.compile(r"%|(?:m|u)?g/(?:m?g)"),
    "enzymatic activity/volume": re.compile(r"u/l"),
    "volume fraction": re.compile(r"%"),
}
_LOOSE = frozenset({"count", "level", "total", "rate", "test", "the", "of", "in"})
_NO_UNIT = None
_VITALS: dict[str, tuple[str, frozenset[str | None], str]] = {
    "blood pressure panel with all children optional": (
        r"b/?p|nibp|blood pressure", frozenset({"mmhg", "mm hg", "mm[hg]", "kpa", _NO_UNIT}),
        r"\(?\d{2,3} ?(?:/|over) ?\d{2,3}\)?",
    ),
    "heart rate": (
        r"hr|heart rate|pulse|pulse rate",
        frozenset({"bpm", "/min", "beats/min", "beats per minute", "per min", _NO_UNIT}),
        r"\d{2,3}",
    ),
    "respiratory rate": (
        r"rr|resps?|resp(?:iratory)? rate|respirations?",
        frozenset({"/min", "breaths/min", "breaths per minute", "per min", "bpm", _NO_UNIT}),
        r"\d{1,2}",
    ),
    "body temperature": (
        r"t|temp|temperature|body temperature",
        frozenset({"°f", "°c", "f", "c", "degf", "degc", "deg f", "deg c", "ºf", "ºc", _NO_UNIT}),
        r"\d{2,3}(?:[.,]\d{1,2})?",
    ),
    "oxygen saturation in arterial blood": (
        r"sp?[ao]2|spo2|sp?o2|o2 sats?|oxygen saturation|o2 saturation|pulse ox",
        frozenset({"%", _NO_UNIT}),
        r"\d{2,3}(?:[.]\d)?",
    ),
    "body weight": (
        r"wt|weight|body weight",
        frozenset({"lb", "lbs", "kg", "g", "pounds", "kilograms"}),
        r"\d{1,4}(?:[.,]\d{1,3})?",
    ),
    "body height": (
        r"ht|height|body height",
        frozenset({"in", "inches", "cm", "m", "ft"}),
        r"\d{1,3}(?:[.,]\d{1,2})?",
    ),
    "body mass index (bmi) [ratio]": (
        r"bmi|body mass index",
        frozenset({"kg/m2", "kg/m²", "kg/m^2", _NO_UNIT}),
        r"\d{2}(?:[.,]\d{1,2})?",
    ),
}  # fmt: skip
"""Display of the FHIR profile → names, units in lower case, and the form of the value."""
_OTHER_VITAL = re.compile(
    r"\b(?:birth|f[eo]tal|ideal|dry|goal|target|lean|estimated|usual|adjusted|maximum|max|minimum|min"
    r"|baseline|mean|average|venous|svo2|atrial|ventricular|ankle|toe|wedge|pulmonary|predicted"
    r"|pre-?pregnancy|uln|lost|gained|gain|loss|change|orthostatic)\b[ ]*$",
    re.I,
)
"""A word in front of a vital sign that makes the value another observation."""


def fit_vital(candidate: Candidate, mention: MentionToCode) -> int | None:
    """Return 1 if the name, the unit and the form of the value are those of the code.

    A pressure fits only as a pair. The codes of temperature, weight and height hold for any unit of
    their kind.
    """
    facts, evidence = mention.facts, mention.evidence
    known = _VITALS.get(candidate.display.strip().lower())
    if known is None or facts.negated or facts.experiencer in ("family", "other"):
        return None
    name, units, form = known
    value = (facts.value or "").strip()
    unit = facts.unit.strip().rstrip(".").lower() if facts.unit else None
    if not value or _OTHER_VITAL.search(evidence.before):
        return None
    m = re.fullmatch(rf"(?P<amount>{form})(?P<unit>.*)", value, re.I)
    if m is None or not re.fullmatch(name, facts.name.strip(" .:"), re.I):
        return None
    printed = m["unit"].strip().rstrip(".").lower() or None
    if printed is not None and unit is not None and printed != unit:
        return None
    return 1 if (printed or unit) in units else None


def fit(candidate: Candidate, mention: MentionToCode) -> int | None:
    """Return 1 if a code fits in all parts that its display names; None otherwise."""
    facts, evidence = mention.facts, mention.evidence
    m = _DISPLAY.fullmatch(candidate.display.strip())
    if m is None or not _is_same_name(m["analyte"].strip(), facts.name):
        return None
    around = f"{facts.name} {' '.join(evidence.headings)} {evidence.quote} {evidence.row}"
    specimen = (m["specimen"] or "").lower()
    others = {found.group().lower() for found in _OTHER.finditer(around)}
    if others - set(re.findall(r"[a-z]+", candidate.display.lower())):
        return None
    if specimen and not _BLOOD.search(specimen) and not _is_printed(specimen, around):
        return None
    if not _is_unit_of(m["property"], facts.unit):
        return None
    if m["property"] is None and not _is_like_conventional(candidate.code, facts.unit):
        return None
    return 1 if m["method"] is None or _is_printed(m["method"], around) else None


def _is_printed(words: str, around: str) -> bool:
    shown = {normal(word) for word in re.findall(r"[^\W_]+", around)}
    return all(normal(word) in shown for word in re.findall(r"[^\W_]+", words))


def _is_unit_of(property_: str | None, unit: str | None) -> bool:
    """Return whether a unit measures a property; an unknown property or unit proves nothing."""
    if property_ is None:
        return True
    kind = _KINDS.get(property_.lower())
    return kind is None or (unit is not None and kind.fullmatch(fold(unit)) is not None)


def _is_like_conventional(loinc: str, unit: str | None) -> bool:
    """Return whether a unit measures what the conventional unit of a LOINC number measures.

    A display of `labunits` names no property, and LOINC has a number for each property: the number
    of triglycerides in mg/dL is wrong for mmol/L.
    """
    conventional = conventional_units().get(loinc)
    if conventional is None:
        return True
    if unit is None:
        return False
    one, other = fold(conventional), fold(unit)
    return one == other or any(
        kind.fullmatch(one) and kind.fullmatch(other) for kind in _KINDS.values()
    )


def _is_same_name(analyte: str, name: str) -> bool:
    one, other = _core(analyte), _core(name)
    if one == other and one:
        return True
    first, second = _analyte(analyte), _analyte(name)
    return first is not None and first == second


def _core(text: str) -> frozenset[str]:
    return frozenset(normal(word) for word in re.findall(r"[^\W_]+", text)) - _LOOSE


def _analyte(text: str) -> str | None:
    """Return the analyte of the lexicon that a whole text names."""
    tokens = tokenize(text)
    found = list(find_analytes(tokens))
    if len(found) != 1 or not tokens:
        return None
    start, end, analyte = found[0]
    return analyte.name if (start, end) == (tokens[0].start, tokens[-1].end) else None
