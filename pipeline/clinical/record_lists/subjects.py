"""Which entities are about the same subject: by code first, otherwise by normalised name.

Two drugs, two sides of the body, or two properties of an analyte never share a subject. A code
joins two names only if its display names one disease. `Syncope and collapse` joins nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping

from pipeline.clinical.narrative.synonyms import same_names
from pipeline.clinical.narrative.text import words_of
from pipeline.clinical.record_lists.items import ListedFact

Subject = tuple[str, ...]
"""A key; equal keys are one entry of a list."""

_SEVERAL = re.compile(r"\b(?:and|or|other|others|elsewhere)\b", re.IGNORECASE)
_DEGREE = re.compile(
    r"^(?:very |only )?(?:mild|moderate|slight|minimal) "
    r"(?!cognitive|intermittent|persistent|traumatic)"
)
"""A degree before the name of a condition; `mild cognitive impairment` is a name of its own."""
_SIDE = re.compile(
    r"^(?:left|right|bilateral|l|r|lt|rt)\b\.?[ -]?(?:sided )?|[, -]+(?:left|right)$"
)
"""The side at one end of a name."""
_FORM = re.compile(
    r"\b(?:tablets?|tabs?|capsules?|caps?|oral|solution|suspension|syrup|inhaler|injection)\b"
)
_CONCEPT_SYSTEMS = {
    "condition": ("ICD10CM", "SNOMEDCT"),
    "medication": ("UNII",),
    "allergy": ("UNII", "SNOMEDCT"),
    "lab": ("LOINC",),
}
"""Category → systems in which one code is one subject. An RxNorm code can contain the strength, and
`Allergy status to narcotic agent` of ICD-10-CM contains several substances."""
_MASS = re.compile(r"^[munpkd]?g(?:\{[^}]*\})?/")
_COUNT = re.compile(r"^(?:10[*^]|/|\{[^}]*\}/)")


def subjects(facts: Iterable[ListedFact]) -> dict[ListedFact, Subject]:
    """Return the subject of each fact; all facts have one category.

    A name without a code joins the coded entities of the same name if they have one code.
    """
    known = list(facts)
    coded: dict[Subject, set[Subject]] = defaultdict(set)
    for fact in known:
        if code := _code(fact):
            coded[_name(fact)].add(code)
    found: dict[ListedFact, Subject] = {}
    for fact in known:
        name = _name(fact)
        codes = coded.get(name, set())
        own = _code(fact) or (next(iter(codes)) if len(codes) == 1 else None)
        found[fact] = own or ("name", *name)
    return found


def normalised(text: str) -> str:
    """Return a name without differences of case, width, dashes and space."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\u2010", "-")
    plain = re.sub(r"[\u2011-\u2015]", "-", plain)
    return " ".join(plain.split()).strip(" .,;:")


def drug_name(name: str, ingredient: str | None) -> str:
    """Return the name under which a medication is listed.

    The ingredient is the name if the rest of the printed name is a dosage form, or if the printed
    name is a brand. A salt or a release form in the printed name stays: such drugs differ.
    """
    printed = normalised(_FORM.sub(" ", normalised(name)))
    if not ingredient:
        return printed
    substance = normalised(ingredient)
    return printed if substance in printed else substance


def unit_of(fact: ListedFact) -> str | None:
    """Return the UCUM unit of a result, or else the printed unit."""
    unit = fact.attribute("value", "unit") or fact.facts.unit
    return str(unit) if unit else None


def property_of(fact: ListedFact) -> str:
    """Return the kind of a result: mass, substance, count, fraction, … or the unit itself.

    `Neutrophils 74 %` and `Neutrophils 8.7 K/uL` are two properties of one name.
    """
    unit = unit_of(fact)
    if fact.attribute("value_text") is not None:
        return "text"
    if unit is None:
        return "none"
    if unit == "%":
        return "fraction"
    if _COUNT.match(unit) or unit.endswith("/uL"):
        return "count"
    if "mol" in unit:
        return "substance"
    return "mass" if _MASS.match(unit) else unit.casefold()


def _code(fact: ListedFact) -> Subject | None:
    facts = fact.facts
    if facts.code is None or facts.code.partition("|")[0] not in _CONCEPT_SYSTEMS[facts.category]:
        return None
    if facts.category == "condition":
        several = _SEVERAL.search(facts.code_display or "")
        name = normalised(facts.name) if several else ""
        return ("code", facts.code, name, _side(fact))
    return ("code", facts.code)


def _name(fact: ListedFact) -> Subject:
    facts = fact.facts
    if facts.category == "condition":
        name = _DEGREE.sub("", normalised(facts.name))
        if _side(fact):
            # The attribute has the side: `left breast cancer` and `breast cancer, left`.
            name = _SIDE.sub("", name).strip(" ,")
        site = normalised(fact.attribute("body_site") or "")
        return (_one_name(name), _side(fact), "" if site in name else site)
    if facts.category == "medication":
        return (drug_name(facts.name, fact.attribute("ingredient")),)
    if facts.category == "allergy":
        return (normalised(fact.attribute("substance") or facts.name),)
    return (_one_name(normalised(facts.name)), property_of(fact))


def _one_name(name: str) -> str:
    """Return one name for names of the same meaning: `hgb` and `hemoglobin`."""
    names = same_names(words_of(name))
    return " ".join(min(names)) if len(names) > 1 else name


def _side(fact: ListedFact) -> str:
    return str(fact.attribute("laterality") or "")


def group(found: Mapping[ListedFact, Subject]) -> dict[Subject, list[ListedFact]]:
    """Return the facts of each subject, in the order of the record."""
    groups: dict[Subject, list[ListedFact]] = defaultdict(list)
    for fact in sorted(found, key=lambda each: each.position):
        groups[found[fact]].append(fact)
    return groups
