"""Chunk reports joined into the encounters of a record, deterministically and without a database.

The result does not depend on the order in which chunks arrive. Every character of every non-blank
page is in exactly one assignment. No decision contains PHI.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from pipeline.core.errors import ErrorCode, ReplyError
from pipeline.core.identity import Identity
from pipeline.core.types import PageText, Span
from pipeline.stages.pass05.encounter_facts import Facts
from pipeline.stages.pass05.groups import EncounterGroup, EncounterPart
from pipeline.stages.pass05.line_claims import (
    Claim,
    line_starts,
    resolve,
    spans_from_lines,
    united,
    without_gaps,
)
from pipeline.stages.pass05.linking import Joins
from pipeline.stages.pass05.patient_check import held_encounters
from pipeline.stages.pass05.types import (
    Assignment,
    Chain,
    ChunkReport,
    Decision,
    DiscoveredEncounter,
    Edge,
    Member,
    Reason,
    Reconciliation,
    ReconciliationRule,
)

__all__ = [
    "Assignment",
    "Chain",
    "ChunkReport",
    "Decision",
    "DiscoveredEncounter",
    "Edge",
    "Member",
    "Reason",
    "Reconciliation",
    "ReconciliationRule",
    "check",
    "reconcile",
    "spans_from_lines",
]


def check(report: ChunkReport, pages: Mapping[int, PageText] | None = None) -> None:
    """Raise ReplyError (PARSE_SCHEMA) if a reply names pages or lines that were not shown.

    Lines are checked only if `pages` are given. A last line past the end of its page is allowed.
    """
    shown = set(range(report.first_page, report.last_page + 1))
    if report.context_page is not None:
        shown.add(report.context_page)
    if not shown.issuperset(report.unsupported_pages):
        raise ReplyError("a page outside the chunk is reported", code=ErrorCode.PARSE_SCHEMA)
    for found in report.encounters:
        for lines in found.spans:
            if lines.page not in shown:
                raise ReplyError(
                    "an encounter names a page outside the chunk", code=ErrorCode.PARSE_SCHEMA
                )
            page = None if pages is None else pages.get(lines.page)
            past = page is not None and lines.first_line > len(line_starts(page.text))
            if lines.first_line > lines.last_line or past:
                raise ReplyError(
                    "an encounter names lines that its page does not have",
                    code=ErrorCode.PARSE_SCHEMA,
                )


def reconcile(
    reports: Sequence[ChunkReport],
    pages: Mapping[int, PageText],
    *,
    known: Mapping[str, str] | Identity | None = None,
    key: bytes = b"",
) -> Reconciliation:
    """Join the reports of all chunks of a record.

    1. Every line goes to one encounter: own chunk before context, narrow claim before wide claim.
    2. Encounters open at an edge are joined across it; a chain can span any number of chunks.
    3. Parts with equal date, facility, type and patient are joined wherever they are.
    4. Each encounter's patient is compared with the record's patient.

    `known` is the record's patient, as an Identity or as the digests that `identity.digests` made
    with `key`. Without `known`, the text of the record decides who the patient is.
    Raises ValueError if the chunks do not follow each other.
    """
    ordered = _in_order(reports)
    log: list[Decision] = []
    parts = _parts(ordered, pages, log)
    joins = Joins(parts, log)
    for earlier, later in pairwise(ordered):
        joins.across(earlier.chunk_index, later.chunk_index)
    joins.same_encounters()
    groups = joins.groups()
    owned = {
        f"e{n}": united(s for p in group.parts for s in p.claimed)
        for n, group in enumerate(groups, 1)
    }
    tiles = without_gaps(owned, pages)
    spans: defaultdict[str | None, list[Span]] = defaultdict(list)
    for span, owner in tiles:
        spans[owner].append(span)
    encounters = [
        _encounter(name, group, spans[name], joins.unmatched)
        for name, group in zip(owned, groups, strict=True)
    ]
    patient, held = held_encounters(encounters, known, key, log)
    unsupported = {page for report in ordered for page in report.unsupported_pages}
    return Reconciliation(
        encounters=tuple(replace(e, mismatch=e.key in held) for e in encounters),
        assignments=tuple(
            Assignment(span=span, encounter=owner, reason=_reason(span, owner, unsupported))
            for span, owner in tiles
        ),
        chains=tuple(
            Chain(encounter=e.key, members=e.members, edges=group.edges)
            for e, group in zip(encounters, groups, strict=True)
            if len({m.chunk_index for m in e.members}) > 1
        ),
        decisions=tuple(log),
        patient=patient,
    )


def _in_order(reports: Sequence[ChunkReport]) -> list[ChunkReport]:
    ordered = sorted(reports, key=lambda report: report.chunk_index)
    for earlier, later in pairwise(ordered):
        if later.first_page != earlier.last_page + 1:
            raise ValueError(
                f"chunk {later.chunk_index} does not follow chunk {earlier.chunk_index}"
            )
    return ordered


def _parts(
    reports: Sequence[ChunkReport], pages: Mapping[int, PageText], log: list[Decision]
) -> list[EncounterPart]:
    """Resolve every claim; return the parts with text of their own, in the order of the text."""
    parts: list[EncounterPart] = []
    claims: list[Claim] = []
    for report in reports:
        for index, found in enumerate(report.encounters):
            member = Member(chunk_index=report.chunk_index, encounter_index=index)
            spans = spans_from_lines(found.spans, pages)
            own = [s for s in spans if report.first_page <= s.page <= report.last_page]
            shown = tuple(s for s in spans if s.page == report.context_page)
            if not own and shown:
                log.append(
                    _drop(ReconciliationRule.CONTEXT_ONLY, member, "the previous chunk reports it")
                )
                continue
            owner = len(parts)
            parts.append(EncounterPart(member, found, Facts.of(found), shown))
            claims += [Claim(span, owner) for span in own]
            if found.open_at_start:
                claims += [Claim(span, owner, own=False) for span in shown]
    won, collisions = resolve(claims)
    for winner, loser in sorted(collisions):
        log.append(
            Decision(
                rule=ReconciliationRule.CONFLICT,
                chunks=(parts[winner].chunk,),
                subjects=(parts[winner].member.key, parts[loser].member.key),
                outcome="assigned",
                reason="both claim the same lines; the narrower claim has them",
            )
        )
    kept = []
    for owner, part in enumerate(parts):
        part.claimed = won.get(owner, ())
        shared = {span.page for span in part.context}
        if all(span.page in shared for span in part.claimed):
            log.append(
                _drop(ReconciliationRule.NOTHING_LEFT, part.member, "no line of its own is left")
            )
            continue
        if any(span.page in shared for span in part.claimed):
            log.append(
                Decision(
                    rule=ReconciliationRule.CONTEXT_FILLS_GAP,
                    chunks=(part.chunk - 1, part.chunk),
                    subjects=(part.member.key,),
                    outcome="assigned",
                    reason="lines left over on the shared page begin this encounter",
                )
            )
        kept.append(part)
    return sorted(kept, key=lambda part: part.order)


def _drop(rule: ReconciliationRule, member: Member, reason: str) -> Decision:
    return Decision(
        rule=rule,
        chunks=(member.chunk_index,),
        subjects=(member.key,),
        outcome="dropped",
        reason=reason,
    )


def _encounter(
    name: str, group: EncounterGroup, spans: Sequence[Span], unmatched: set[Member]
) -> DiscoveredEncounter:
    facts = group.facts
    return DiscoveredEncounter(
        key=name,
        encounter_type=facts.encounter_type,
        facility=facts.facility,
        clinician=facts.clinician,
        date_start=facts.date_start,
        date_end=facts.date_end,
        patient=facts.patient,
        spans=tuple(spans),
        members=tuple(part.member for part in group.parts),
        rules=tuple(dict.fromkeys(p.encounter.rule for p in group.parts if p.encounter.rule)),
        unresolved=group.parts[0].member in unmatched,
    )


def _reason(span: Span, owner: str | None, unsupported: set[int]) -> Reason | None:
    if owner is not None:
        return None
    return Reason.UNSUPPORTED_LANGUAGE if span.page in unsupported else Reason.UNCLAIMED
