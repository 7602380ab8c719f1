"""Intake: a file becomes a record with a job, or is refused with one clear line.

The content of the file decides its type; the file name does not. The bytes are in the store
before any row exists, and all rows appear in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from medproc.files import FinishedFile
from pipeline.core.db_errors import is_away
from pipeline.core.errors import ErrorCode, InputError
from pipeline.core.states import JobStatus, Step
from pipeline.documents import reader, storage
from pipeline.execution.worker_settings import own_settings
from pipeline.models import Job, Patient, Session, ShellFile, Summary
from pipeline.models.fields import storable
from pipeline.transitions import submitted_config

# `get_or_create` needs four statements for a new patient, and an upload pays for each.
# The lock lasts until the commit: an erasure of the patient's last record either sees this record,
# or has deleted the patient, who is then made again. The foreign key is only checked at the commit.
_PATIENT = """
WITH known AS (
  SELECT * FROM user_profiles WHERE reference = %(reference)s FOR KEY SHARE
), new AS (
  INSERT INTO user_profiles (id, pseudonym, reference)
  SELECT %(id)s, %(pseudonym)s, %(reference)s WHERE NOT EXISTS (SELECT FROM known)
  ON CONFLICT (reference) DO NOTHING RETURNING *
)
SELECT * FROM known UNION ALL SELECT * FROM new
"""
LONGEST_REFERENCE = 200
"""Characters of a patient's reference; the index of the column needs a limit."""

COMMAND_LINE = "cli"
"""The owner of all records that commands submit."""


def owner_of_user(user_id: object) -> str:
    """Return the owner of the records that a user of the console submits."""
    return f"user:{user_id}"


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A file that a user submits, with the facts that they state about it."""

    path: Path
    received_sha256: str | None = None
    """The digest of the file, if this process has received and hashed the file. No process changes
    a received file, so the store may keep the file itself. None: the file is read and copied."""
    filename: str | None = None
    patient_reference: str | None = None
    priority: int = 0
    record_batch_id: UUID | None = None
    """The batch of records that this file was submitted with."""
    idempotency_key: str | None = None
    owner: str = ""
    """Who submits the file: `owner_of_user`, or COMMAND_LINE. Results are reused within one owner.
    Empty reuses nothing."""
    is_forced: bool = False
    """Whether the file is extracted again although results could be reused."""
    user_agent: str | None = None
    ip_address: str | None = None


@dataclass(frozen=True, kw_only=True)
class Received:
    """A record that is in the database and ready for a worker."""

    shell_file_id: UUID
    job_id: UUID
    dispatch_no: int
    due: Step | None = Step.PAGES
    """The pass that waits for a worker; None if a repeated submission is already past waiting."""
    is_repeated: bool = False
    """An earlier submission with the same idempotency key made the record."""


@dataclass(kw_only=True)
class StoredSubmission:
    """A submission whose bytes are in the store, before its record exists."""

    submission: Submission
    key: str | None
    media_type: str
    found: storage.Stored | Received
    """The stored bytes, or the record of an earlier submission with the same idempotency key."""
    is_named: bool = False
    """Whether a record names the bytes."""


@contextmanager
def stored_submission(submission: Submission) -> Iterator[StoredSubmission]:
    """Store a file for the time of the block, in which `create` makes the record.

    Begin the block outside a transaction: a bucket can answer late, and a transaction would hold
    its locks meanwhile. At the end of the block, bytes that no record names are discarded. Raises
    InputError (INPUT_INVALID, INPUT_TOO_LARGE) if the bytes cannot be a record, PipelineError
    STORAGE_FULL, and FileStoreError; nothing is stored then.
    """
    key = _stated(submission.idempotency_key)
    known = _known(key) if key else None
    made = StoredSubmission(
        submission=submission,
        key=key,
        media_type="" if known else _checked(submission.path),
        found=known or _store(submission),
    )
    try:
        yield made
    except Exception as error:
        _discard_unnamed(made, error)
        raise
    if isinstance(made.found, storage.Stored) and not made.is_named:
        storage.discard(made.found.key)


def create(made: StoredSubmission, *, savepoint: bool = True) -> Received:
    """Create record, session, summary and job of a stored file: all of them or none.

    A repeated submission with the same idempotency key returns the same record. A caller that gives
    up its transaction after an error needs no savepoint; its submission has no idempotency key.
    """
    if isinstance(made.found, Received):
        return made.found
    try:
        return _create(made, made.found, savepoint)
    except IntegrityError:
        if made.key and (known := _known(made.key)):
            return known
        raise


def _store(submission: Submission) -> storage.Stored:
    while True:
        try:
            with submission.path.open("rb") as source:
                digest = submission.received_sha256
                return storage.store(FinishedFile(source, digest) if digest else source)
        except storage.SweptError:
            continue


def _discard_unnamed(made: StoredSubmission, error: Exception) -> None:
    """Discard stored bytes that no record names, after an error.

    If the database was unreachable, the COMMIT may have succeeded although its answer was lost.
    The sweep of stored files decides then.
    """
    if isinstance(made.found, Received) or is_away(error):
        return
    key = made.found.key
    if not ShellFile.objects.filter(storage_key=key).exists():
        storage.discard(key)


def _known(key: str) -> Received | None:
    job = Job.objects.filter(shell_file__idempotency_key=key).order_by("-created_at").first()
    if job is None:
        return None
    return Received(
        shell_file_id=job.shell_file_id,
        job_id=job.id,
        dispatch_no=job.dispatch_no,
        due=Step(job.current_step) if job.status == JobStatus.PENDING else None,
        is_repeated=True,
    )


def _create(made: StoredSubmission, stored: storage.Stored, savepoint: bool) -> Received:
    own, submission = own_settings(), made.submission
    with transaction.atomic(savepoint=savepoint):
        while not storage.claim(stored.key):
            # A sweep has deleted the bytes, because they were too old: store them again.
            made.found = stored = _store(submission)
        patient = _patient(_stated(submission.patient_reference))
        shell_file = ShellFile.objects.create(
            patient=patient,
            sha256=stored.sha256,
            size_bytes=stored.size_bytes,
            media_type=made.media_type,
            storage_key=stored.key,
            original_filename=_stated(submission.filename),
            idempotency_key=made.key,
            owner=submission.owner,
            forced=submission.is_forced,
        )
        Session.objects.create(
            patient=patient,
            shell_file=shell_file,
            # What the submitting process is set to; the first worker of a pass replaces this.
            ai_model_name=own.model,
            processing_mode=own.input_mode,
            max_retries=own.job_max_retries,
            model_config=submitted_config(own),
        )
        Summary.objects.create(
            profile=patient,
            shell_file=shell_file,
            user_agent=_stated(submission.user_agent),
            ip_address=submission.ip_address,
        )
        job = Job.objects.create(
            shell_file=shell_file,
            priority=submission.priority,
            max_retries=own.job_max_retries,
            retry_delay=timedelta(seconds=own.retry_delay_s),
            record_batch_id=submission.record_batch_id,
        )
    made.is_named = True
    return Received(shell_file_id=shell_file.id, job_id=job.id, dispatch_no=0)


def _stated(text: str | None) -> str | None:
    """Return a text from outside in the form in which it is stored; None if it is blank.

    A blank reference must not make all patients with a blank reference the same patient.
    """
    return None if text is None else storable(text).strip() or None


def _checked(path: Path) -> str:
    size = path.stat().st_size
    if size == 0:
        raise InputError("The file is empty; send it again.", code=ErrorCode.INPUT_INVALID)
    if size > settings.MAX_UPLOAD_MB * 1024 * 1024:
        raise InputError(
            f"The file is larger than {settings.MAX_UPLOAD_MB} MB; split it,"
            " or raise MAX_UPLOAD_MB.",
            code=ErrorCode.INPUT_TOO_LARGE,
        )
    media_type = reader.sniff(path)
    if media_type is None:
        refusal = reader.unsupported(path)
        raise InputError(refusal.message, code=ErrorCode(refusal.code))
    return media_type.value


def _patient(reference: str | None) -> Patient:
    if reference is None:
        return Patient.objects.create()
    new = Patient(reference=reference)
    named = {"id": new.id, "pseudonym": new.pseudonym, "reference": reference}
    while True:
        # No row: another submission has inserted the same patient since the statement began.
        for found in Patient.objects.raw(_PATIENT, named):
            return found
