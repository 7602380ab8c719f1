"""Every value that a status, step or queue column can take, and which moves are allowed.

Imports nothing of the project. The enums are plain `TextChoices`, so that models, transitions,
console and documentation read the same words (`spec.md` G).
"""

from __future__ import annotations

from django.db.models import TextChoices


class Step(TextChoices):
    """A pass of the pipeline; also the name of its RQ queue and of `failure_stage`."""

    PAGES = "pages"
    """Pages are counted, read, and OCR'd where the text layer is missing."""
    PASS05 = "pass05"
    """Healthcare encounters are discovered."""
    PASS1 = "pass1"
    """Clinical entities are detected."""
    PASS1_5 = "pass1_5"
    """Codes are shortlisted; no AI call."""
    PASS2 = "pass2"
    """Entities are enriched."""
    PASS3 = "pass3"
    """A narrative is written."""


class ShellFileStatus(TextChoices):
    """The last completed pass of a record; never a failure (`spec.md` point 9)."""

    UPLOADED = "uploaded"
    PAGES_COMPLETE = "pages_complete"
    PASS05_COMPLETE = "pass05_complete"
    PASS1_COMPLETE = "pass1_complete"
    PASS1_5_COMPLETE = "pass1_5_complete"
    PASS2_COMPLETE = "pass2_complete"
    COMPLETED = "completed"


class JobStatus(TextChoices):
    """Where a job stands; `current_step` says with which pass."""

    PENDING = "pending"
    """Waits for a worker; whoever claims it first has it."""
    PROCESSING = "processing"
    """A worker holds its lease."""
    PARKED = "parked"
    """Waits for a time, or for the end of an incident or pause; holds no worker."""
    COMPLETED = "completed"
    FAILED = "failed"
    """A step failed for good; an operator or the retry delay may move it to pending."""
    DEAD = "dead"
    """Crashed too often; only an operator moves it on."""
    CANCELLED = "cancelled"


class RecordBatchStatus(TextChoices):
    """A batch of records that were submitted together."""

    PROCESSING = "processing"
    """A record of it has not ended."""
    COMPLETED = "completed"
    """Every record completed."""
    FAILED = "failed"
    """All have ended, and not every one completed."""


class SessionStatus(TextChoices):
    """The AI session of a record."""

    INITIATED = "initiated"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PassStatus(TextChoices):
    """One pass of a session (`pass05_status` and its siblings)."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


class WorkStatus(TextChoices):
    """A batch, a chunk or an encounter result."""

    PENDING = "pending"
    """Not begun, or given back."""
    PROCESSING = "processing"
    """Begun: a call of it is in flight, or its retry waits."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class IncidentKind(TextChoices):
    """What a provider does to work for one of its models (`design.md` §8)."""

    OUTAGE = "outage"
    """It fails or does not answer."""
    THROTTLING = "throttling"
    """It refuses for the minute's quota; the gate paces the calls, so nothing is parked."""
    QUOTA = "quota"
    """A day's or a spend quota is used up."""
    CREDENTIALS = "credentials"
    """The key is refused."""


class IncidentState(TextChoices):
    """Whether an incident lasts."""

    OPEN = "open"
    CLOSED = "closed"


class SummaryStatus(TextChoices):
    """`ai_processing_summary.processing_status`: how far the record came."""

    INITIALIZED = "initialized"
    PASS1_ONLY = "pass1_only"
    PASS1_PASS2 = "pass1_pass2"
    COMPLETE_PIPELINE = "complete_pipeline"
    FAILED = "failed"


class WorkflowStep(TextChoices):
    """`ai_processing_sessions.workflow_step`: the pass that a session is in."""

    PAGE_EXTRACTION = "page_extraction"
    ENCOUNTER_DISCOVERY = "encounter_discovery"
    ENTITY_DETECTION = "entity_detection"
    CODE_SHORTLISTING = "code_shortlisting"
    CLINICAL_ENRICHMENT = "clinical_enrichment"
    NARRATIVE_GENERATION = "narrative_generation"


WORKFLOW_STEP: dict[Step, WorkflowStep] = dict(zip(Step, WorkflowStep, strict=True))
"""The session's word for each step."""

COMPLETES: dict[Step, ShellFileStatus] = dict(zip(Step, list(ShellFileStatus)[1:], strict=True))
"""What `shell_files.status` becomes when a step completes."""

CALLING_STEPS = frozenset({Step.PASS05, Step.PASS1, Step.PASS2, Step.PASS3})
"""Passes that ask the provider; an incident of it holds these and no other."""

HOLDING_KINDS: tuple[IncidentKind, ...] = (
    IncidentKind.QUOTA,
    IncidentKind.CREDENTIALS,
    IncidentKind.OUTAGE,
)
"""Incidents while which work is parked; where several are open, the first of these is named."""

JOB_TERMINAL = frozenset(
    {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD, JobStatus.CANCELLED}
)
WORK_TERMINAL = frozenset({WorkStatus.SUCCEEDED, WorkStatus.FAILED})

JOB_MOVES: frozenset[tuple[JobStatus, JobStatus]] = frozenset(
    {
        (JobStatus.PENDING, JobStatus.PROCESSING),
        (JobStatus.PENDING, JobStatus.PARKED),
        (JobStatus.PENDING, JobStatus.CANCELLED),
        (JobStatus.PROCESSING, JobStatus.PENDING),
        (JobStatus.PROCESSING, JobStatus.PARKED),
        (JobStatus.PROCESSING, JobStatus.COMPLETED),
        (JobStatus.PROCESSING, JobStatus.FAILED),
        (JobStatus.PROCESSING, JobStatus.DEAD),
        (JobStatus.PROCESSING, JobStatus.CANCELLED),
        (JobStatus.PARKED, JobStatus.PENDING),
        (JobStatus.PARKED, JobStatus.CANCELLED),
        (JobStatus.FAILED, JobStatus.PENDING),
        (JobStatus.DEAD, JobStatus.PENDING),
        (JobStatus.CANCELLED, JobStatus.PENDING),
    }
)
WORK_MOVES: frozenset[tuple[WorkStatus, WorkStatus]] = frozenset(
    {
        (WorkStatus.PENDING, WorkStatus.PROCESSING),
        (WorkStatus.PENDING, WorkStatus.FAILED),
        (WorkStatus.PROCESSING, WorkStatus.PENDING),
        (WorkStatus.PROCESSING, WorkStatus.SUCCEEDED),
        (WorkStatus.PROCESSING, WorkStatus.FAILED),
        (WorkStatus.FAILED, WorkStatus.PROCESSING),
        (WorkStatus.FAILED, WorkStatus.PENDING),
    }
)
