"""Every URL of the admin site, who may pass it, and with what: the table of the role matrix.

A new URL gets a row in `PAGES`, `VERB_URLS` or `OTHERS`; the tables of the admin come by
themselves. A row names what stands in its URL and its form by the keys of `targets`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from uuid import uuid4

from django.utils import timezone

from observability.acts import VERBS
from observability.models import BulkOperation
from observability.rights import ROLES, Right, Role
from pipeline.models import Pause
from pipeline.states import JobStatus, Step
from tests.rows import a_job
from tests.wide import a_wide_record

ANONYMOUS = "anonymous"
OUTSIDER = "outsider"
"""Has an account, and is no member of staff."""
NOBODY = "nobody"
"""A member of staff without a role."""
PEOPLE = (ANONYMOUS, OUTSIDER, NOBODY, *(role.value for role in Role))

EVERYBODY = frozenset(PEOPLE)
STAFF = EVERYBODY - {ANONYMOUS, OUTSIDER}


def holders(right: Right) -> frozenset[str]:
    """Return the roles that have a right."""
    return frozenset(role.value for role, rights in ROLES.items() if right in rights)


@dataclass(frozen=True, kw_only=True)
class Door:
    """A URL with one way to pass it."""

    name: str
    """In the admin's namespace."""
    args: tuple[str, ...] = ()
    """Keys of targets, or plain words."""
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] | None = None
    """Of a verb: what is posted; a page has none."""
    who: frozenset[str] = holders(Right.VIEW)
    answer: HTTPStatus = HTTPStatus.OK
    """To those who may pass; others get 403, or are sent to the log-in."""
    writes: frozenset[str] = frozenset()
    """Tables that a GET writes to: the audit, where PHI is read."""

    @property
    def title(self) -> str:
        """What a test calls it."""
        return " ".join([self.name, *self.args, *self.query])

    @property
    def is_verb(self) -> bool:
        """Whether it takes POST alone."""
        return self.form is not None


PAGES = (
    Door(name="tables", who=STAFF),
    Door(name="overview"),
    Door(name="search"),
    Door(name="search", query={"q": "record"}, answer=HTTPStatus.FOUND),
    Door(name="records"),
    Door(name="records", query={"is": "failed"}),
    Door(name="record", args=("record",)),
    Door(name="failures"),
    Door(name="failure_members"),
    Door(name="failure_members", query={"source": "job"}),
    Door(name="retry", query={"record": "record"}, who=holders(Right.RETRY)),
    Door(name="bulk_operations"),
    Door(name="bulk_operation", args=("operation",)),
    Door(name="queues"),
    *(
        Door(
            name="confirm", args=(verb.name,), query={"target": verb.name}, who=holders(verb.right)
        )
        for verb in VERBS.values()
    ),
    Door(name="upload", who=holders(Right.UPLOAD)),
)
"""What is looked at: GET and HEAD alone; no row is written but where `writes` says so."""

VERB_URLS = (
    Door(
        name="retry_start",
        form={"record": "record", "reason": "as agreed", "token": "token"},
        who=holders(Right.RETRY),
        answer=HTTPStatus.FOUND,
    ),
    Door(
        name="bulk_abort",
        args=("operation",),
        form={},
        who=holders(Right.RETRY),
        answer=HTTPStatus.FOUND,
    ),
    *(
        Door(
            name="act",
            args=(verb.name,),
            form={"target": verb.name, "reason": "as agreed"},
            who=holders(verb.right),
            answer=HTTPStatus.FOUND,
        )
        for verb in VERBS.values()
    ),
    Door(name="upload_receive", form={"token": "token"}, who=holders(Right.UPLOAD)),
)
"""What changes something: POST alone, with the token of the form."""

OTHERS = frozenset(
    {
        "index", "login", "logout", "password_change", "password_change_done", "autocomplete", "jsi18n",
        "view_on_site", "app_list", "auth_user_password_change",
    }
)  # fmt: skip
"""Django's own; what matters of them has tests of its own beside the matrix."""

OF_A_TABLE = ("changelist", "add", "history", "delete", "change")
"""What the admin has for each table: `<application>_<model>_<this>`."""


def targets() -> dict[str, str]:
    """Insert what stands in the URLs and forms; give the id of each by its key."""
    parked = a_job(
        status=JobStatus.PARKED,
        park_reason="a quota",
        parked_until=timezone.now() + timedelta(hours=1),
    )
    Pause.objects.create(queue=Step.PASS1, reason="a test")
    operation = BulkOperation.objects.create(
        token=uuid4(),
        verb="retry",
        selection={"error_code": "API_5XX"},
        expected={"jobs": 1, "calls": 1, "input_tokens": 7000, "cost_usd": "0.001"},
        reason="a test",
        requested_by="somebody",
    )
    return {
        "record": str(a_wide_record(encounters=1, batches=2, pages=3)),
        "operation": str(operation.id),
        "token": str(uuid4()),
        "cancel": str(a_job().id),
        "release": str(parked.id),
        "requeue": str(a_job(status=JobStatus.DEAD, error_code="WORKER_LOST").id),
        "pause": Step.PASS05.value,
        "resume": Step.PASS1.value,
    }
