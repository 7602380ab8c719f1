"""An uploaded file becomes a record, once, however often the same form is sent.

The audit row is in the transaction of the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.db import transaction

from observability.audit import log
from observability.uploads.batches import own
from observability.uploads.handler import HashedUpload
from pipeline.core.errors import ERRORS, ErrorCode, PipelineError, UserError, UserErrorCode
from pipeline.models import RecordBatch
from pipeline.operations import operator_actions
from pipeline.stages.intake import (
    LONGEST_REFERENCE,
    Received,
    StoredSubmission,
    Submission,
    owner_of_user,
    stored_submission,
)

PRIORITIES = range(-100, 101)
_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Form:
    """The fields of the form, without the files."""

    token: UUID
    """The token of the page that contains the form."""
    patient: str = field(repr=False)
    priority: int
    batch_id: UUID | None
    is_forced: bool = False
    """Whether the files are extracted again although results could be reused."""


@dataclass(frozen=True, kw_only=True)
class UploadResult:
    """The result of one file."""

    name: str = field(repr=False)
    record_id: UUID | None = None
    is_repeated: bool = False
    """The same form has submitted this file before."""
    code: str = ""
    message: str = ""
    """Why the file was refused, and what to do."""


def form_of(posted: Mapping[str, Any], actor: AbstractBaseUser | AnonymousUser) -> Form:
    """Parse the fields. Raises UserError with a message for the user."""
    try:
        token = UUID(str(posted.get("token", "")))
    except ValueError:
        raise UserError(
            "open the upload page again; its form is incomplete", code=UserErrorCode.FORM_EXPIRED
        ) from None
    batch = str(posted.get("batch") or "")
    batch_id = own(batch, actor) if batch else None
    patient = str(posted.get("patient", "")).strip()
    if len(patient) > LONGEST_REFERENCE:
        raise UserError(
            f"a patient reference has at most {LONGEST_REFERENCE} characters",
            code=UserErrorCode.VALUE_INVALID,
        )
    try:
        priority = int(str(posted.get("priority") or "0"))
    except ValueError:
        priority = PRIORITIES.stop
    if priority not in PRIORITIES:
        raise UserError(
            "a priority is a whole number from -100 to 100", code=UserErrorCode.VALUE_INVALID
        )
    if batch_id and not RecordBatch.objects.filter(id=batch_id, submitted_at=None).exists():
        raise UserError(
            "the batch of these files is closed; open the upload page again",
            code=UserErrorCode.FORM_EXPIRED,
        )
    return Form(
        token=token,
        patient=patient,
        priority=priority,
        batch_id=batch_id,
        is_forced=posted.get("force") == "1",
    )


def take_in(
    file: TemporaryUploadedFile,
    form: Form,
    *,
    actor: AbstractBaseUser | AnonymousUser,
    user_agent: str = "",
    ip_address: str | None = None,
) -> UploadResult:
    """Submit a file and audit the submission; a refusal is audited too and returned as a result."""
    name = file.name or ""
    path = Path(file.temporary_file_path())
    submission = Submission(
        path=path,
        received_sha256=file.sha256 if isinstance(file, HashedUpload) else None,
        filename=name,
        patient_reference=form.patient or None,
        priority=form.priority,
        record_batch_id=form.batch_id,
        idempotency_key=_key(path, form, actor),
        owner=owner_of_user(actor.pk),
        is_forced=form.is_forced,
        user_agent=user_agent or None,
        ip_address=ip_address,
    )
    try:
        with stored_submission(submission) as stored:
            received = create_audited(stored, actor=actor, size_bytes=file.size or 0)
    except PipelineError as error:
        return refused(name, error, actor)
    return UploadResult(
        name=name, record_id=received.shell_file_id, is_repeated=received.is_repeated
    )


def create_audited(
    stored: StoredSubmission,
    *,
    actor: AbstractBaseUser | AnonymousUser,
    size_bytes: int,
    savepoint: bool = True,
) -> Received:
    """Create the record of a stored file, and write the audit row in the same transaction.

    A caller that gives up its transaction after an error needs no savepoint.
    """
    submission = stored.submission
    batch = submission.record_batch_id
    with transaction.atomic(savepoint=savepoint):
        received = operator_actions.record_create(stored, savepoint=savepoint)
        log.record(
            actor,
            "upload",
            target_kind="record",
            target_id=received.shell_file_id,
            facts={
                "size_bytes": size_bytes,
                "priority": submission.priority,
                "batch": str(batch) if batch else None,
                "force": submission.is_forced,
                # Before the submission, none of several racing posts finds the record.
                "repeated": received.is_repeated,
            },
        )
    return received


def left_out(name: str, code: ErrorCode, actor: AbstractBaseUser | AnonymousUser) -> UploadResult:
    """Refuse a file that the upload handler has skipped."""
    message = ERRORS[code].advice
    if code is ErrorCode.INPUT_TOO_LARGE:
        limit = settings.MAX_UPLOAD_MB
        message = f"The file is larger than {limit} MB; split it, or raise MAX_UPLOAD_MB."
    return refused(name, PipelineError(message, code=code), actor)


def refused(
    name: str,
    error: PipelineError | UserError,
    actor: AbstractBaseUser | AnonymousUser,
    *,
    kind: str = "record",
    target_id: object = "",
) -> UploadResult:
    """Audit a refusal, without the file's name, and return what to do."""
    log.record(
        actor,
        "upload",
        target_kind=kind,
        target_id=target_id,
        result=log.AuditResult.REFUSED,
        facts={"code": error.code.value, "said": error.message},
    )
    return UploadResult(name=name, code=error.code.value, message=error.message)


def _key(path: Path, form: Form, actor: AbstractBaseUser | AnonymousUser) -> str:
    """Return the key that detects a repeated form: token, sender, patient and bytes.

    The patient is part of the key, so that a form with a corrected patient makes a new record.
    """
    stated = f"{form.token} {actor.pk} {len(form.patient)} {form.patient} "
    # Sent again with the other choice, the form means another extraction.
    digest = sha256((f"{stated}force " if form.is_forced else stated).encode())
    with path.open("rb") as source:
        while block := source.read(_BLOCK):
            digest.update(block)
    return f"console:{digest.hexdigest()}"
