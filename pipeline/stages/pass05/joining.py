"""Which parts of encounters, as single chunks report them, belong together.

May import this package's `outcome`, `claims` and `facts`; pure. Parts are joined only on evidence
that the log names, never where the patients disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.provider.schemas import FoundEncounter
from pipeline.stages.pass05.facts import Facts, agreement
from pipeline.stages.pass05.outcome import Decision, Edge, Member, Rule
from pipeline.types import Span


@dataclass(eq=False)
class Part:
    """One chunk's part of an encounter, while it is being placed."""

    member: Member
    found: FoundEncounter
    facts: Facts
    context: tuple[Span, ...]
    claimed: tuple[Span, ...] = ()

    @property
    def chunk(self) -> int:
        """The chunk that reports it."""
        return self.member.chunk_index

    @property
    def order(self) -> Span:
        """Where its text begins."""
        return self.claimed[0]


class Joins:
    """Which parts are one encounter."""

    def __init__(self, parts: Sequence[Part], log: list[Decision]) -> None:
        self._groups: list[list[Part]] = [[part] for part in parts]
        self._edges: list[Edge] = []
        self._log = log
        self.unmatched: set[Member] = set()

    def groups(self) -> list[list[Part]]:
        """Return the parts of each encounter, in the order of the text."""
        return sorted(self._groups, key=lambda group: min(part.order for part in group))

    def edges_of(self, members: Sequence[Member]) -> tuple[Edge, ...]:
        """Return the edges between members of one encounter, in their order."""
        inside = [e for e in self._edges if e.earlier in members and e.later in members]
        return tuple(sorted(inside, key=lambda e: (e.later.chunk_index, e.later.encounter_index)))

    def across(self, earlier: int, later: int) -> None:
        """Join what is open on both sides of the edge between two chunks, one to one."""
        before = [p for g in self._groups for p in g if p.chunk == earlier]
        after = [p for g in self._groups for p in g if p.chunk == later and p.found.open_at_start]
        self._by_overlap(before, after)
        before = [p for p in before if p.found.open_at_end and not self._continued(p, later)]
        after = [p for p in after if not self._continues(p, earlier)]
        self._byjoint_facts(before, after)
        for part in after:
            if not self._continues(part, earlier):
                self.unmatched.add(part.member)
                self._note(Rule.NO_PARTNER, (part,), "separate", "nothing before goes on into it")

    def same_encounters(self) -> None:
        """Join parts of different chunks whose key facts are all stated and equal."""
        done: list[list[Part]] = []
        for group in self.groups():
            for other in done:
                if _dated(other) & _dated(group):
                    continue
                if agreement(joint_facts(other), joint_facts(group)).same_encounter:
                    self._join(other[-1], group[0], Rule.JOIN_SAME_ENCOUNTER, 0)
                    break
            else:
                done.append(group)

    def _by_overlap(self, before: Sequence[Part], after: Sequence[Part]) -> None:
        pairs = []
        for one in before:
            for other in after:
                shared = sum(a.overlap(b) for a in one.claimed for b in other.context)
                if shared:
                    pairs.append((not one.found.open_at_end, -shared, one.order, one, other))
        pairs.sort(key=lambda pair: (*pair[:3], pair[4].order))
        used: set[Member] = set()
        for closed, shared, _, one, other in pairs:
            if one.member in used or other.member in used:
                continue
            judged = agreement(joint_facts(self._group(one)), other.facts)
            if judged.patient.disagrees:
                words = " ".join(judged.patient.reasons)
                self._note(Rule.REFUSE_PATIENT, (one, other), "separate", words)
            elif not closed or not judged.disagree:
                used |= {one.member, other.member}
                self._join(one, other, Rule.JOIN_OVERLAP, -shared)

    def _byjoint_facts(self, before: Sequence[Part], after: Sequence[Part]) -> None:
        pairs = []
        for one in before:
            for other in after:
                judged = agreement(joint_facts(self._group(one)), other.facts)
                if not judged.disagree:
                    rank = (-len(judged.agree), -one.claimed[-1].page, -one.claimed[-1].end)
                    pairs.append((rank, other.order, one, other, judged.agree))
                elif judged.patient.disagrees:
                    words = " ".join(judged.patient.reasons)
                    self._note(Rule.REFUSE_PATIENT, (one, other), "separate", words)
        sole = len(before) == 1 and len(after) == 1
        pairs.sort(key=lambda pair: pair[:2])
        used: set[Member] = set()
        for _, _, one, other, agree in pairs:
            if one.member in used or other.member in used or not (agree or sole):
                continue
            used |= {one.member, other.member}
            self._join(one, other, Rule.JOIN_FACTS if agree else Rule.JOIN_SOLE, 0)

    def _join(self, one: Part, other: Part, rule: Rule, overlap: int) -> None:
        target, source = self._group(one), self._group(other)
        if target is source:
            return
        agree = agreement(joint_facts(target), other.facts).agree
        words = f"agree: {', '.join(agree)}" if agree else "no fact is stated on both sides"
        self._note(rule, (one, other), "joined", words)
        self._edges.append(Edge(earlier=one.member, later=other.member, rule=rule, overlap=overlap))
        target += source
        target.sort(key=lambda part: part.order)
        self._groups = [group for group in self._groups if group is not source]

    def _group(self, part: Part) -> list[Part]:
        return next(group for group in self._groups if part in group)

    def _continued(self, part: Part, later: int) -> bool:
        return any(e.earlier == part.member and e.later.chunk_index == later for e in self._edges)

    def _continues(self, part: Part, earlier: int) -> bool:
        return any(e.later == part.member and e.earlier.chunk_index == earlier for e in self._edges)

    def _note(self, rule: Rule, parts: Sequence[Part], outcome: str, reason: str) -> None:
        self._log.append(
            Decision(
                rule=rule,
                chunks=tuple(sorted({part.chunk for part in parts})),
                subjects=tuple(part.member.key for part in parts),
                outcome=outcome,
                reason=reason,
            )
        )


def _dated(group: Sequence[Part]) -> set[int]:
    """Return the chunks that knew the date of a group: what they keep apart stays apart."""
    return {part.chunk for part in group if part.facts.date_start is not None}


def joint_facts(group: Sequence[Part]) -> Facts:
    """Return what all parts of an encounter state together."""
    return Facts.joined([part.facts for part in group])
