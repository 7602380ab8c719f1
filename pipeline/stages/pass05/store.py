"""The rows of Pass 0.5: the stored plan, and the single publication of all results.

`plan` runs in a fenced transaction of its own. Call `publish` and `fail` inside the fence that
ends the step.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings

from pipeline.core.errors import ErrorCode
from pipeline.core.identity import compare_digests, digests
from pipeline.core.types import PageText
from pipeline.models import (
    HELD_TEXT,
    CascadeChain,
    Chunk,
    DiscoverySession,
    Encounter,
    PageAssignment,
    Patient,
    PendingEncounter,
    PendingStatus,
    ReconciliationEntry,
    Session,
    ShellFile,
    Summary,
)
from pipeline.models.insertion import insert_rows
from pipeline.providers.schemas import FoundEncounter
from pipeline.stages.pass05 import types
from pipeline.stages.pass05.encounter_facts import iso_date
from pipeline.stages.pass05.line_claims import spans_from_lines
from pipeline.stages.record_warnings import warn
from pipeline.transitions import Failure, Lease, begin_discovery, fenced, settle_discovery

logger = logging.getLogger(__name__)

NAMES_ANOTHER = "These pages name another patient. They are held for review and not published."
IN_DOUBT = (
    "These pages may belong to a different patient who is named in this record. They are held for"
    " review and not published."
)
HEADLESS = (
    "An encounter on these pages seems to have started earlier, but no start was found. Its"
    " beginning may be missing."
)


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """Encounters that broke the schema of a reply and were left out."""

    count: int = 0
    pages: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The replies of all chunks of a record, which a publication writes out."""

    session: DiscoverySession
    chunks: Sequence[Chunk]
    reports: Sequence[types.ChunkReport]
    pages: Mapping[int, PageText]
    language: str | None
    """The most frequent language tag of the replies; None if no reply states a valid tag."""
    unsupported: Sequence[int]
    """Pages in a language that the engine does not read."""
    rejected: Rejected = Rejected()
    unclear_dates: Sequence[int] = ()
    """Pages with a date of service whose order of day and month nothing proves."""


def plan(
    lease: Lease, pages: Mapping[int, PageText], chunk_pages: int
) -> tuple[DiscoverySession, list[Chunk]]:
    """Return the record's discovery session and chunks; they are stored before the first call.

    A stored plan never changes, even if the settings change later. Chunks without text are left
    out but keep their index. A record without text has no chunk.
    """
    with fenced(lease):
        session, made = DiscoverySession.objects.get_or_create(
            shell_file_id=lease.shell_file_id,
            defaults={
                "processing_session_id": lease.session_id,
                "total_pages": len(pages),
                "total_chunks": 0,
            },
        )
        if made:
            chunks = [
                Chunk(
                    discovery_session=session,
                    processing_session_id=lease.session_id,
                    chunk_index=index,
                    page_range_start=first,
                    page_range_end=last,
                    context_page=first - 1 if first > 1 else None,
                    # The setting has the name of Pass 1, and is for the work items of every pass.
                    max_attempts=settings.PASS1_MAX_RETRIES,
                )
                for index, (first, last) in enumerate(_ranges(pages, chunk_pages))
                if any(pages[n].text.strip() for n in range(first, last + 1))
            ]
            insert_rows(chunks)
            DiscoverySession.objects.filter(id=session.id).update(total_chunks=len(chunks))
            session.total_chunks = len(chunks)
        begin_discovery(lease, session.id)
    return session, list(session.chunks.order_by("chunk_index"))


def digest_key() -> bytes:
    """Return the key that digests identifiers; the key changes with SECRET_KEY."""
    return hashlib.sha256(b"medproc.identity:" + settings.SECRET_KEY.encode()).digest()


def key_id() -> str:
    """Return the id of today's key; stored digests of another key carry another id."""
    return hashlib.sha256(b"medproc.identity.key:" + digest_key()).hexdigest()[:8]


def known_digests(lease: Lease) -> dict[str, str] | None:
    """Return the digests of the identifiers that this patient's earlier records carried.

    Digests of another key cannot be compared, so they count as unknown.
    """
    return _comparable(Patient.objects.get(shell_files=lease.shell_file_id)) or None


def locked_digests(lease: Lease) -> dict[str, str] | None:
    """Lock the patient's row until commit and return its current digests.

    Without the lock, two first records of a patient could be published at once. Each of them would
    define the patient, even if they name different people. `no_key` lets other transactions
    reference the patient's row.
    """
    patients = Patient.objects.select_for_update(no_key=True)
    return _comparable(patients.get(shell_files=lease.shell_file_id)) or None


def fail(lease: Lease, session: DiscoverySession, failure: Failure) -> None:
    """End a pass that publishes nothing."""
    settle_discovery(
        lease,
        session.id,
        ok=False,
        error_code=failure.code,
        error_message=failure.message,
    )


def publish(lease: Lease, findings: Findings, reconciliation: types.Reconciliation) -> None:
    """Write every row of the pass: encounters, assignments, sightings, chains, decisions."""
    session = findings.session
    shell_file = ShellFile.objects.select_related("patient").get(id=lease.shell_file_id)
    encounters = _encounters(shell_file, reconciliation)
    Encounter.objects.bulk_create(encounters.values())
    chains = _chains(findings, reconciliation, encounters)
    CascadeChain.objects.bulk_create(chains.values())
    PendingEncounter.objects.bulk_create(_sightings(findings, reconciliation, encounters, chains))
    held = {e.key for e in reconciliation.encounters if e.mismatch}
    PageAssignment.objects.bulk_create(
        PageAssignment(
            discovery_session=session,
            healthcare_encounter=encounters.get(a.encounter) if a.encounter else None,
            page_number=a.span.page,
            start_offset=a.span.start,
            end_offset=a.span.end,
            reason=HELD_TEXT if a.encounter in held else a.reason,
        )
        for a in reconciliation.assignments
    )
    ReconciliationEntry.objects.bulk_create(
        ReconciliationEntry(
            discovery_session=session,
            decision_index=index,
            rule=d.rule,
            subjects=list(d.subjects),
            outcome=d.outcome,
            reason=d.reason,
        )
        for index, d in enumerate(reconciliation.decisions)
    )
    Chunk.objects.filter(discovery_session=session).update(output=None)
    settle_discovery(
        lease,
        session.id,
        ok=True,
        encounters_found=len(encounters),
        encounters_held=len(held),
    )
    _note_on_record(lease, findings, shell_file, reconciliation)


def _ranges(pages: Mapping[int, PageText], size: int) -> list[tuple[int, int]]:
    return [(first, min(first + size - 1, len(pages))) for first in range(1, len(pages) + 1, size)]


def _encounters(
    shell_file: ShellFile, reconciliation: types.Reconciliation
) -> dict[str, Encounter]:
    published = [e for e in reconciliation.encounters if not e.mismatch]
    return {
        e.key: Encounter(
            shell_file=shell_file,
            patient=shell_file.patient,
            encounter_index=index,
            encounter_type=e.encounter_type,
            facility_name=e.facility,
            clinician_name=e.clinician,
            encounter_date_start=e.date_start,
            encounter_date_end=e.date_end,
            page_start=e.pages[0],
            page_end=e.pages[-1],
            page_count=len(e.pages),
            character_count=sum(len(span) for span in e.spans),
        )
        for index, e in enumerate(published, start=1)
    }


def _chains(
    findings: Findings, reconciliation: types.Reconciliation, encounters: Mapping[str, Encounter]
) -> dict[str, CascadeChain]:
    rows = {report.chunk_index: report.row for report in findings.reports}
    return {
        chain.encounter: CascadeChain(
            discovery_session=findings.session,
            healthcare_encounter=encounters.get(chain.encounter),
            chunk_first=rows[chain.members[0].chunk_index],
            chunk_last=rows[chain.members[-1].chunk_index],
            links=[
                {
                    "chunk": rows[edge.earlier.chunk_index],
                    "next_chunk": rows[edge.later.chunk_index],
                    "rule": edge.rule,
                    "overlap": edge.overlap,
                }
                for edge in chain.edges
            ],
        )
        for chain in reconciliation.chains
    }


def _sightings(
    findings: Findings,
    reconciliation: types.Reconciliation,
    encounters: Mapping[str, Encounter],
    chains: Mapping[str, CascadeChain],
) -> list[PendingEncounter]:
    by_member = {member: e for e in reconciliation.encounters for member in e.members}
    chunk_ids: dict[int, UUID] = {chunk.chunk_index: chunk.id for chunk in findings.chunks}
    rows = []
    for report in findings.reports:
        for index, seen in enumerate(report.encounters):
            member = types.Member(chunk_index=report.chunk_index, encounter_index=index)
            e = by_member.get(member)
            rows.append(
                PendingEncounter(
                    id=uuid4(),
                    discovery_session=findings.session,
                    chunk_id=chunk_ids[report.row],
                    local_index=report.first_local + index,
                    status=_sighting_status(e, member),
                    cascade_chain=chains.get(e.key) if e else None,
                    healthcare_encounter=encounters.get(e.key) if e else None,
                    error_code=ErrorCode.PATIENT_MISMATCH if e and e.mismatch else None,
                    **_as_seen(seen, findings.pages),
                )
            )
    return rows


def _sighting_status(e: types.DiscoveredEncounter | None, member: types.Member) -> PendingStatus:
    if e is None:
        return PendingStatus.DROPPED
    if e.mismatch:
        return PendingStatus.HELD
    return PendingStatus.PUBLISHED if member == e.members[0] else PendingStatus.JOINED


def _as_seen(seen: FoundEncounter, pages: Mapping[int, PageText]) -> dict[str, Any]:
    return {
        "encounter_type": seen.encounter_type,
        "facility_name": seen.facility,
        "clinician_name": seen.clinician,
        "encounter_date_start": iso_date(seen.date_start),
        "encounter_date_end": iso_date(seen.date_end),
        "patient_name": seen.patient_name,
        "patient_birth_date": iso_date(seen.patient_birth_date),
        "patient_identifier": seen.patient_identifier,
        "spans": [[s.page, s.start, s.end] for s in spans_from_lines(seen.spans, pages)],
        "open_at_start": seen.open_at_start,
        "open_at_end": seen.open_at_end,
        "split_rule": seen.rule or None,
    }


def _note_on_record(
    lease: Lease, findings: Findings, shell_file: ShellFile, reconciliation: types.Reconciliation
) -> None:
    ShellFile.objects.filter(id=shell_file.id).update(language=findings.language)
    _learn(shell_file.patient, reconciliation)
    review = False
    for message, pages in _held_pages(reconciliation):
        review = True
        warn(lease.shell_file_id, ErrorCode.PATIENT_MISMATCH, message, pages)
    headless = sorted({p for e in reconciliation.encounters if e.unresolved for p in e.pages})
    if headless:
        review = True
        # No error code describes a missing beginning; like a damaged page, it leaves a gap.
        warn(lease.shell_file_id, ErrorCode.INPUT_INVALID, HEADLESS, headless)
    if findings.unsupported:
        review = True
        warn(
            lease.shell_file_id,
            ErrorCode.LANGUAGE_UNSUPPORTED,
            "These pages are in a language that the engine does not read.",
            findings.unsupported,
        )
    if findings.rejected.count:
        review = True
        warn(
            lease.shell_file_id,
            ErrorCode.ITEM_REJECTED,
            "Encounters of a reply broke the schema and were left out.",
            findings.rejected.pages,
            count=findings.rejected.count,
        )
    if findings.unclear_dates:
        review = True
        warn(
            lease.shell_file_id,
            ErrorCode.DATE_UNCLEAR,
            "Dates of service can be read in two orders of day and month and were left out.",
            findings.unclear_dates,
        )
    if not reconciliation.encounters:
        review = True
        warn(
            lease.shell_file_id,
            ErrorCode.NO_ENTITIES_FOUND,
            "No healthcare encounter was found in this record.",
        )
    if review:
        Session.objects.filter(id=lease.session_id).update(requires_human_review=True)
        Summary.objects.filter(shell_file_id=lease.shell_file_id).update(
            manual_review_required=True
        )


def _held_pages(reconciliation: types.Reconciliation) -> Iterator[tuple[str, list[int]]]:
    """Yield each message about held pages with the pages; pages of another patient come first."""
    named = {
        key
        for d in reconciliation.decisions
        if d.rule is types.ReconciliationRule.PATIENT_MISMATCH
        for key in d.subjects
    }
    held = [e for e in reconciliation.encounters if e.mismatch]
    for message, encounters in (
        (NAMES_ANOTHER, [e for e in held if e.key in named]),
        (IN_DOUBT, [e for e in held if e.key not in named]),
    ):
        if encounters:
            yield message, sorted({page for e in encounters for page in e.pages})


def _comparable(patient: Patient) -> dict[str, str]:
    """Return a patient's digests if today's key made them; digests without a key id count too."""
    stored = dict(patient.identity_digests)
    return stored if stored.pop("key", key_id()) == key_id() else {}


def _learn(patient: Patient, reconciliation: types.Reconciliation) -> None:
    """Add the record's statements about its patient, unless they contradict the known facts."""
    if reconciliation.patient is None:
        return
    known, stated = _comparable(patient), digests(reconciliation.patient, digest_key())
    if known and not compare_digests(known, stated).agrees:
        return
    if patient.identity_digests and not known:
        logger.warning(
            "patient %s: the known digests belong to another SECRET_KEY and are replaced",
            patient.id,
        )
    Patient.objects.filter(id=patient.id).update(
        identity_digests={**stated, **known, "key": key_id()}
    )
