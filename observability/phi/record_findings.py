"""What holds for all results of a record: warnings, open passes, sources, codes, totals. PHI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q

from observability.phi.encounter_table import EncounterLine
from observability.phi.open_passes import open_passes
from pipeline.core.labels import incomplete_note
from pipeline.core.states import Step
from pipeline.models import EnrichedEntity, Reuse, ShellFile


@dataclass(frozen=True, kw_only=True)
class CodeCount:
    """One chosen code, and how many entities have it."""

    code: str
    """`system|code`."""
    display: str
    entities: int


@dataclass(frozen=True, kw_only=True)
class RecordFindings:
    """The facts beside encounters, narratives and lists."""

    incomplete_note: str
    open_passes: tuple[str, ...]
    """A sentence for each pass whose results are missing or incomplete."""
    warnings: tuple[str, ...]
    """What the passes warn of: held pages, unread parts, …"""
    reused: tuple[str, ...]
    """The records whose results this record reuses."""
    codes: tuple[CodeCount, ...]
    """The most frequent first."""
    entities: int
    """The entities that Pass 2 has."""
    entities_flagged: int

    @property
    def displays(self) -> dict[str, str]:
        """The words of each code."""
        return {each.code: each.display for each in reversed(self.codes)}


def record_findings(shell_file_id: UUID, encounters: Sequence[EncounterLine]) -> RecordFindings:
    """Return the findings of a record, in three statements; raises ShellFile.DoesNotExist."""
    steps = (Step.PASS1_5, Step.PASS2, Step.PASS3)
    warnings, *statuses = ShellFile.objects.values_list(
        "warnings", *(f"session__{step}_status" for step in steps)
    ).get(id=shell_file_id)
    counts = list(
        EnrichedEntity.objects.filter(shell_file_id=shell_file_id)
        .values("code_system", "code", "code_display")
        .annotate(entities=Count("id"), flagged=Count("id", filter=~Q(flags=[])))
        .order_by("-entities", "code_system", "code", "code_display")
        .values_list("code_system", "code", "code_display", "entities", "flagged")
    )
    return RecordFindings(
        incomplete_note=incomplete_note(
            sum(each.is_published for each in encounters), len(encounters)
        ),
        open_passes=open_passes(dict(zip(steps, statuses, strict=True))),
        warnings=tuple(str(each["message"]) for each in warnings),
        reused=_reused(shell_file_id),
        codes=tuple(
            CodeCount(code=f"{system}|{code}", display=display or "", entities=entities)
            for system, code, display, entities, _ in counts
            if code
        ),
        entities=sum(entities for *_, entities, _ in counts),
        entities_flagged=sum(flagged for *_, flagged in counts),
    )


def _reused(shell_file_id: UUID) -> tuple[str, ...]:
    sources = Reuse.objects.filter(shell_file_id=shell_file_id, source__isnull=False)
    ids = sources.order_by("source_id").values_list("source_id", flat=True).distinct()
    return tuple(map(str, ids))
