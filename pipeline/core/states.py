"""The values of every status, step and queue column, and the allowed moves between them.

The enums are plain `TextChoices`, so that models, transitions, console and documentation use the
same values.
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
    """The last completed pass of a record; never a failure (requirement 9)."""

    UPLOADED = "uploaded"
    PAGES_COMPLETE = "pages_complete"
    PASS05_COMPLETE = "pass05_complete"
    PASS1_COMPLETE = "pass1_complete"
    PASS1_5_COMPLETE = "pass1_5_complete"
    PASS2_COMPLETE = "pass2_complete"
    COMPLETED = "completed"


class JobStatus(TextChoices):
    """The state of a job; `current_step` names the pass that the job is in."""

    PENDING = "pending"
    """Waits for a worker; the first worker that claims the job gets it."""
    PROCESSING = "processing"
    """A worker holds its lease."""
    PARKED = "parked"
    """Waits for a time, or for the end of an incident or pause; no worker holds the job."""
    COMPLETED = "completed"
    FAILED = "failed"
    """A step failed for good; only an operator can retry the job. A job that waits for its
    automatic retry is parked."""
    DEAD = "dead"
    """Crashed too often; only an operator can retry the job."""
    CANCELLED = "cancelled"


class RecordBatchStatus(TextChoices):
    """A batch of records that were submitted together."""

    PROCESSING = "processing"
    """At least one record has not ended."""
    COMPLETED = "completed"
    """Every record completed."""
    FAILED = "failed"
    """All records have ended, and at least one did not complete."""


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
    """Not started, or returned to the queue."""
    PROCESSING = "processing"
    """Started: a call is in flight, or a retry is waiting."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class IncidentKind(TextChoices):
    """The way in which a provider fails for one of its models."""

    OUTAGE = "outage"
    """Calls fail or get no answer."""
    THROTTLING = "throttling"
    """The quota per minute is used up. The rate limiter paces the calls. The incident parks no job,
    but a long cooldown can park a step."""
    QUOTA = "quota"
    """A daily quota or a spending limit is used up."""
    CREDENTIALS = "credentials"
    """The API key is refused."""
    BILLING = "billing"
    """The provider asks for a payment."""
    PROXY = "proxy"
    """A proxy or another server answers in place of the provider."""


class IncidentState(TextChoices):
    """Whether an incident is still going on."""

    OPEN = "open"
    CLOSED = "closed"


class SummaryStatus(TextChoices):
    """`ai_processing_summary.processing_status`: how far the record got."""

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
"""The session's name for each step."""

COMPLETES: dict[Step, ShellFileStatus] = dict(zip(Step, list(ShellFileStatus)[1:], strict=True))
"""The value of `shell_files.status` after each step completes."""

STATUS_AFTER: dict[Step, SummaryStatus] = {
    Step.PAGES: SummaryStatus.INITIALIZED,
    Step.PASS05: SummaryStatus.INITIALIZED,
    Step.PASS1: SummaryStatus.PASS1_ONLY,
    Step.PASS1_5: SummaryStatus.PASS1_ONLY,
    Step.PASS2: SummaryStatus.PASS1_PASS2,
    Step.PASS3: SummaryStatus.COMPLETE_PIPELINE,
}
"""The summary's status of a record after each step completes."""

STATUS_BEFORE: dict[Step, SummaryStatus] = dict(
    zip(Step, [SummaryStatus.INITIALIZED, *STATUS_AFTER.values()], strict=False)
)
"""The summary's status of a record before each step; nothing follows the last step."""

CALLING_STEPS = frozenset({Step.PASS05, Step.PASS1, Step.PASS2, Step.PASS3})
"""Passes that call the provider; an incident of the provider parks only these passes."""

HOLDING_KINDS: tuple[IncidentKind, ...] = (
    IncidentKind.QUOTA,
    IncidentKind.CREDENTIALS,
    IncidentKind.BILLING,
    IncidentKind.PROXY,
    IncidentKind.OUTAGE,
)
"""Incidents that park work; if several are open, the first in this order is shown."""

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
