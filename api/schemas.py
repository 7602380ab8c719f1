"""The bodies of answers and requests, as the OpenAPI text describes them.

Only the answers to `results:read` hold PHI; the others hold ids, codes, counts and times.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from ninja import Field, Schema

from api.webhooks.events import WebhookEvent
from api.webhooks.models import DeliveryFailure, DeliveryStatus, DisabledReason
from api.webhooks.receiver import LONGEST_URL
from pipeline.core.errors import ErrorCode
from pipeline.core.states import JobStatus, PassStatus, ShellFileStatus, Step
from pipeline.models import ReviewReason, ReviewStatus


class Problem(Schema):
    """An error (RFC 9457). `code` is a name of docs/errors.md."""

    type: str = Field(examples=["urn:medproc:error:NOT_FOUND"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["this client has no record of this id"])
    code: str = Field(examples=["NOT_FOUND"])
    errors: list[WrongValue] = Field(default=[], description="The values that cannot be used.")


class WrongValue(Schema):
    """A value of a request that cannot be used; the value itself is not repeated."""

    place: str = Field(examples=["query.limit"])
    message: str


class Submitted(Schema):
    """A record that waits for its first pass."""

    id: UUID
    status: JobStatus = Field(examples=["pending"])
    url: str = Field(description="The address of the record's status.")


class Acted(Schema):
    """The state of a record after an action."""

    id: UUID
    status: str = Field(
        description="`pending`, `cancelled`, or `cancelling` while a running step stops.",
        examples=["pending"],
    )
    url: str


class Reasoned(Schema):
    """The reason of an action; it is kept in the audit. Name no patient."""

    reason: str = Field(
        description="One line of at most 500 characters.", examples=["The provider is back."]
    )


class PassState(Schema):
    """One pass of a record."""

    name: Step
    status: PassStatus
    done: int = Field(description="Work items of the pass that have ended.")
    total: int = Field(description="Planned work items of the pass; 0 before the plan.")


class RecordFailure(Schema):
    """Why a record failed."""

    code: str = Field(examples=["MAX_RETRIES_EXCEEDED"])
    underlying_code: str | None = Field(
        description="The code behind MAX_RETRIES_EXCEEDED.", examples=["API_5XX"]
    )
    message: str
    advice: str
    step: Step


class Parked(Schema):
    """Why a record waits, and until when, if that is known."""

    reason: str
    until: datetime | None


class RecordWarning(Schema):
    """A warning of a record (docs/errors.md)."""

    code: ErrorCode
    message: str
    pages: list[int] = []
    count: int | None = None


class ReviewState(Schema):
    """The review of a record by people."""

    record_id: UUID
    status: ReviewStatus
    reason: ReviewReason
    opened_at: datetime
    due_at: datetime
    round: int
    confidence: float | None
    closed_at: datetime | None


class RecordState(Schema):
    """The state of a record, without PHI."""

    id: UUID
    status: JobStatus = Field(description="The state of the record's job.")
    step: Step = Field(description="The pass that the job is in, or was in last.")
    completed: ShellFileStatus = Field(description="The last completed pass; never a failure.")
    priority: int
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    media_type: str
    size_bytes: int
    page_count: int | None
    pages_read: int
    passes: list[PassState]
    encounters: int = Field(description="Encounters of the record, published or not.")
    entities: int = Field(description="Entities of published encounters.")
    incomplete: bool = Field(description="Some encounters are published and others are not.")
    rows_not_understood: int
    warnings: list[RecordWarning]
    failure: RecordFailure | None
    parked: Parked | None
    review: ReviewState | None


class RecordsPage(Schema):
    """A page of records, newest first."""

    items: list[RecordState]
    next_cursor: str | None = Field(description="Send as `cursor` for the next page.")


class ReviewsPage(Schema):
    """A page of reviews, by the time of the submission, newest first."""

    items: list[ReviewState]
    next_cursor: str | None


class DrillDownNode(Schema):
    """A record, pass, encounter, work item or call, with its parts."""

    kind: str
    id: str
    title: str
    status: str
    counts: dict[str, int]
    spent: dict[str, Any]
    cause: dict[str, Any] | None
    notes: list[str]
    absorbed: int
    facts: dict[str, Any]
    children: list[DrillDownNode]


class DrillDownDocument(Schema):
    """What happened to a record; the document of `manage.py explain ID --json`."""

    asked: str
    asked_kind: str
    focus: str
    answer: str
    record_answer: str
    incomplete_note: str
    reused: list[dict[str, Any]]
    taken_at: datetime
    tree: DrillDownNode


class EntityPage(Schema):
    """A page of entities in the order of the text. PHI."""

    record_incomplete: bool
    reviewed: bool
    notices: list[str]
    items: list[dict[str, Any]] = Field(
        description="Entities with the columns of the exports (docs/exports.md)."
    )
    next_cursor: str | None


class ResultsDocument(Schema):
    """All results of a record; the document of `manage.py summary ID --json`. PHI."""

    shell_file_id: UUID
    incomplete_note: str
    open_passes: list[str]
    warnings: list[str]
    reused: list[str]
    encounters: list[dict[str, Any]]
    narratives: list[dict[str, Any]]
    lists: dict[str, list[dict[str, Any]]]
    codes: list[dict[str, Any]]
    entities: int
    entities_flagged: int


class NewWebhook(Schema):
    """An address that wants events."""

    model_config = {"extra": "forbid"}

    url: str = Field(
        description="`https://` with a public host.",
        examples=["https://hooks.example.org/medproc"],
        max_length=LONGEST_URL,
    )
    events: list[WebhookEvent] = Field(
        description="Every type but `ping`.", examples=[["record.completed"]], min_length=1
    )


class Webhook(Schema):
    """An address to which events are posted."""

    id: UUID
    url: str
    events: list[WebhookEvent]
    created_at: datetime
    rotated_at: datetime | None
    failing_since: datetime | None = Field(description="The first failure after a success.")
    disabled_at: datetime | None
    disabled_reason: DisabledReason | None


class WebhookWithSecret(Schema):
    """A webhook with its secret, which no later answer shows."""

    webhook: Webhook
    secret: str = Field(examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])


class WebhooksPage(Schema):
    """A page of webhooks, newest first."""

    items: list[Webhook]
    next_cursor: str | None


class DeliveryNow(Schema):
    """An event for a webhook, with the result of its last attempt."""

    id: UUID
    event_id: UUID = Field(description="The header webhook-id.")
    type: WebhookEvent
    subject_id: UUID
    status: DeliveryStatus
    attempts: int
    next_attempt_at: datetime | None
    response_status: int | None
    failure: DeliveryFailure | None
    duration_ms: int | None
    occurred_at: datetime
    finished_at: datetime | None


class DeliveriesPage(Schema):
    """A page of deliveries, newest first."""

    items: list[DeliveryNow]
    next_cursor: str | None


class Deleted(Schema):
    """A webhook that is gone, with its deliveries."""

    id: UUID
    status: Literal["deleted"] = "deleted"


Problem.model_rebuild()
DrillDownNode.model_rebuild()
