"""The inputs and outputs of a reconciliation.

Reasons and keys are free of PHI. Facts that are printed on the pages never appear in a repr.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from pipeline.core.identity import Identity
from pipeline.core.types import Span
from pipeline.providers.schemas import EncounterType, FoundEncounter


@dataclass(frozen=True, kw_only=True)
class ChunkReport:
    """The encounters that one chunk of pages contains, as the provider reported them."""

    chunk_index: int
    first_page: int
    last_page: int
    context_page: int | None
    """The page before `first_page` that was shown as context; None for the first chunk."""
    encounters: tuple[FoundEncounter, ...] = field(repr=False)
    unsupported_pages: tuple[int, ...] = ()
    row_index: int | None = None
    """The index of the report's chunk, if reports and chunks are numbered differently."""
    first_local: int = 0
    """The number of encounters that earlier splits of the same chunk report."""

    @property
    def row(self) -> int:
        """The index of the report's chunk."""
        return self.chunk_index if self.row_index is None else self.row_index


class Reason(StrEnum):
    """The reason why a text belongs to no encounter."""

    UNCLAIMED = "unclaimed"
    UNSUPPORTED_LANGUAGE = "unsupported_language"


class ReconciliationRule(StrEnum):
    """The rules of the reconciliation log."""

    JOIN_OVERLAP = "join_overlap"
    """Open on both sides, and both sides claim the same lines of the shared page."""
    JOIN_FACTS = "join_facts"
    """Open on both sides; key facts agree and none disagrees."""
    JOIN_SOLE = "join_sole"
    """The only encounter that is open on either side; no stated fact could disagree."""
    JOIN_SAME_ENCOUNTER = "join_same_encounter"
    """Not adjacent, but date, facility, type and patient are all stated and equal."""
    REFUSE_PATIENT = "refuse_patient"
    """The parts would have been joined, but they name different patients."""
    NO_PARTNER = "no_partner"
    """Open at the start of its chunk, but no earlier part continues into it."""
    CONTEXT_ONLY = "context_only"
    """Only on the context page, which the previous chunk reports."""
    CONTEXT_FILLS_GAP = "context_fills_gap"
    """The next chunk shows that unclaimed lines of this chunk begin its encounter."""
    CONFLICT = "conflict"
    """Two encounters claimed the same lines; the narrower claim has them."""
    NOTHING_LEFT = "nothing_left"
    """Every line that the encounter claimed belongs to another encounter or is blank."""
    PATIENT_MISMATCH = "patient_mismatch"
    """The encounter's identifiers disagree with the record's patient."""
    PATIENT_AMBIGUOUS = "patient_ambiguous"
    """The record names several people; the encounter's patient cannot be determined."""
    PATIENT_OF_RECORD = "patient_of_record"
    """Most of the record is another person's, and the encounter does not name the known patient."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One chunk's part of an encounter."""

    chunk_index: int
    encounter_index: int
    """0-based position in the chunk's reply."""

    @property
    def key(self) -> str:
        """The member's name in the log, free of PHI."""
        return f"c{self.chunk_index}.{self.encounter_index}"


@dataclass(frozen=True, kw_only=True)
class DiscoveredEncounter:
    """One encounter of the record."""

    key: str
    """`e1`, `e2` … in the order of the text; the same replies always give the same keys."""
    encounter_type: EncounterType
    facility: str | None = field(default=None, repr=False)
    clinician: str | None = field(default=None, repr=False)
    date_start: date | None = field(default=None, repr=False)
    date_end: date | None = field(default=None, repr=False)
    patient: Identity = field(default_factory=Identity, repr=False)
    spans: tuple[Span, ...]
    members: tuple[Member, ...]
    rules: tuple[str, ...] = ()
    """The engine's reason for each member's start as a new encounter."""
    mismatch: bool = False
    """The encounter names, or may belong to, another patient; it is not published."""
    unresolved: bool = False
    """The encounter began before its chunk, but no start was found; text may be missing."""

    @property
    def pages(self) -> tuple[int, ...]:
        """The encounter's pages, ascending, without repeats."""
        return tuple(sorted({span.page for span in self.spans}))


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """The encounter that a run of text belongs to."""

    span: Span
    encounter: str | None
    """The encounter's key; None for text of no encounter."""
    reason: Reason | None = None
    """Only for text of no encounter."""


@dataclass(frozen=True, kw_only=True)
class Edge:
    """A join of an encounter across two chunks."""

    earlier: Member
    later: Member
    rule: ReconciliationRule
    overlap: int
    """The number of characters of the shared page that both sides claim."""


@dataclass(frozen=True, kw_only=True)
class Chain:
    """An encounter that several chunks report."""

    encounter: str
    members: tuple[Member, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One row of the reconciliation log."""

    rule: ReconciliationRule
    chunks: tuple[int, ...]
    subjects: tuple[str, ...]
    """Keys of members (`c0.2`) or encounters (`e3`)."""
    outcome: str
    """`joined`, `separate`, `dropped`, `assigned` or `held`."""
    reason: str
    """A text free of PHI."""


@dataclass(frozen=True, kw_only=True)
class Reconciliation:
    """The encounters of a record, and the decisions that led to them."""

    encounters: tuple[DiscoveredEncounter, ...]
    assignments: tuple[Assignment, ...]
    chains: tuple[Chain, ...]
    decisions: tuple[Decision, ...]
    patient: Identity | None = field(repr=False)
    """The patient by the record's own text; None if no person has most of the record."""
