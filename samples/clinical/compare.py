"""Compares what Passes 1.5 to 3 stored for a sample record with its truth.

The comparison is exact. Only `allowed` values, several accepted codes, and texts under the names in
`_NOT_JUDGED` leave a choice. A difference of an entity that a reviewer has to see anyway is marked.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from samples.clinical import also
from samples.truth import (
    ClinicalTruth,
    EntityTruth,
    ListedTruth,
    ListsTruth,
    NarrativeTruth,
    Record,
)

_NOT_JUDGED = re.compile(r"(?:^|\.)(?:printed|printed_unit|printed_route|printed_onset|body_site)$")
"""Texts of the page beside the structured values: Pass 1's truth judges these."""
_ROUNDED = Decimal("0.005")
"""Largest relative difference of a converted value, which may be rounded to three digits."""
_DAILY_UNIT = re.compile(r"/d$")
"""A daily dose may name its day: `20 mg` and `20 mg/d` are equal."""
_NOT_AFFIRMED = re.compile(
    r"\b(?:no|not|never|without|den(?:y|ies|ied)|negative|absent|excluded?|ruled|rule|possible"
    r"|possibly|suspected|probable|consider(?:ed)?|unconfirmed|differential|if|return|risk|family"
    r"|mother|father|brother|sister|uncle|aunt|history|planned|ordered|stopped|avoid|neither|nor"
    r"|refuted|unlikely|plan)\b",
    re.IGNORECASE,
)
_KINDS = {
    "problem": "problems",
    "medication": "medications",
    "allergy": "allergies",
    "lab_series": "lab_series",
}
Flat = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class StoredEntity:
    """An entity of Pass 1 with its row of Pass 2."""

    id: UUID
    encounter: int
    """0-based, in the order of the pages."""
    category: str
    page: int
    name: str = field(repr=False)
    quote: str = field(repr=False)
    value: str | None = field(default=None, repr=False)
    dose: str | None = field(default=None, repr=False)
    step: int | None = None
    state: str = "present"
    """As in `also.txt`."""
    doubted: bool = False
    """Not accepted, or flagged by Pass 1 or 2."""
    enriched: bool = True
    attributes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    code: str | None = None
    """`SYSTEM|code`."""
    candidates: tuple[str, ...] = ()
    """The shortlist, best first."""


@dataclass(frozen=True, kw_only=True)
class StoredItem:
    """One entry of a list across encounters."""

    kind: str
    entity_ids: tuple[UUID, ...]
    contradicted: tuple[frozenset[UUID], ...] = ()
    """The entities of each contradiction."""


@dataclass(frozen=True, kw_only=True)
class StoredSentence:
    """One sentence of a narrative; `encounter` is None for the record."""

    encounter: int | None
    text: str = field(repr=False)
    supported: bool


@dataclass(frozen=True, kw_only=True)
class StoredResults:
    """Everything that the passes stored for one record."""

    entities: Sequence[StoredEntity]
    items: Sequence[StoredItem] | None = None
    """None if the lists have not been made."""
    sentences: Sequence[StoredSentence] | None = None
    systems: frozenset[str] = frozenset({"ICD10CM", "LOINC"})
    """The loaded code systems."""


@dataclass(frozen=True)
class Difference:
    """One difference between the truth and a stored value."""

    place: str
    what: str
    doubted: bool = False
    """The entity carries a flag or is not accepted, so a reviewer sees the entity."""
    missing: bool = False
    """A value or a code is absent. A missing value is better than a wrong value."""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" + (" (flagged)" if self.doubted else "")


def differences(record: Record, stored: StoredResults) -> list[Difference]:
    """Return every difference, in the order of the pages, then lists, then narratives."""
    pairs = list(_pairs(record, stored.entities))
    found = [each for truth, entity in pairs for each in _entity(truth, entity, stored.systems)]
    found += _unexpected(record.file, stored.entities, {entity.id for _, entity in pairs})
    if stored.items is not None and record.lists is not None:
        found += _lists(record.lists, stored.items, pairs)
    if stored.sentences is not None:
        for narrative in record.narratives or []:
            found += _narrative(narrative, stored.sentences)
    return found


def flat(values: Mapping[str, Any], prefix: str = "") -> Flat:
    """Return path → value, without values that say nothing (None, False, empty)."""
    found: Flat = {}
    for key, value in values.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and "one_of" not in value:
            found |= flat(value, f"{path}.")
        elif isinstance(value, list | tuple):
            found |= flat({str(i): each for i, each in enumerate(value)}, f"{path}.")
        elif value not in (None, False, ""):
            found[path] = value
    return found


def equal(path: str, expected: Any, value: Any) -> bool:
    """Return whether a stored value is the expected value, or one of the alternatives."""
    if isinstance(expected, Mapping):
        return any(equal(path, each, value) for each in expected["one_of"])
    if isinstance(expected, bool) or isinstance(value, bool):
        return expected is value
    wanted, got = _number(expected), _number(value)
    if wanted is not None and got is not None:
        if path.startswith("converted."):
            return abs(wanted - got) <= _ROUNDED * abs(wanted)
        return wanted == got
    if path == "daily_dose.unit":
        value = _DAILY_UNIT.sub("", str(value))
    if path.endswith("unit"):
        return str(expected) == str(value)
    return _words(str(expected)) == _words(str(value))


def _number(value: Any) -> Decimal | None:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return None


def _words(text: str) -> str:
    return " ".join(text.casefold().split())


def _pairs(
    record: Record, entities: Sequence[StoredEntity]
) -> Iterator[tuple[EntityTruth, StoredEntity]]:
    """Match the entities of the truth to the stored entities of their page and category."""
    unused: dict[tuple[int, int, str], list[StoredEntity]] = defaultdict(list)
    for entity in entities:
        unused[entity.encounter, entity.page, entity.category].append(entity)
    for encounter in record.encounters:
        for truth in encounter.entities:
            rest = unused[encounter.index, truth.page, truth.category]
            match = min(rest, key=lambda each: _distance(truth, each), default=None)
            if match is not None and _distance(truth, match) < _FAR:
                rest.remove(match)
                yield truth, match


_FAR = 5


def _unexpected(
    file: str, entities: Iterable[StoredEntity], paired: Set[UUID]
) -> Iterator[Difference]:
    rest = also.of(file)
    for entity in entities:
        if entity.id in paired:
            continue
        quote = " ".join(entity.quote.split())
        key = also.Also(entity.page, entity.category, entity.state, quote)
        if rest[key]:
            rest[key] -= 1
            continue
        place = f"page {entity.page}, {entity.category} {entity.quote!r}"
        yield Difference(place, f"the page has no such entity ({entity.state})", entity.doubted)


def _distance(truth: EntityTruth, entity: StoredEntity) -> int:
    """Return how unlike two entities are; `mild COPD exacerbation` holds `COPD exacerbation`."""
    name, quote = _words(truth.name), _words(truth.quote)
    same_quote = quote == _words(entity.quote)
    values = (truth.value, truth.dose, truth.step) == (entity.value, entity.dose, entity.step)
    if name == _words(entity.name):
        return 0 if same_quote and values else 2 if values else 3
    if same_quote:
        return 1
    return 4 if _within(quote, _words(entity.quote)) else _FAR


def _entity(
    truth: EntityTruth, entity: StoredEntity, systems: frozenset[str]
) -> Iterator[Difference]:
    if truth.clinical is None:
        return
    place = f"page {truth.page}, {truth.category} {truth.quote!r}"
    if not entity.enriched:
        what = "has no row in pass2_enriched_entities"
        yield Difference(place, what, entity.doubted, missing=True)
        return
    required, allowed = flat(truth.clinical.attributes), flat(truth.clinical.allowed)
    got = {k: v for k, v in flat(entity.attributes).items() if not _NOT_JUDGED.search(k)}
    for path, expected in required.items():
        if path not in got:
            what = f"{path} is missing, expected {expected}"
            yield Difference(place, what, entity.doubted, missing=True)
    for path, value in got.items():
        expected = required.get(path, allowed.get(path))
        if expected is None:
            yield Difference(place, f"{path} is {value}, expected nothing", entity.doubted)
        elif not equal(path, expected, value):
            yield Difference(place, f"{path} is {value}, expected {expected}", entity.doubted)
    yield from _code(truth.clinical, entity, systems, place)


def _code(
    clinical: ClinicalTruth, entity: StoredEntity, systems: frozenset[str], place: str
) -> Iterator[Difference]:
    loaded = [c for c in clinical.codes if c is None or c.partition("|")[0] in systems]
    optional = [c for c in clinical.optional_codes if c.partition("|")[0] in systems]
    accepted = loaded or [None]
    if entity.code not in (*accepted, *optional):
        wanted = " or ".join(str(code) for code in (*accepted, *optional))
        what = f"the code is {entity.code}, expected {wanted}"
        yield Difference(place, what, entity.doubted, missing=entity.code is None)
    if entity.code is not None and entity.code not in entity.candidates:
        yield Difference(place, f"the shortlist does not contain {entity.code}", False)


def _lists(
    lists: ListsTruth,
    items: Sequence[StoredItem],
    pairs: Sequence[tuple[EntityTruth, StoredEntity]],
) -> Iterator[Difference]:
    names = {entity.id: truth.name.casefold() for truth, entity in pairs}
    places = {entity.id: entity.encounter for _, entity in pairs}
    contents = [(item, {names[id_] for id_ in item.entity_ids if id_ in names}) for item in items]
    for kind, attribute in _KINDS.items():
        listed: list[ListedTruth] = getattr(lists, attribute)
        of_kind = [(item, found) for item, found in contents if item.kind == kind]
        yield from _entries(kind, listed, of_kind, names, places, lists.optional)
    for pair in lists.apart:
        for item, found in contents:
            if found.issuperset(pair):
                yield Difference(f"list {item.kind}", f"{pair[0]} and {pair[1]} are joined")
    for wanted in lists.contradictions:
        if not _shown(wanted.list, wanted.name, wanted.encounter, contents, names, places):
            yield Difference(
                f"list {wanted.list}", f"no contradiction for {wanted.name}: {wanted.reason}"
            )
    for same in lists.consistent:
        if _shown(same.list, same.name, same.encounter, contents, names, places):
            yield Difference(
                f"list {same.list}", f"a contradiction for {same.name}, although {same.reason}"
            )


def _entries(
    kind: str,
    listed: Iterable[ListedTruth],
    items: Sequence[tuple[StoredItem, set[str]]],
    names: Mapping[UUID, str],
    places: Mapping[UUID, int],
    optional: Sequence[str],
) -> Iterator[Difference]:
    for entry in listed:
        ids = [
            id_
            for item, found in items
            if entry.name in found
            for id_ in item.entity_ids
            if names.get(id_) == entry.name
        ]
        if len(ids) != len(set(ids)):
            yield Difference(f"list {kind}", f"{entry.name} is listed twice for one entity")
        missing = set(entry.encounters) - {places[id_] for id_ in ids}
        if missing:
            what = f"{entry.name} lacks the encounters {sorted(missing)}"
            yield Difference(f"list {kind}", what, missing=True)
        if entry.values is not None and len(set(ids)) != entry.values:
            what = f"{entry.name} has {len(set(ids))} results, not {entry.values}"
            yield Difference(f"list {kind}", what, missing=len(set(ids)) < entry.values)
    wanted = {*optional, *(entry.name for entry in listed)}
    for _, found in items:
        if found and not found & wanted and kind != "medication":
            yield Difference(f"list {kind}", f"{sorted(found)} is no entry")


def _shown(
    kind: str,
    name: str,
    encounter: int,
    contents: Sequence[tuple[StoredItem, set[str]]],
    names: Mapping[UUID, str],
    places: Mapping[UUID, int],
) -> bool:
    return any(
        any(names.get(id_) == name and places.get(id_) == encounter for id_ in ids)
        for item, _ in contents
        if item.kind == kind
        for ids in item.contradicted
    )


def _narrative(truth: NarrativeTruth, sentences: Sequence[StoredSentence]) -> Iterator[Difference]:
    place = "narrative of the record"
    if truth.encounter is not None:
        place = f"narrative of encounter {truth.encounter}"
    texts = [
        _words(each.text)
        for each in sentences
        if each.supported and each.encounter == truth.encounter
    ]
    for fact in truth.facts:
        if not any(all(_within(word, text) for word in fact) for text in texts):
            yield Difference(place, f"{' '.join(fact)} is not stated", missing=True)
    for word in truth.absent:
        if any(_within(word, text) for text in texts):
            yield Difference(place, f"{word} is stated")
    for term in truth.not_affirmed:
        if any(_within(term, text) and not _NOT_AFFIRMED.search(text) for text in texts):
            yield Difference(place, f"{term} is affirmed")


def _within(word: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w.]){re.escape(word.casefold())}(?!\w|\.\d)", text))
