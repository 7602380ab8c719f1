"""The joining of parts that different chunks report into encounters.

This module is pure. Parts are joined only on evidence that the log names. Parts whose patients
disagree are never joined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from pipeline.core.identity import Identity, filed_under, sought_under
from pipeline.stages.pass05.encounter_facts import agreement
from pipeline.stages.pass05.groups import EncounterGroup, EncounterPart
from pipeline.stages.pass05.types import Decision, Edge, Member, ReconciliationRule


class Joins:
    """The groups of parts that form one encounter each."""

    def __init__(self, parts: Sequence[EncounterPart], log: list[Decision]) -> None:
        self._group = {part.member: EncounterGroup(rank, part) for rank, part in enumerate(parts)}
        self._chunks: defaultdict[int, list[EncounterPart]] = defaultdict(list)
        for part in parts:
            self._chunks[part.chunk].append(part)
        self._continued: set[tuple[Member, int]] = set()
        self._continues: set[tuple[Member, int]] = set()
        self._log = log
        self.unmatched: set[Member] = set()

    def groups(self) -> list[EncounterGroup]:
        """Return the encounters in the order of the text."""
        groups = {id(group): group for group in self._group.values()}
        return sorted(groups.values(), key=lambda group: group.parts[0].order)

    def across(self, earlier: int, later: int) -> None:
        """Join the parts that are open on both sides of the edge between two chunks, one to one."""
        before = self._parts_of(earlier)
        after = [p for p in self._parts_of(later) if p.encounter.open_at_start]
        self._by_overlap(before, after)
        before = [
            p
            for p in before
            if p.encounter.open_at_end and (p.member, later) not in self._continued
        ]
        after = [p for p in after if (p.member, earlier) not in self._continues]
        self._by_facts(before, after)
        for part in after:
            if (part.member, earlier) not in self._continues:
                self.unmatched.add(part.member)
                self._note(
                    ReconciliationRule.NO_PARTNER,
                    (part,),
                    "separate",
                    "no earlier part continues here",
                )

    def same_encounters(self) -> None:
        """Join parts of different chunks if all key facts are stated and equal."""
        done = _Dated()
        for group in self.groups():
            for other in done.like(group):
                if not other.dated.isdisjoint(group.dated):
                    continue
                if agreement(other.facts, group.facts).same_encounter:
                    self._join(
                        other.parts[-1], group.parts[0], ReconciliationRule.JOIN_SAME_ENCOUNTER, 0
                    )
                    done.add(other)
                    break
            else:
                done.add(group)

    def _parts_of(self, chunk: int) -> list[EncounterPart]:
        return sorted(
            self._chunks[chunk], key=lambda part: (self._group[part.member].rank, part.order)
        )

    def _by_overlap(self, before: Sequence[EncounterPart], after: Sequence[EncounterPart]) -> None:
        pairs = []
        for one in before:
            for other in after:
                shared = sum(a.overlap(b) for a in one.claimed for b in other.context)
                if shared:
                    pairs.append((not one.encounter.open_at_end, -shared, one.order, one, other))
        pairs.sort(key=lambda pair: (*pair[:3], pair[4].order))
        used: set[Member] = set()
        for closed, shared, _, one, other in pairs:
            if one.member in used or other.member in used:
                continue
            judged = agreement(self._group[one.member].facts, other.facts)
            if judged.patient.disagrees:
                words = " ".join(judged.patient.reasons)
                self._note(ReconciliationRule.REFUSE_PATIENT, (one, other), "separate", words)
            elif not closed or not judged.disagree:
                used |= {one.member, other.member}
                self._join(one, other, ReconciliationRule.JOIN_OVERLAP, -shared)

    def _by_facts(self, before: Sequence[EncounterPart], after: Sequence[EncounterPart]) -> None:
        pairs = []
        for one in before:
            for other in after:
                judged = agreement(self._group[one.member].facts, other.facts)
                if not judged.disagree:
                    rank = (-len(judged.agree), -one.claimed[-1].page, -one.claimed[-1].end)
                    pairs.append((rank, other.order, one, other, judged.agree))
                elif judged.patient.disagrees:
                    words = " ".join(judged.patient.reasons)
                    self._note(ReconciliationRule.REFUSE_PATIENT, (one, other), "separate", words)
        sole = len(before) == 1 and len(after) == 1
        pairs.sort(key=lambda pair: pair[:2])
        used: set[Member] = set()
        for _, _, one, other, agree in pairs:
            if one.member in used or other.member in used or not (agree or sole):
                continue
            used |= {one.member, other.member}
            self._join(
                one,
                other,
                ReconciliationRule.JOIN_FACTS if agree else ReconciliationRule.JOIN_SOLE,
                0,
            )

    def _join(
        self, one: EncounterPart, other: EncounterPart, rule: ReconciliationRule, overlap: int
    ) -> None:
        target, source = self._group[one.member], self._group[other.member]
        if target is source:
            return
        agree = agreement(target.facts, other.facts).agree
        words = f"agree: {', '.join(agree)}" if agree else "no fact is stated on both sides"
        self._note(rule, (one, other), "joined", words)
        edge = Edge(earlier=one.member, later=other.member, rule=rule, overlap=overlap)
        self._continued.add((one.member, other.chunk))
        self._continues.add((other.member, one.chunk))
        target.take(source, edge)
        for part in source.parts:
            self._group[part.member] = target

    def _note(
        self, rule: ReconciliationRule, parts: Sequence[EncounterPart], outcome: str, reason: str
    ) -> None:
        self._log.append(
            Decision(
                rule=rule,
                chunks=tuple(sorted({part.chunk for part in parts})),
                subjects=tuple(part.member.key for part in parts),
                outcome=outcome,
                reason=reason,
            )
        )


class _Dated:
    """Encounters with all key facts stated, found by date, type and patient."""

    def __init__(self) -> None:
        self._found: defaultdict[tuple[object, ...], dict[int, EncounterGroup]] = defaultdict(dict)

    def add(self, group: EncounterGroup) -> None:
        """Add an encounter, or re-add it after another encounter was joined to it."""
        for place in self._places(group, filed_under):
            self._found[place][group.rank] = group

    def like(self, group: EncounterGroup) -> Iterator[EncounterGroup]:
        """Yield the encounters that may be the same one, in the order of the text."""
        alike = {
            g.rank: g
            for place in self._places(group, sought_under)
            for g in self._found[place].values()
        }
        yield from sorted(alike.values(), key=lambda g: g.parts[0].order)

    @staticmethod
    def _places(
        group: EncounterGroup, words: Callable[[Identity], frozenset[str]]
    ) -> list[tuple[object, ...]]:
        facts = group.facts
        if facts.date_start is None or facts.encounter_type == "other" or not facts.facility:
            return []
        return [(facts.date_start, facts.encounter_type, word) for word in words(facts.patient)]
