"""The tables. Modules import one way: documents, incidents, record_batches → jobs, encounters →
sessions → work_item → discovery, entities → calls, clinical. The names of tables and columns are
those of the source documents, so that their SQL runs unchanged.
"""

from __future__ import annotations

from pipeline.models.assertions import Certainty, Experiencer, MedicationStatus, Temporality
from pipeline.models.calls import OUTCOME_LATE, OUTCOME_OK, ProviderCall, ProviderPayload
from pipeline.models.clinical import (
    ClinicalMetrics,
    EnrichedEntity,
    NarrativeMetrics,
    NarrativeResult,
    NarrativeSentence,
    RecordListItem,
    RecordListKind,
    ZoneResult,
)
from pipeline.models.code_index import CodeEntry, CodeVector, CodeWord
from pipeline.models.codes import Code, CodeCandidate, CodeSystem, CodeTerm, SystemKey
from pipeline.models.discovery import (
    HELD_TEXT,
    CascadeChain,
    Chunk,
    DiscoveryMetrics,
    DiscoverySession,
    PageAssignment,
    PendingEncounter,
    PendingStatus,
    ReconciliationEntry,
)
from pipeline.models.documents import (
    FileSweep,
    Page,
    PageSource,
    Patient,
    ProcessedDocument,
    ShellFile,
)
from pipeline.models.encounters import Encounter
from pipeline.models.entities import (
    RESULTS,
    REVIEWER_ENGINE,
    AlignmentKind,
    Batch,
    EncounterResult,
    Entity,
    EntityMetrics,
    ReviewVerdict,
)
from pipeline.models.incidents import Incident, Pause, PeriodicTaskRun
from pipeline.models.jobs import IncidentJob, Job
from pipeline.models.metric_counts import MetricCount
from pipeline.models.rate_limits import RateLimitCounts
from pipeline.models.record_batches import RecordBatch
from pipeline.models.reuse import ExtractionFlight, KeptReply, Reuse
from pipeline.models.review import (
    DecisionAction,
    LockedField,
    ReviewDecision,
    ReviewItem,
    ReviewLane,
    ReviewReason,
    ReviewRound,
    ReviewStatus,
)
from pipeline.models.sessions import Session, Summary

__all__ = [
    "HELD_TEXT",
    "OUTCOME_LATE",
    "OUTCOME_OK",
    "RESULTS",
    "REVIEWER_ENGINE",
    "AlignmentKind",
    "Batch",
    "CascadeChain",
    "Certainty",
    "Chunk",
    "ClinicalMetrics",
    "Code",
    "CodeCandidate",
    "CodeEntry",
    "CodeSystem",
    "CodeTerm",
    "CodeVector",
    "CodeWord",
    "DecisionAction",
    "DiscoveryMetrics",
    "DiscoverySession",
    "Encounter",
    "EncounterResult",
    "EnrichedEntity",
    "Entity",
    "EntityMetrics",
    "Experiencer",
    "ExtractionFlight",
    "FileSweep",
    "Incident",
    "IncidentJob",
    "Job",
    "KeptReply",
    "LockedField",
    "MedicationStatus",
    "MetricCount",
    "NarrativeMetrics",
    "NarrativeResult",
    "NarrativeSentence",
    "Page",
    "PageAssignment",
    "PageSource",
    "Patient",
    "Pause",
    "PendingEncounter",
    "PendingStatus",
    "PeriodicTaskRun",
    "ProcessedDocument",
    "ProviderCall",
    "ProviderPayload",
    "RateLimitCounts",
    "ReconciliationEntry",
    "RecordBatch",
    "RecordListItem",
    "RecordListKind",
    "Reuse",
    "ReviewDecision",
    "ReviewItem",
    "ReviewLane",
    "ReviewReason",
    "ReviewRound",
    "ReviewStatus",
    "ReviewVerdict",
    "Session",
    "ShellFile",
    "Summary",
    "SystemKey",
    "Temporality",
    "ZoneResult",
]
