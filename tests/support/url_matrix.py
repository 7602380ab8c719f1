"""Every URL of the admin site with the roles that may use it: the table of the role matrix.

A new URL gets a row in `PAGES`, `ACTION_URLS` or `OTHERS`; the tables of the admin need no row. A
row names the ids in its URL and in its form by the keys of `targets`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from uuid import uuid4

from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone

from api.models import ApiClient, WebhookDelivery, WebhookEndpoint
from api.webhooks.models import DeliveryStatus
from observability.actions.bulk_kinds import KINDS
from observability.actions.holds import HOLD_ACTIONS
from observability.actions.preview_digest import preview_digest_of
from observability.models import BulkItem, BulkOperation
from observability.permissions import ROLES, Right, Role
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import (
    Batch,
    Encounter,
    Job,
    Pause,
    ProviderCall,
    RecordBatch,
    ReviewItem,
    ShellFile,
)
from pipeline.operations.preview import RetryCandidate
from pipeline.operations.review.rounds import unflagged_state
from pipeline.transitions import Scope, open_review
from tests.support.clinical_rows import clinical_rows
from tests.support.incident_rows import OTHER_MODEL, an_incident
from tests.support.large_rows import a_large_record
from tests.support.records import LAB
from tests.support.review_forms import state_of
from tests.support.rows import a_job

ANONYMOUS = "anonymous"
OUTSIDER = "outsider"
"""A user who is not a member of staff."""
NO_ROLE = "no-role"
"""A member of staff without a role."""
USERS = (ANONYMOUS, OUTSIDER, NO_ROLE, *(role.value for role in Role))

EVERYBODY = frozenset(USERS)
STAFF = EVERYBODY - {ANONYMOUS, OUTSIDER}


def holders(right: Right) -> frozenset[str]:
    """Return the roles that have a right."""
    return frozenset(role.value for role, rights in ROLES.items() if right in rights)


PHI = holders(Right.READ_PHI)
REVIEW = holders(Right.REVIEW)
AUDIT = frozenset({"audit_events"})


@dataclass(frozen=True, kw_only=True)
class CheckedUrl:
    """A URL with one way to pass it."""

    name: str
    """Name of the URL in the admin's namespace."""
    args: tuple[str, ...] = ()
    """Keys of `targets`, or plain words."""
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] | None = None
    """Of an action: what is posted; a page has none."""
    who: frozenset[str] = holders(Right.VIEW)
    answer: HTTPStatus = HTTPStatus.OK
    """Status for users with access; others get 403 or a redirect to the log-in."""
    writes: frozenset[str] = frozenset()
    """Tables that a GET writes: the audit, when it shows PHI."""

    statements: int = 7
    """Largest number of SQL statements, whatever the number of rows."""

    @property
    def title(self) -> str:
        """Name of the row in a test."""
        return " ".join([self.name, *self.args, *self.query])

    @property
    def is_action(self) -> bool:
        """Whether the URL accepts only POST."""
        return self.form is not None


PAGES = (
    CheckedUrl(name="tables", who=STAFF),
    CheckedUrl(name="own_sessions", who=STAFF),
    CheckedUrl(name="overview", statements=20),
    CheckedUrl(name="search"),
    CheckedUrl(name="search", query={"q": "record"}, answer=HTTPStatus.FOUND),
    CheckedUrl(name="records"),
    CheckedUrl(name="records", query={"is": "failed"}),
    CheckedUrl(name="record", args=("record",), statements=23),
    CheckedUrl(name="record_by_digits", args=("0b02ca07",), answer=HTTPStatus.FOUND),
    CheckedUrl(name="record_results", args=("record",), who=PHI, writes=AUDIT, statements=20),
    CheckedUrl(name="source", args=("record", "entity"), who=PHI, writes=AUDIT, statements=16),
    # Without a format: an export reads its own snapshot, which a test that rolls back cannot open.
    CheckedUrl(
        name="record_export",
        args=("record",),
        who=PHI & holders(Right.EXPORT),
        answer=HTTPStatus.BAD_REQUEST,
        writes=AUDIT,
    ),
    CheckedUrl(name="record_pages", args=("record",), who=PHI, answer=HTTPStatus.FOUND),
    CheckedUrl(name="record_page", args=("record", "1"), who=PHI, writes=AUDIT, statements=15),
    CheckedUrl(name="page_image", args=("record", "1"), who=PHI, writes=AUDIT),
    CheckedUrl(name="call_reading", args=("call",), who=PHI, writes=AUDIT, statements=16),
    CheckedUrl(
        name="compare", args=("record",), query={"a": "call", "b": "next_call"}, statements=9
    ),
    CheckedUrl(
        name="compare_replies",
        args=("record",),
        query={"a": "call", "b": "next_call"},
        who=PHI,
        writes=AUDIT,
        statements=13,
    ),
    CheckedUrl(name="failures"),
    CheckedUrl(name="failure_members"),
    CheckedUrl(name="failure_members", query={"source": "job"}),
    CheckedUrl(name="retry", query={"record": "record"}, who=holders(Right.RETRY), statements=13),
    *(
        CheckedUrl(
            name="bulk_preview",
            args=(kind.name,),
            query={} if kind.name != "retry" else {"record": "record"},
            who=holders(kind.right),
            statements=13,
        )
        for kind in KINDS.values()
    ),
    CheckedUrl(name="incidents"),
    CheckedUrl(name="incident", args=("incident",), statements=15),
    CheckedUrl(name="stale", statements=15),
    CheckedUrl(name="audit", who=holders(Right.READ_AUDIT)),
    CheckedUrl(name="bulk_operations"),
    CheckedUrl(name="bulk_operation", args=("operation",), statements=9),
    CheckedUrl(
        name="bulk_operation", args=("operation",), query={"state": "failed again"}, statements=9
    ),
    CheckedUrl(name="queues", statements=10),
    *(
        CheckedUrl(
            name="confirm",
            args=(action.name,),
            query={"target": action.name},
            who=holders(action.right),
        )
        for action in HOLD_ACTIONS.values()
    ),
    CheckedUrl(name="upload", who=holders(Right.UPLOAD)),
    CheckedUrl(name="reviews", who=REVIEW, statements=12),
    CheckedUrl(name="reviews", query={"is": "free"}, who=REVIEW, statements=12),
    CheckedUrl(name="reviews", query={"is": "closed"}, who=REVIEW, statements=12),
    CheckedUrl(name="review_learning", who=REVIEW, statements=9),
    CheckedUrl(name="review", args=("review",), who=REVIEW & PHI, writes=AUDIT, statements=27),
)
"""Pages: they accept GET and HEAD only, and write only the tables in `writes`."""

ACTION_URLS = (
    CheckedUrl(
        name="retry_start",
        form={"record": "record", "reason": "as agreed", "token": "token", "seen": "seen"},
        who=holders(Right.RETRY),
        answer=HTTPStatus.FOUND,
    ),
    *(
        CheckedUrl(
            name="bulk_start",
            args=(kind.name,),
            form={"record": "record", "reason": "as agreed", "token": "token", "seen": "seen"},
            who=holders(kind.right),
            # No row here is stale, so this action finds nothing; the others find rows.
            answer=HTTPStatus.OK if kind.name == "reset" else HTTPStatus.FOUND,
        )
        for kind in KINDS.values()
    ),
    CheckedUrl(
        name="bulk_abort",
        args=("operation",),
        form={},
        who=holders(Right.RETRY),
        answer=HTTPStatus.FOUND,
    ),
    *(
        CheckedUrl(
            name="perform",
            args=(action.name,),
            form={"target": action.name, "reason": "as agreed"},
            who=holders(action.right),
            answer=HTTPStatus.FOUND,
        )
        for action in HOLD_ACTIONS.values()
    ),
    CheckedUrl(
        name="api_webhookdelivery_replay",
        args=("delivery",),
        form={},
        who=holders(Right.RETRY),
        answer=HTTPStatus.FOUND,
    ),
    CheckedUrl(name="review_next", form={}, who=REVIEW, answer=HTTPStatus.FOUND),
    *(
        CheckedUrl(
            name="review_act",
            args=("review", act),
            form={
                "entity": "entity",
                "token": "token",
                "claim": "1",
                "shown": "shown",
                "shown_unflagged": "shown_unflagged",
                **form,
            },
            who=REVIEW,
            answer=answer,
        )
        for act, form, answer in (
            ("claim", {}, HTTPStatus.FOUND),
            ("accept", {}, HTTPStatus.FOUND),
            ("correct", {"was_dose": "", "dose": "50 mg"}, HTTPStatus.FOUND),
            ("reject", {"reason": "1"}, HTTPStatus.FOUND),
            # The record has no published encounter, flagged entities, and no such words.
            ("move", {"encounter": "encounter"}, HTTPStatus.NOT_FOUND),
            ("accept-all", {}, HTTPStatus.CONFLICT),
            ("add", {"page": "1", "words": "no such words"}, HTTPStatus.BAD_REQUEST),
            # The user does not hold the review, and the review is open.
            ("renew", {}, HTTPStatus.CONFLICT),
            ("give-back", {}, HTTPStatus.CONFLICT),
            ("skip", {}, HTTPStatus.CONFLICT),
            ("close", {}, HTTPStatus.CONFLICT),
            ("reopen", {"reason": "as agreed"}, HTTPStatus.CONFLICT),
        )
    ),
    CheckedUrl(name="upload_files", form={"token": "token"}, who=holders(Right.UPLOAD)),
    CheckedUrl(name="upload_batch", form={}, who=holders(Right.UPLOAD)),
    CheckedUrl(
        name="upload_close",
        args=("batch",),
        form={},
        who=holders(Right.UPLOAD),
        # The batch belongs to no user; `test_console_upload.py` closes a user's own batch.
        answer=HTTPStatus.BAD_REQUEST,
    ),
)
"""Actions: they accept POST only, with the token of the form."""

OTHERS = frozenset(
    {
        "index", "login", "logout", "password_change", "password_change_done", "autocomplete",
        "jsi18n", "app_list", "auth_user_password_change", "oidc_start", "oidc_callback",
        "end_sessions",
    }
)  # fmt: skip
"""URLs of Django and of the log-in; separate tests cover the ones that matter."""

OF_THE_API = frozenset(
    {
        "api-root", "api_root", "api_unknown", "cancel", "create", "delete", "deliveries",
        "drill_down", "enable", "entities", "export", "listed", "one", "openapi-json", "ping",
        "record", "replay", "results", "retry", "rotate", "submit",
    }
)  # fmt: skip
"""The URLs of the HTTP API, which opens for tokens and for no user: `test_api_access.py`."""

OF_A_TABLE = ("changelist", "add", "history", "delete", "change")
"""The admin's URLs of each table: `<application>_<model>_<this>`."""


def targets() -> dict[str, str]:
    """Insert the rows that URLs and forms name; return their ids by key."""
    Pause.objects.create(queue=Step.PASS1, reason="a test")
    operation = BulkOperation.objects.create(
        token=uuid4(),
        action="retry",
        selection={"error_code": "API_5XX"},
        expected={
            "jobs": 1,
            "is_capped": False,
            "ineligible": {"the job is running": 2},
            "calls": 1,
            "pages": 3,
            "input_tokens": 7000,
            "cost_usd": "0.001",
            "quota_minutes": 0.1,
        },
        reason="a test",
        requested_by="ada",
    )
    an_item(operation, a_job(), position=0)
    record = a_large_record(encounters=1, batches=2, pages=3)
    entity = clinical_rows(Encounter.objects.get(shell_file_id=record))
    open_review(record)
    item = ReviewItem.objects.get(shell_file_id=record)
    key = default_storage.save("records/of-the-matrix", ContentFile(LAB.read_bytes()))
    ShellFile.objects.filter(id=record).update(storage_key=key)
    failed = Batch.objects.filter(status=WorkStatus.FAILED).values("id")
    lost = ProviderCall.objects.filter(
        processing_session__shell_file=record, work_item_id__in=failed
    ).order_by("attempt")
    known = {
        "record": str(record),
        "entity": str(entity.id),
        "encounter": str(entity.healthcare_encounter_id),
        "review": str(item.id),
        "shown": state_of(entity.id),
        "shown_unflagged": unflagged_state(item.id, record, item.round),
        "call": str(lost[0].id),
        "next_call": str(lost[1].id),
        "batch": str(RecordBatch.objects.create().id),
        "operation": str(operation.id),
        "delivery": str(a_failed_delivery().id),
        "token": str(uuid4()),
        **targets_of_jobs(),
        "pause": Step.PASS05.value,
        "resume": Step.PASS1.value,
        "incident": str(an_incident(of=OTHER_MODEL).id),
        "pause-provider": "local",
        "resume-provider": f"{OTHER_MODEL.provider}:{OTHER_MODEL.model}",
    }
    return {**known, "seen": preview_digest_of(map(a_candidate, Job.objects.all()))}


def a_failed_delivery() -> WebhookDelivery:
    """Insert a delivery whose last attempt has failed."""
    client = ApiClient.objects.create(
        name=f"c-{uuid4()}", user=User.objects.create_user(f"api.{uuid4()}"), created_by="a test"
    )
    endpoint = WebhookEndpoint.objects.create(
        client=client, url="https://a.example", events=["record.failed"], secret_digest="0" * 64
    )
    return WebhookDelivery.objects.create(
        endpoint=endpoint,
        event_id=uuid4(),
        event_type="record.failed",
        subject_id=uuid4(),
        subject_status="failed",
        occurred_at=timezone.now(),
        status=DeliveryStatus.FAILED,
        failure="TIMEOUT",
        attempts=10,
        retry_no=9,
        finished_at=timezone.now(),
    )


def a_candidate(job: Job) -> RetryCandidate:
    """Return the candidate of a preview for a whole job, without figures."""
    return RetryCandidate(
        job_id=job.id,
        shell_file_id=job.shell_file_id,
        step=Step(job.current_step),
        scope=Scope(),
        encounters=0,
        calls=0,
        pages=0,
        input_tokens=0,
    )


def targets_of_jobs() -> dict[str, str]:
    """Insert a job for each action on jobs; return the ids by action."""
    parked = a_job(
        status=JobStatus.PARKED,
        park_reason="a quota",
        parked_until=timezone.now() + timedelta(hours=1),
    )
    dead = a_job(status=JobStatus.DEAD, error_code="WORKER_LOST", completed_at=timezone.now())
    return {"cancel": str(a_job().id), "release": str(parked.id), "requeue": str(dead.id)}


def an_item(operation: BulkOperation, job: Job, *, position: int) -> None:
    """Insert a job that a bulk operation has retried."""
    BulkItem.objects.create(
        operation=operation,
        position=position,
        job_id=job.id,
        shell_file_id=job.shell_file_id,
        step=Step.PASS1,
        scope={},
        state=BulkItem.DONE,
    )


def more() -> None:
    """Insert more rows of every kind; the statements of a page must not grow with them."""
    for encounter in Encounter.objects.exclude(enriched_entities=None):
        clinical_rows(encounter)
    a_large_record(encounters=3, batches=10, pages=40)
    for _ in range(4):
        targets_of_jobs()
    for operation in BulkOperation.objects.all():
        others = Job.objects.exclude(id__in=operation.items.values("job_id"))
        for place, job in enumerate(others):
            an_item(operation, job, position=place + 1)
    incident = an_incident(evidence={"affected": {"parked": 3}})
    for _ in range(3):
        a_job(status=JobStatus.PARKED, park_reason="down", incident=incident)
        a_job(
            step=Step.PAGES,
            status=JobStatus.FAILED,
            error_code="INPUT_ENCRYPTED",
            completed_at=timezone.now(),
        )
