"""Upload batches. A signed token names the batch and is valid only for the user who opened it.

Opening and closing a batch are audited.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.signing import BadSignature, Signer
from django.db import transaction

from observability.audit import log
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models import Job, RecordBatch
from pipeline.operations import operator_actions

KIND = "batch of records"

User = AbstractBaseUser | AnonymousUser


def open_batch(actor: User) -> UUID:
    """Open a batch of uploads."""
    with transaction.atomic():
        batch_id = operator_actions.record_batch_open()
        log.record(actor, "open_batch", target_kind=KIND, target_id=batch_id)
    return batch_id


def close_batch(batch_id: UUID, actor: User) -> None:
    """Close a batch with the records that it has; closing it twice changes nothing."""
    with transaction.atomic():
        found = RecordBatch.objects.select_for_update().filter(id=batch_id, submitted_at=None)
        if not found:
            return
        records = Job.objects.filter(record_batch_id=batch_id).count()
        operator_actions.record_batch_close(batch_id, records)
        facts = {"records": records}
        log.record(actor, "close_batch", target_kind=KIND, target_id=batch_id, facts=facts)


def handed_out(batch_id: UUID, actor: User) -> str:
    """Return the token that names the batch to its opener."""
    return _signer(actor).sign(str(batch_id))


def own(handed: str, actor: User) -> UUID:
    """Return the batch of a token. Raises UserError for an invalid or another user's token."""
    try:
        return UUID(_signer(actor).unsign(handed))
    except (BadSignature, ValueError):
        raise UserError(
            "these files belong to no batch of yours; open the page again",
            code=UserErrorCode.FORM_EXPIRED,
        ) from None


def named(handed: str) -> UUID | None:
    """Return the batch that a token names, without checking the user; None if it names none."""
    try:
        return UUID(handed.partition(":")[0])
    except ValueError:
        return None


def _signer(actor: User) -> Signer:
    return Signer(salt=f"{__name__}:{actor.pk}")
