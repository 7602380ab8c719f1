"""The lists of a record across its encounters, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from uuid import UUID, uuid4

from pipeline.clinical.record_lists.allergies import NoDrugAllergies
from pipeline.clinical.record_lists.build import record_lists
from pipeline.clinical.record_lists.items import ListedFact, ListItem
from pipeline.clinical.record_lists.statements import KINDS, statement_of
from pipeline.clinical.record_lists.subjects import normalised
from pipeline.codes.exclusions import excludes1_notes
from pipeline.core.deadline import StepDeadline
from pipeline.execution.heartbeat import call_with_lease
from pipeline.models import Encounter, RecordListItem, ShellFile
from pipeline.models.codes import SystemKey
from pipeline.providers.local.names.lexicon import lexicon
from pipeline.stages.entity_facts import entities_by_encounter
from pipeline.transitions import Lease

Build = Callable[[], list[ListItem]]


def list_rows(lease: Lease, deadline: StepDeadline) -> list[RecordListItem]:
    """Return the problems, medications, allergies and lab series of a record.

    Runs one statement for the patient, one for the stays, one for the Excludes1 notes if two codes
    were chosen, one for the statements of no allergies if an allergy is stated, and those of
    `entities_by_encounter`. The pure part runs beside the heartbeat.
    """
    return rows_of(lease.shell_file_id, lambda build: call_with_lease(lease, deadline, build))


def rows_of(shell_file_id: UUID, run: Callable[[Build], list[ListItem]]) -> list[RecordListItem]:
    """Return the lists of a record; `run` runs the pure part. A review needs no step for it."""
    patient_id = ShellFile.objects.values_list("patient_id", flat=True).get(id=shell_file_id)
    facts = list(_facts(shell_file_id))
    codes = {
        code
        for fact in facts
        for system, _, code in [(fact.facts.code or "").partition("|")]
        if system == SystemKey.ICD10CM
    }
    notes = excludes1_notes(codes) if len(codes) > 1 else {}
    rows: list[RecordListItem] = []
    counts: dict[str, int] = {}
    none_known = _no_drug_allergies(shell_file_id, facts)
    for item in run(lambda: record_lists(facts, notes, none_known)):
        index = counts.get(item.kind, 0)
        counts[item.kind] = index + 1
        rows.append(_row(item, index, shell_file_id, patient_id))
    return rows


def _no_drug_allergies(shell_file_id: UUID, facts: Sequence[ListedFact]) -> NoDrugAllergies | None:
    named = {
        normalised(str(name))
        for each in facts
        if each.facts.category == "allergy"
        for name in (each.facts.name, each.attribute("substance"))
        if name
    }
    drugs = frozenset(name for name in named if _is_drug(name))
    if not drugs:
        return None
    days = Encounter.objects.filter(
        shell_file_id=shell_file_id, pass1_result__no_known_allergies=True
    ).values_list("encounter_date_start", flat=True)
    return NoDrugAllergies(days=tuple(days), drugs=drugs)


def _is_drug(name: str) -> bool:
    return any(term.category == "medication" for term in lexicon().lookup(name))


def _facts(shell_file_id: UUID) -> Iterator[ListedFact]:
    ends = dict(
        Encounter.objects.filter(shell_file_id=shell_file_id).values_list(
            "id", "encounter_date_end"
        )
    )
    entities = entities_by_encounter(shell_file_id, with_attributes=True, categories=KINDS)
    for index, (encounter_id, known) in enumerate(entities):
        for each in known:
            fact = ListedFact(
                facts=each.facts,
                entity_id=each.id,
                encounter_id=encounter_id,
                encounter_index=index,
                encounter_end=ends[encounter_id],
            )
            # No list has the other facts; a large record has tens of thousands of them.
            if statement_of(fact) is not None:
                yield fact


def _row(item: ListItem, index: int, shell_file_id: UUID, patient_id: UUID) -> RecordListItem:
    system, _, code = (item.code or "").partition("|")
    return RecordListItem(
        id=uuid4(),
        shell_file_id=shell_file_id,
        patient_id=patient_id,
        kind=item.kind.value,
        item_index=index,
        name=item.name,
        code_system=system or None,
        code=code or None,
        summary=item.summary,
        entity_ids=list(item.entity_ids),
        encounter_ids=list(item.encounter_ids),
        contradictions=[each.as_json() for each in item.contradictions],
    )
