"""The patient of a record, and the encounters that may belong to another patient.

Those encounters are held for review; in doubt an encounter is held. All parts of an encounter are
judged together, so a part without a name follows the part with a name. `_Judge` holds the table
of decisions. This module is pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import combinations

from pipeline.core.identity import (
    ComparisonResult,
    Identity,
    Reading,
    compare,
    compare_digests,
    digests,
    distinct,
    dominant,
)
from pipeline.stages.pass05.types import Decision, DiscoveredEncounter, ReconciliationRule

Held = tuple[ReconciliationRule, tuple[str, ...]]


class _RecordVerdict(Enum):
    """Whose record this is, compared with the patient under whom it would be published."""

    HIS = 1
    """Most of the record names the patient."""
    ANOTHERS = 2
    """Most of the record names a person other than the known patient."""
    SEVERAL = 3
    """The record names people who contradict each other, and no person has most of the record."""
    OPEN = 4
    """No name in the record contradicts another name."""


def held_encounters(
    encounters: Sequence[DiscoveredEncounter],
    known: Mapping[str, str] | Identity | None,
    key: bytes,
    log: list[Decision],
) -> tuple[Identity | None, set[str]]:
    """Return the record's own patient and the keys of the encounters to hold for review.

    `known` is an Identity, or the digests that `identity.digests` made of one with `key`.
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
    """Compare each identity with the patient, once per identity.

        known    the record itself names         an encounter that names
        patient                                  the patient  another  too little  no person
        -------  ------------------------------  -----------  -------  ----------  ---------
        no       mostly one person               publish      hold     publish     publish
        no       several people, none mostly     –            hold     hold        hold
        no       no person who is contradicted   –            –        publish     publish
        yes      mostly the known patient        publish      hold     publish     publish
        yes      mostly another person           publish*     hold     hold        hold
        yes      several people, none mostly     publish*     hold     hold        hold
        yes      mostly a person who may be      publish*     hold     hold        hold
                 either, and another person
        yes      no person who is contradicted   publish      –        publish     publish

    "The patient" is the known patient; without a known patient, the person whom the record mostly
    names. "Too little" is a name that fits both, such as an initial. * The encounter is held as
    well if the encounters that name the known patient contradict each other: the known facts are
    then too few to tell these people apart.
    """

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
        self._verdict = self._judge_record(named)
        claimants = [i for i in named if i.reading in self._direct and self._claims(i)]
        self._disputed = self._verdict is not _RecordVerdict.HIS and _contradict(claimants)
        self._done: dict[Reading, Held | None] = {}

    def hold(self, seen: Identity) -> Held | None:
        """Return why an encounter of this identity is held; None if the encounter is published."""
        if seen.reading not in self._done:
            self._done[seen.reading] = self._decide(seen)
        return self._done[seen.reading]

    def _decide(self, seen: Identity) -> Held | None:
        named = bool(seen.stated)
        direct = self._direct.get(seen.reading)
        if self._verdict is _RecordVerdict.OPEN:
            return None
        if self._verdict is _RecordVerdict.HIS and self._own is not None:
            verdict = self._through(self._own, seen)
            return (
                (ReconciliationRule.PATIENT_MISMATCH, verdict.reasons)
                if verdict.disagrees
                else None
            )
        if direct is not None and direct.disagrees:
            return ReconciliationRule.PATIENT_MISMATCH, direct.reasons
        if direct is not None and direct.agrees:
            return (
                (ReconciliationRule.PATIENT_AMBIGUOUS, ("several_people_fit",))
                if self._disputed
                else None
            )
        if self._verdict is _RecordVerdict.ANOTHERS:
            return ReconciliationRule.PATIENT_OF_RECORD, (
                "names_too_little" if named else "names_no_one",
            )
        return ReconciliationRule.PATIENT_AMBIGUOUS, ("several_people",)

    def _judge_record(self, named: Sequence[Identity]) -> _RecordVerdict:
        if not self._known:
            if self._own is not None:
                return _RecordVerdict.HIS
            return _RecordVerdict.SEVERAL if _contradict(named) else _RecordVerdict.OPEN
        record = self._of_known(self._own) if self._own else None
        if record is not None and record.agrees:
            return _RecordVerdict.HIS
        if record is not None and record.disagrees:
            return _RecordVerdict.ANOTHERS
        other = any(verdict.disagrees for verdict in self._direct.values())
        return _RecordVerdict.SEVERAL if other or _contradict(named) else _RecordVerdict.OPEN

    def _of_known(self, identity: Identity) -> ComparisonResult:
        if isinstance(self._known, Identity):
            return compare(self._known, identity)
        return compare_digests(self._kinds, digests(identity, self._key))

    def _claims(self, identity: Identity) -> bool:
        return self._direct[identity.reading].agrees

    def _through(self, own: Identity, seen: Identity) -> ComparisonResult:
        """Judge by the known facts and by the record's own statements about the same person.

        Digests cannot tolerate a scanner's slip, and the known facts may lack a fact that the
        record states. Each source overrules the other only on facts that the other states too.
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
    """Return whether two of these identities are different people, or may well be."""
    # A record number alone contradicts no other number: each hospital assigns its own.
    comparable = [i for i in people if any(i.reading[:2])]
    return any(compare(a, b).disagrees for a, b in combinations(comparable, 2))
