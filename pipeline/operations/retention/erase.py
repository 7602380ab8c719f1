"""The erasure of a record: its file, rows, replies, decisions and wake-ups, in one transaction.

The file is deleted last before the commit. A kill leaves either the whole record, perhaps without
its file, or nothing of the record; a repeated erasure then does the rest. Bytes that another record
names stay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.files.storage import default_storage
from django.db import connection, transaction
from redis.exceptions import RedisError

from medproc.files import sync_folder
from pipeline.codes.search.meaning import digest_of, text_of
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.core.states import JOB_TERMINAL, JobStatus
from pipeline.documents import storage
from pipeline.models import CodeVector, Entity, Job, ReviewDecision, ShellFile
from pipeline.queueing.rq_registries import forget
from pipeline.ratelimit.operator_controls import forget_jobs

logger = logging.getLogger(__name__)


class ErasureReason(StrEnum):
    """Why a record is erased; a code, because a typed reason could name the patient permanently."""

    PATIENT_REQUEST = "patient_request"
    WRONG_UPLOAD = "wrong_upload"
    RETENTION_ENDED = "retention_ended"
    LEGAL_ORDER = "legal_order"
    TEST_DATA = "test_data"


@dataclass(frozen=True, kw_only=True)
class Erased:
    """What an erasure has deleted: counts, and no PHI."""

    files: int
    """1 if the stored bytes were deleted; 0 if another record names them, or if they were gone."""
    pages: int
    encounters: int
    entities: int
    calls: int
    replies: int
    kept_replies: int
    decisions: int
    patients: int
    """1 if this was the last record of its patient, so that the patient's row is gone too."""

    def facts(self) -> dict[str, int]:
        """Return the facts of the tombstone."""
        return asdict(self)


_COUNTS = """
SELECT
  (SELECT count(*) FROM shell_file_pages WHERE shell_file_id = f.id) AS pages,
  (SELECT count(*) FROM healthcare_encounters WHERE shell_file_id = f.id) AS encounters,
  (SELECT count(*) FROM pass1_entity_detections WHERE shell_file_id = f.id) AS entities,
  (SELECT count(*) FROM provider_calls c JOIN ai_processing_sessions s
     ON s.id = c.processing_session_id WHERE s.shell_file_id = f.id) AS calls,
  (SELECT count(*) FROM provider_payloads p JOIN provider_calls c ON c.id = p.call_id
     JOIN ai_processing_sessions s ON s.id = c.processing_session_id
     WHERE s.shell_file_id = f.id) AS replies,
  (SELECT count(*) FROM kept_replies WHERE shell_file_id = f.id) AS kept_replies,
  (SELECT count(*) FROM review_decisions WHERE shell_file_id = f.id) AS decisions
FROM shell_files f WHERE f.id = %s
"""


def check_erasable(record_ids: Sequence[UUID]) -> None:
    """Check that each record exists and that no job of it can run.

    Raises UserError NOT_FOUND or STATE_CONFLICT.
    """
    known = set(ShellFile.objects.filter(id__in=record_ids).values_list("id", flat=True))
    for record_id in record_ids:
        if record_id not in known:
            raise UserError(f"there is no record {record_id}", code=UserErrorCode.NOT_FOUND)
    jobs = Job.objects.filter(shell_file_id__in=record_ids).exclude(status__in=JOB_TERMINAL)
    for record_id, status in jobs.values_list("shell_file_id", "status"):
        raise _unfinished(record_id, status)


def erase_record(
    record_id: UUID,
    *,
    audit: Callable[[Erased], None],
    keeps: Callable[[], bool] = lambda: False,
) -> Erased:
    """Erase a record; return what was deleted. The connection must be the owner's.

    `audit` writes the tombstone in the same transaction. If `keeps` returns True after the rows are
    locked, the record stays. Raises UserError NOT_FOUND or STATE_CONFLICT.
    """
    _forget_wakeups(record_id)
    with transaction.atomic():
        _lock_jobs(record_id)
        record = _lock_record(record_id)
        if keeps():
            raise UserError(
                f"record {record_id} is kept by its rule of retention",
                code=UserErrorCode.STATE_CONFLICT,
            )
        # A submission that is about to name the same bytes has locked them, and commits first.
        exists = storage.claim(record.storage_key)
        counts = _one(_COUNTS, record_id)
        _delete_vectors(record_id)
        _run("DELETE FROM shell_files WHERE id = %s", record_id)
        is_last = not ShellFile.objects.filter(patient_id=record.patient_id).exists()
        if is_last:
            _run("DELETE FROM user_profiles WHERE id = %s", record.patient_id)
        # A row that still refers to the record ends the erasure before the file is deleted.
        _run("SET CONSTRAINTS ALL IMMEDIATE")
        # The audit's chain locks at the commit, so that no other audit row waits for the file.
        _run("SET CONSTRAINTS ALL DEFERRED")
        is_shared = ShellFile.objects.filter(storage_key=record.storage_key).exists()
        found = Erased(files=int(exists and not is_shared), patients=int(is_last), **counts)
        audit(found)
        if not is_shared:
            # Also without a file: a bucket can keep old versions of a file that does not exist.
            _delete_bytes(record.storage_key)
    logger.warning("record_erased record=%s", record_id, extra={"action": "record_erased"})
    return found


def erase_exports(record_ids: Sequence[UUID], folder: Path) -> int:
    """Delete the exports of these records in a folder, by the names that `export` gives; count.

    Raises UserError OUTPUT_INVALID.
    """
    gone = 0
    try:
        for record_id in record_ids:
            for path in (*folder.glob(f"{record_id}.*"), *folder.glob(f".{record_id}.*")):
                path.unlink(missing_ok=True)
                gone += 1
    except OSError as error:
        raise UserError(
            f"an export cannot be deleted: {error.strerror}", code=UserErrorCode.OUTPUT_INVALID
        ) from None
    return gone


def _lock_jobs(record_id: UUID) -> None:
    """Lock the jobs of a record, before all other rows; each must have ended."""
    jobs = Job.objects.select_for_update().filter(shell_file_id=record_id).order_by("id")
    for status in jobs.values_list("status", flat=True):
        if status not in JOB_TERMINAL:
            raise _unfinished(record_id, status)


def _lock_record(record_id: UUID) -> ShellFile:
    """Lock a record and its patient; a record that reuses its replies commits first, or finds none.

    A submission for the same patient commits first, or waits.
    """
    record = ShellFile.objects.select_for_update().filter(id=record_id).first()
    if record is None:
        raise UserError(f"there is no record {record_id}", code=UserErrorCode.NOT_FOUND)
    _run("SELECT FROM user_profiles WHERE id = %s FOR UPDATE", record.patient_id)
    _run("SELECT FROM review_items WHERE shell_file_id = %s FOR UPDATE", record_id)
    return record


def _unfinished(record_id: UUID, status: str) -> UserError:
    doing = "runs" if status == JobStatus.PROCESSING else f"has not ended ({status})"
    return UserError(
        f"the job of record {record_id} {doing}; wait, or add --cancel",
        code=UserErrorCode.STATE_CONFLICT,
    )


def _forget_wakeups(record_id: UUID) -> None:
    jobs = Job.objects.filter(shell_file_id=record_id, status__in=JOB_TERMINAL)
    ids = list(jobs.values_list("id", flat=True))
    try:
        forget(ids)
        forget_jobs(ids)
    except (RedisError, OSError):
        # Wake-ups hold ids alone; the reconciler removes them when Redis is back.
        logger.warning("Redis does not answer; wake-ups of record %s may be left", record_id)


def _delete_vectors(record_id: UUID) -> None:
    """Delete the vectors of the record's texts. They name no record; another one embeds again."""
    names = set(Entity.objects.filter(shell_file_id=record_id).values_list("name", flat=True))
    decisions = ReviewDecision.objects.filter(shell_file_id=record_id, field="name")
    for pair in decisions.values_list("old_value", "new_value"):
        names.update(name for name in pair if isinstance(name, str))
    digests = [digest_of(text_of(name)) for name in names]
    CodeVector.objects.filter(digest__in=digests).delete()


def _delete_bytes(key: str) -> None:
    """Delete the stored bytes for good. An error rolls the erasure back, so that it is repeated."""
    default_storage.delete(key)
    try:
        folder = Path(default_storage.path(key)).parent
    except NotImplementedError:
        # A storage without folders, such as S3, has nothing to sync.
        return
    if folder.is_dir():
        sync_folder(folder)


def _one(statement: str, record_id: UUID) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, [record_id])
        names = [column.name for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))


def _run(statement: str, *parameters: UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, list(parameters) or None)
