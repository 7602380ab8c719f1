"""The kinds of bulk operations: permission, preview and effect of each.

One table, so that the pages, the scheduler and the tests of roles use the same facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from observability.actions.filters import as_fields, bulk_selection, selection, selection_fields
from observability.models import BulkOperation
from observability.permissions import Right
from pipeline.core.states import JobStatus
from pipeline.operations import operator_actions
from pipeline.operations.preview import Preview, RetryCandidate
from pipeline.operations.preview.bulk_selection import OPEN_TO

MEANWHILE = "the job was retried, cancelled or completed in the meantime"


@dataclass(frozen=True, kw_only=True)
class BulkOperationKind:
    """One action on many jobs."""

    name: str
    title: str
    right: Right
    effect: str
    """A sentence for the confirmation page: the effect of the action."""
    open_to: frozenset[JobStatus] = frozenset()
    """Job states in which the job's page offers the action; the UPDATE has the real guard."""
    done: str
    """The result of an item in words, such as `requeued`."""
    makes_calls: bool = True
    """False if the preview's figures are calls that will no longer be made."""
    filters: tuple[str, ...] = ()
    """Fields of the filter that the user can choose in the preview."""
    look: Callable[[Mapping[str, str], datetime], tuple[Preview, dict[str, str]]]
    """Return the preview for a requested filter, and the filter in the form to store."""
    settle: Callable[[RetryCandidate, BulkOperation], str]
    """Apply the action to one job; return why it was skipped, or "". Raises UserError likewise."""


def _of_retry(asked: Mapping[str, str], now: datetime) -> tuple[Preview, dict[str, str]]:
    chosen = selection(asked, now)
    fields = as_fields(chosen)
    if chosen.jobs is not None:
        fields["operation"] = str(UUID(asked["operation"]))
    return operator_actions.retry_preview(chosen), fields


def _of(
    action: str,
) -> Callable[[Mapping[str, str], datetime], tuple[Preview, dict[str, str]]]:
    def look(asked: Mapping[str, str], now: datetime) -> tuple[Preview, dict[str, str]]:
        chosen = bulk_selection(action, asked, now)
        return operator_actions.bulk_preview(chosen), selection_fields(chosen)

    return look


def _retry(item: RetryCandidate, operation: BulkOperation) -> str:
    done = operator_actions.candidate_retry(
        item, reason=operation.reason, by=operation.requested_by
    )
    return "" if done else MEANWHILE


def _cancel(item: RetryCandidate, operation: BulkOperation) -> str:
    operator_actions.job_cancel(item.job_id, reason=operation.reason, by=operation.requested_by)
    return ""


def _requeue(item: RetryCandidate, operation: BulkOperation) -> str:
    operator_actions.job_requeue(item.job_id, reason=operation.reason, by=operation.requested_by)
    return ""


def _release(item: RetryCandidate, operation: BulkOperation) -> str:
    return "" if operator_actions.job_release([item.job_id]) else "the job is no longer parked"


def _reset(item: RetryCandidate, operation: BulkOperation) -> str:
    older_s = float(operation.selection["older"])
    done = operator_actions.stale_batches_reset(older_s, job_id=item.job_id)
    return "" if done else "a worker processes the job, or it was reset already"


KINDS: dict[str, BulkOperationKind] = {
    kind.name: kind
    for kind in (
        BulkOperationKind(
            name="retry",
            title="Retry what failed",
            right=Right.RETRY,
            effect="Successful work is never sent to the provider again. The following passes make"
            " their own calls.",
            done="requeued",
            look=_of_retry,
            settle=_retry,
        ),
        BulkOperationKind(
            name="cancel",
            open_to=OPEN_TO["cancel"],
            title="Cancel",
            right=Right.CANCEL,
            effect="The jobs make no more calls. Completed work stays; calls in flight are kept if"
            " they succeed. A cancelled job can be retried.",
            done="cancelled, or told to stop",
            makes_calls=False,
            filters=("is", "step"),
            look=_of("cancel"),
            settle=_cancel,
        ),
        BulkOperationKind(
            name="requeue",
            open_to=OPEN_TO["requeue"],
            title="Requeue dead jobs",
            right=Right.REQUEUE,
            effect="The dead jobs go back to the queue, and their crash count starts again from"
            " zero. Successful work is not sent to the provider again.",
            done="requeued",
            filters=("step", "error_code"),
            look=_of("requeue"),
            settle=_requeue,
        ),
        BulkOperationKind(
            name="release",
            open_to=OPEN_TO["release"],
            title="Release parked jobs",
            right=Right.RELEASE,
            effect="The jobs go back to the queue now, whatever they wait for. An incident or pause"
            " that is still open parks them again.",
            done="released",
            filters=("step",),
            look=_of("release"),
            settle=_release,
        ),
        BulkOperationKind(
            name="reset",
            title="Reset stale work",
            right=Right.RESET,
            effect="Batches and chunks go back to waiting and keep their attempts. A worker that"
            " comes back can no longer write to them. Each crash is counted; the third crash of a"
            " job in one pass makes the job dead. Only jobs whose lease has expired,"
            " and jobs that are not running, are reset. A live worker's job is never touched.",
            done="reset",
            look=_of("reset"),
            settle=_reset,
        ),
    )
}
"""By name; the name is also the audit's name of the action."""
