"""The values that go into a reconciliation and come out of it.

May import `types`, `identity` and the reply's schema. Reasons and keys are free of PHI; what is
printed on the pages never shows in a repr.
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
    """What one chunk of pages was found to hold."""

    chunk_index: int
    first_page: int
    last_page: int
    context_page: int | None
    """The page before `first_page` that was shown as context; None for the first chunk."""
    encounters: tuple[FoundEncounter, ...] = field(repr=False)
    unsupported_pages: tuple[int, ...] = ()
    row_index: int | None = None
    """The chunk that it is of, where reports are numbered apart from their chunks."""
    first_local: int = 0
    """How many encounters earlier parts of the same chunk report."""

    @property
    def row(self) -> int:
        """The index of its chunk."""
        return self.chunk_index if self.row_index is None else self.row_index


class Reason(StrEnum):
    """Why text is assigned to no encounter."""

    UNCLAIMED = "unclaimed"
    UNSUPPORTED_LANGUAGE = "unsupported_language"


class Rule(StrEnum):
    """The rules of the reconciliation log."""

    JOIN_OVERLAP = "join_overlap"
    """Open on both sides; both claim the same lines of the shared page."""
    JOIN_FACTS = "join_facts"
    """Open on both sides; key facts agree and none disagrees."""
    JOIN_SOLE = "join_sole"
    """The only encounter open on either side; no fact is stated that could disagree."""
    JOIN_SAME_ENCOUNTER = "join_same_encounter"
    """Not adjacent; date, facility, type and patient are all stated and equal."""
    REFUSE_PATIENT = "refuse_patient"
    """Would have been joined, but names another patient."""
    NO_PARTNER = "no_partner"
    """Open at the start of its chunk, and nothing before it goes on into it."""
    CONTEXT_ONLY = "context_only"
    """Stands on the context page alone, which is the previous chunk's to report."""
    CONTEXT_FILLS_GAP = "context_fills_gap"
    """The next chunk saw that lines left over by this one begin its encounter."""
    CONFLICT = "conflict"
    """Two encounters claimed the same lines; the narrower claim has them."""
    NOTHING_LEFT = "nothing_left"
    """Every line that it claimed belongs to another encounter or is blank."""
    PATIENT_MISMATCH = "patient_mismatch"
    """Its identifiers disagree with the record's patient."""
    PATIENT_AMBIGUOUS = "patient_ambiguous"
    """The record names several people; that it is the patient's cannot be told."""
    PATIENT_OF_RECORD = "patient_of_record"
    """Most of the record is somebody else's, and it does not itself name the known patient."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One chunk's part of an encounter."""

    chunk_index: int
    encounter_index: int
    """0-based position in the chunk's reply."""

    @property
    def key(self) -> str:
        """A name for the log, free of PHI."""
        return f"c{self.chunk_index}.{self.encounter_index}"


@dataclass(frozen=True, kw_only=True)
class Encounter:
    """One encounter of the record."""

    key: str
    """`e1`, `e2` … in the order of the text; stable for the same replies."""
    encounter_type: EncounterType
    facility: str | None = field(default=None, repr=False)
    clinician: str | None = field(default=None, repr=False)
    date_start: date | None = field(default=None, repr=False)
    date_end: date | None = field(default=None, repr=False)
    patient: Identity = field(default_factory=Identity, repr=False)
    spans: tuple[Span, ...]
    members: tuple[Member, ...]
    rules: tuple[str, ...] = ()
    """Why each member was split off, in the words of the engine."""
    mismatch: bool = False
    """It names or may be of another than the record's patient; it is not published."""
    unresolved: bool = False
    """It began before its chunk and no partner was found; its beginning may be missing."""

    @property
    def pages(self) -> tuple[int, ...]:
        """Its pages, ascending, without repeats."""
        return tuple(sorted({span.page for span in self.spans}))


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Where a run of text belongs."""

    span: Span
    encounter: str | None
    """The encounter's key; None for text of no encounter."""
    reason: Reason | None = None
    """Only for text of no encounter."""


@dataclass(frozen=True, kw_only=True)
class Edge:
    """Where an encounter crosses from one chunk into another."""

    earlier: Member
    later: Member
    rule: Rule
    overlap: int
    """Characters of the shared page that both sides claim."""


@dataclass(frozen=True, kw_only=True)
class Chain:
    """An encounter that several chunks report."""

    encounter: str
    members: tuple[Member, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One row of the reconciliation log."""

    rule: Rule
    chunks: tuple[int, ...]
    subjects: tuple[str, ...]
    """Keys of members (`c0.2`) or encounters (`e3`)."""
    outcome: str
    """`joined`, `separate`, `dropped`, `assigned` or `held`."""
    reason: str
    """Words free of PHI."""


@dataclass(frozen=True, kw_only=True)
class Reconciliation:
    """The encounters of a record and how they came about."""

    encounters: tuple[Encounter, ...]
    assignments: tuple[Assignment, ...]
    chains: tuple[Chain, ...]
    decisions: tuple[Decision, ...]
    patient: Identity | None = field(repr=False)
    """Whose record it is by its own text; None where nobody holds most of it."""
