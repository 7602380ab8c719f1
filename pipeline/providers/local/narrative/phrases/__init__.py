"""The words for one entity inside a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.narrative import english


@dataclass(frozen=True, kw_only=True)
class FactPhrase:
    """The words for one fact, and the entities that state the fact."""

    text: str
    keys: tuple[str, ...]
    is_name: bool = False
    """Whether the words are only the name."""


def merged(facts: Sequence[EntityFacts], phrase: Callable[[EntityFacts], str]) -> list[FactPhrase]:
    """Return one phrase per fact: entities with the same words are told once.

    A bare name is left out if the same name is told with more words: "metformin" beside
    "metformin 500 mg twice daily".
    """
    keys: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    names: set[str] = set()
    detailed: set[str] = set()
    for each in facts:
        text = phrase(each)
        keys.setdefault(text.casefold(), []).append(each.key)
        texts.setdefault(text.casefold(), text)
        name = english.inside(each.name).casefold()
        names.add(name)
        if text.casefold() != name:
            detailed.add(name)
    return [
        FactPhrase(text=texts[word], keys=tuple(found), is_name=word in names)
        for word, found in keys.items()
        if word not in detailed
    ]


def named(each: EntityFacts) -> str:
    """Return the name, with severity and side of a condition and the reaction of an allergy."""
    name = english.inside(each.name)
    if each.category in ("condition", "symptom"):
        known = name.casefold().split(" ")
        details = (each.attributes.get(key) for key in ("severity", "laterality"))
        return " ".join([*(str(word) for word in details if word and word not in known), name])
    reaction = each.attributes.get("reaction") or each.reaction
    if each.category == "allergy" and reaction:
        return f"{name} ({english.inside(str(reaction))})"
    return name


def immunization(each: EntityFacts) -> str:
    """Return the name of an act, with its own date."""
    printed = each.attributes.get("occurrence") or each.attributes.get("performed")
    when = each.entity_date
    if printed and len(str(printed)) == 10:
        when = date.fromisoformat(str(printed))
    name = english.inside(each.name)
    return f"{name} on {english.day(when)}" if when else name
