"""Find the people of a record, and the person who holds most of it.

An identity is compared only with people that it can agree with, and equal identities only once. So
the work grows linearly with the record. The functions are pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date

from pipeline.core.identity.blocking import filed_under, sought_under
from pipeline.core.identity.comparison import Agreement, outcome
from pipeline.core.identity.parsing import Identity, ParsedName, Reading
from pipeline.core.identity.similarity import (
    NameMatch,
    PartMatch,
    birth_dates,
    identifiers,
    names,
)


def dominant(weighted: Iterable[tuple[Identity, float]]) -> Identity | None:
    """Return the identity that most of a record's text carries; None if no person holds most.

    Weights are amounts of text. An identity that fits several people is not counted, so a page with
    only a common name never decides between them.
    """
    stated = [(identity, weight) for identity, weight in weighted if identity.stated]
    stated.sort(key=lambda pair: (-pair[0].stated, -pair[1], _sort_key(pair[0])))
    people = _People()
    for identity, weight in stated:
        people.add(identity, weight)
    if not people.all:
        return None
    largest = max(people.all, key=lambda person: person.weight)
    if largest.weight * 2 <= sum(weight for _, weight in stated):
        return None
    return combine(largest.members)


def distinct(identities: Iterable[Identity]) -> list[Identity]:
    """Return the first identity of each distinct reading with a stated part, in their order."""
    found: dict[Reading, Identity] = {}
    for identity in identities:
        if identity.stated:
            found.setdefault(identity.reading, identity)
    return list(found.values())


class WeightedStatements:
    """The statements of several places about one person, counted by weight."""

    def __init__(self) -> None:
        self._names: Counter[str] = Counter()
        self._dates: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()
        self._fullness: dict[str, int] = {}
        self._joined: Identity | None = None

    def add(self, identity: Identity, weight: float) -> None:
        """Count the statements of one place."""
        name, born, number = identity.reading
        more = int(weight * 1000) + 1
        self._joined = None
        if name is not None and identity.name:
            self._names[identity.name] += more
            self._fullness[identity.name] = sum(len(t) > 1 for t in name.given[:1]) + len(
                name.given
            )
        if born is not None and identity.birth_date:
            self._dates[identity.birth_date] += more
        if number is not None and identity.identifier:
            self._numbers[identity.identifier] += more

    def joined(self) -> Identity:
        """Return the heaviest fullest name, date and number so far."""
        if self._joined is None:
            full, names = self._fullness, self._names
            self._joined = Identity(
                name=min(names, key=lambda v: (-full[v], -names[v], v), default=None),
                birth_date=_heaviest(self._dates),
                identifier=_heaviest(self._numbers),
            )
        return self._joined


def combine(weighted: Iterable[tuple[Identity, float]]) -> Identity:
    """Join statements about one person: the heaviest fullest name, date and number."""
    statements = WeightedStatements()
    for identity, weight in weighted:
        statements.add(identity, weight)
    return statements.joined()


def _heaviest(counts: Counter[str]) -> str | None:
    return min(counts, key=lambda v: (-counts[v], v), default=None)


class _Person:
    """Identities of one person, in groups that differ only in the number."""

    def __init__(self) -> None:
        self.members: list[tuple[Identity, float]] = []
        self.weight = 0.0
        self.copies = 1
        """Identities that state only this; nothing tells whether they are the same person."""
        self.numbers: dict[tuple[ParsedName | None, date | None], set[str | None]] = {}

    def add(self, identity: Identity, weight: float) -> bool:
        """Add an identity; return whether its reading is new."""
        name, born, number = identity.reading
        self.members.append((identity, weight))
        self.weight += weight
        numbers = self.numbers.setdefault((name, born), set())
        new = number not in numbers
        numbers.add(number)
        return new


class _People:
    """The people of a record. An identity is compared only with people that it can agree with."""

    def __init__(self) -> None:
        self.all: list[_Person] = []
        self._filed: dict[str, dict[int, None]] = {}
        self._names: dict[tuple[ParsedName | None, ParsedName | None], NameMatch] = {}
        self._founded: dict[Reading, _Person] = {}
        self._version = 0
        self._fits: dict[Reading, tuple[int, list[int]]] = {}

    def add(self, identity: Identity, weight: float) -> None:
        """Count an identity for the one person that it fits, or for a new person."""
        fits = self._fitting(identity)
        if len(fits) > 1 or (fits and self.all[fits[0]].copies > 1):
            return
        if not fits and (like := self._like(identity)) is not None:
            like.copies += 1
            return
        at = fits[0] if fits else len(self.all)
        if not fits:
            self.all.append(_Person())
            self._founded[identity.reading] = self.all[at]
        if self.all[at].add(identity, weight):
            self._version += 1
            for word in filed_under(identity):
                self._filed.setdefault(word, {})[at] = None

    def _fitting(self, identity: Identity) -> list[int]:
        """Return up to two people that the identity agrees with and does not contradict."""
        version, fits = self._fits.get(identity.reading, (-1, []))
        if version != self._version:
            fits, tried = [], set()
            for word in sorted(sought_under(identity)):
                for at in self._filed.get(word, ()):
                    if at not in tried and len(fits) < 2:
                        tried.add(at)
                        fits += [at] if self._belongs(identity, self.all[at]) else []
            self._fits[identity.reading] = (self._version, fits)
        return fits

    def _like(self, identity: Identity) -> _Person | None:
        """Return the person known by this reading alone, if the reading is too weak to agree."""
        person = self._founded.get(identity.reading)
        alone = person is not None and sum(map(len, person.numbers.values())) == 1
        return person if alone else None

    def _belongs(self, identity: Identity, person: _Person) -> bool:
        name, born, number = identity.reading
        agrees = False
        for (other_name, other_born), numbers in person.numbers.items():
            pair = (name, other_name)
            if pair not in self._names:
                self._names[pair] = names(*pair)
            rule = (self._names[pair], birth_dates(born, other_born))
            outcomes = set()
            if number in numbers:
                same = PartMatch.UNKNOWN if number is None else PartMatch.SAME
                outcomes.add(outcome(*rule, same))
            if number is None or None in numbers:
                outcomes.add(outcome(*rule, PartMatch.UNKNOWN))
            if number is not None:
                outcomes |= self._by_number(rule, number, numbers)
            if Agreement.DISAGREE in outcomes:
                return False
            agrees = agrees or Agreement.AGREE in outcomes
        return agrees

    @staticmethod
    def _by_number(
        rule: tuple[NameMatch, PartMatch], number: str, numbers: set[str | None]
    ) -> set[Agreement]:
        """Judge against other numbers; compare them one by one only if their distance matters."""
        if len(numbers) < 3 and numbers <= {number, None}:
            return set()
        close, other = (outcome(*rule, part) for part in (PartMatch.CLOSE, PartMatch.DIFFERENT))
        if close is other:
            return {close}
        outcomes = set()
        for n in numbers - {number, None}:
            outcomes.add(close if identifiers(number, n) is PartMatch.CLOSE else other)
            if Agreement.DISAGREE in outcomes:
                break
        return outcomes


def _sort_key(identity: Identity) -> tuple[str, str, str]:
    return (identity.name or "", identity.birth_date or "", identity.identifier or "")
