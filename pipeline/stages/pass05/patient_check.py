"""Whose record it is, and which encounters may be somebody else's: those are held for review.

May import `identity` and this package's `outcome`; pure. The parts of an encounter are judged as
one, so a part that names nobody goes with the part that does. In doubt an encounter is held:

    known    the record itself names         an encounter that names
    patient                                  the patient  another  too little  nobody
    -------  ------------------------------  -----------  -------  ----------  ------
    no       mostly one person               publish      hold     publish     publish
    no       several people, none mostly     –            hold     hold        hold
    no       nobody that is contradicted     –            –        publish     publish
    yes      mostly the known patient        publish      hold     publish     publish
    yes      mostly somebody else            publish*     hold     hold        hold
    yes      several people, none mostly     publish*     hold     hold        hold
    yes      mostly one who may be either,   publish*     hold     hold        hold
             and somebody else
    yes      nobody that is contradicted     publish      –        publish     publish

"The patient" is the known one, without one whom the record mostly names. "Too little" is what may
be either, as an initial. * Held as well where those that name the known patient contradict each
other: what is known is then too little to tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import combinations

from pipeline.core.identity import (
    Identity,
    Reading,
    Verdict,
    compare,
    compare_digests,
    digests,
    distinct,
    dominant,
)
from pipeline.stages.pass05.types import Decision, Encounter, Rule

Held = tuple[Rule, tuple[str, ...]]


class _Standing(Enum):
    """What the record as a whole says of the patient under whom it would be published."""

    HIS = 1
    """Most of it names the patient."""
    ANOTHERS = 2
    """Most of it names somebody else than the known patient."""
    SEVERAL = 3
    """It names people who contradict each other or the known patient, and is mostly nobody's."""
    OPEN = 4
    """Nothing in it contradicts anything."""


def held_encounters(
    encounters: Sequence[Encounter],
    known: Mapping[str, str] | Identity | None,
    key: bytes,
    log: list[Decision],
) -> tuple[Identity | None, set[str]]:
    """Return the record's own patient and the encounters that are held for review.

    `known` is an Identity or what `identity.digests` made of one with `key`.
    """
    own = dominant((e.patient, float(sum(map(len, e.spans)))) for e in encounters)
    judge = _Judge(own, known or None, key, distinct(e.patient for e in encounters))
    held: dict[str, Held] = {}
    for e in encounters:
        why = judge.hold(e.patient)
        if why is None:
            continue
        held[e.key] = why
        rule, reasons = why
        log.append(
            Decision(
                rule=rule,
                chunks=tuple(sorted({m.chunk_index for m in e.members})),
                subjects=(e.key,),
                outcome="held",
                reason=" ".join(reasons),
            )
        )
    return own, set(held)


class _Judge:
    """Holds each identity against the patient, once."""

    def __init__(
        self,
        own: Identity | None,
        known: Mapping[str, str] | Identity | None,
        key: bytes,
        named: Sequence[Identity],
    ) -> None:
        self._own, self._known, self._key = own, known, key
        self._kinds = digests(known, key) if isinstance(known, Identity) else dict(known or {})
        self._own_kinds = digests(own, key) if own and known else {}
        self._direct = {i.reading: self._of_known(i) for i in named} if known else {}
        self._standing = self._stands(named)
        claimants = [i for i in named if i.reading in self._direct and self._claims(i)]
        self._disputed = self._standing is not _Standing.HIS and _contradict(claimants)
        self._done: dict[Reading, Held | None] = {}

    def hold(self, seen: Identity) -> Held | None:
        """Return why an encounter of this patient is held; None where it is published."""
        if seen.reading not in self._done:
            self._done[seen.reading] = self._decide(seen)
        return self._done[seen.reading]

    def _decide(self, seen: Identity) -> Held | None:
        named = bool(seen.stated)
        direct = self._direct.get(seen.reading)
        if self._standing is _Standing.OPEN:
            return None
        if self._standing is _Standing.HIS and self._own is not None:
            verdict = self._through(self._own, seen)
            return (Rule.PATIENT_MISMATCH, verdict.reasons) if verdict.disagrees else None
        if direct is not None and direct.disagrees:
            return Rule.PATIENT_MISMATCH, direct.reasons
        if direct is not None and direct.agrees:
            return (Rule.PATIENT_AMBIGUOUS, ("several_people_fit",)) if self._disputed else None
        if self._standing is _Standing.ANOTHERS:
            return Rule.PATIENT_OF_RECORD, ("names_too_little" if named else "names_nobody",)
        return Rule.PATIENT_AMBIGUOUS, ("several_people",)

    def _stands(self, named: Sequence[Identity]) -> _Standing:
        if not self._known:
            if self._own is not None:
                return _Standing.HIS
            return _Standing.SEVERAL if _contradict(named) else _Standing.OPEN
        record = self._of_known(self._own) if self._own else None
        if record is not None and record.agrees:
            return _Standing.HIS
        if record is not None and record.disagrees:
            return _Standing.ANOTHERS
        other = any(verdict.disagrees for verdict in self._direct.values())
        return _Standing.SEVERAL if other or _contradict(named) else _Standing.OPEN

    def _of_known(self, identity: Identity) -> Verdict:
        if isinstance(self._known, Identity):
            return compare(self._known, identity)
        return compare_digests(self._kinds, digests(identity, self._key))

    def _claims(self, identity: Identity) -> bool:
        return self._direct[identity.reading].agrees

    def _through(self, own: Identity, seen: Identity) -> Verdict:
        """Judge by what is known and by what the record says of the same person.

        Digests cannot see a scanner's slip, and what is known may lack what the record states. Each
        of the two is overruled by the other only in what the other states as well.
        """
        through = compare(own, seen)
        direct = self._direct.get(seen.reading)
        if direct is None or not (direct.agrees or direct.disagrees):
            return through
        kinds = digests(seen, self._key)
        if direct.disagrees:
            apart = {k for k, v in kinds.items() if self._kinds.get(k, v) != v}
            return through if apart and apart <= self._own_kinds.keys() else direct
        apart = {k for k, v in kinds.items() if self._own_kinds.get(k, v) != v}
        told = apart and apart <= self._kinds.keys()
        return through if through.disagrees and not told else direct


def _contradict(people: Sequence[Identity]) -> bool:
    """Whether two of them are, or may well be, two people."""
    # A number alone contradicts nobody: each hospital has its own.
    comparable = [i for i in people if any(i.reading[:2])]
    return any(compare(a, b).disagrees for a, b in combinations(comparable, 2))
