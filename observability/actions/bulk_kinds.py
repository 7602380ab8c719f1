"""The verbs about many: who may, what a preview looks at, and what is done to each item.

Imports the pipeline's services and the filters. A table, so that pages, the clock and the matrix
of roles read the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from observability.actions.filters import as_fields, crowd, crowd_fields, selection
from observability.models import BulkOperation
from observability.permissions import Right
from pipeline.core.states import JobStatus
from pipeline.operations import services
from pipeline.operations.preview import Candidate, Preview
from pipeline.operations.preview.bulk_selection import OPEN_TO

MEANWHILE = "it was retried, cancelled or completed meanwhile"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One verb about many jobs."""

    name: str
    title: str
    right: Right
    effect: str
    """What will happen, in a sentence."""
    open_to: frozenset[JobStatus] = frozenset()
    """Statuses of a job whose page offers it; the guard itself is in the UPDATE."""
    done: str
    """What became of an item: `put back in line`."""
    makes_calls: bool = True
    """False where its figures are calls that are no longer made."""
    filters: tuple[str, ...] = ()
    """Fields of the filter that its preview lets one choose."""
    look: Callable[[Mapping[str, str], datetime], tuple[Preview, dict[str, str]]]
    """From a filter as it is asked to the preview, and the filter as it is kept."""
    settle: Callable[[Candidate, BulkOperation], str]
    """Do it to one; return why it was left alone, or nothing. Raises UserError likewise."""


def _of_retry(asked: Mapping[str, str], now: datetime) -> tuple[Preview, dict[str, str]]:
    chosen = selection(asked, now)
    fields = as_fields(chosen)
    if chosen.jobs is not None:
        fields["operation"] = str(UUID(asked["operation"]))
    return services.retry_preview(chosen), fields


def _of(
    verb: str,
) -> Callable[[Mapping[str, str], datetime], tuple[Preview, dict[str, str]]]:
    def look(asked: Mapping[str, str], now: datetime) -> tuple[Preview, dict[str, str]]:
        chosen = crowd(verb, asked, now)
        return services.crowd_preview(chosen), crowd_fields(chosen)

    return look


def _retry(item: Candidate, of: BulkOperation) -> str:
    done = services.candidate_retry(item, reason=of.reason, by=of.requested_by)
    return "" if done else MEANWHILE


def _cancel(item: Candidate, of: BulkOperation) -> str:
    services.job_cancel(item.job_id, reason=of.reason, by=of.requested_by)
    return ""


def _requeue(item: Candidate, of: BulkOperation) -> str:
    services.job_requeue(item.job_id, reason=of.reason, by=of.requested_by)
    return ""


def _release(item: Candidate, of: BulkOperation) -> str:
    return "" if services.job_release([item.job_id]) else "it is not parked any more"


def _reset(item: Candidate, of: BulkOperation) -> str:
    older_s = float(of.selection["older"])
    done = services.stale_batches_reset(older_s, job_id=item.job_id)
    return "" if done else "somebody works on it, or has put it back"


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name="retry",
            title="Retry what failed",
            right=Right.RETRY,
            effect="What has succeeded is never asked for again. Passes that follow make calls of"
            " their own.",
            done="put back in line",
            look=_of_retry,
            settle=_retry,
        ),
        Kind(
            name="cancel",
            open_to=OPEN_TO["cancel"],
            title="Cancel",
            right=Right.CANCEL,
            effect="They ask for nothing more. What is complete stays; what is in flight is kept"
            " if it succeeds. A cancelled job can be retried.",
            done="cancelled, or told to end",
            makes_calls=False,
            filters=("is", "step"),
            look=_of("cancel"),
            settle=_cancel,
        ),
        Kind(
            name="requeue",
            open_to=OPEN_TO["requeue"],
            title="Requeue dead jobs",
            right=Right.REQUEUE,
            effect="The dead jobs go back in line, and their crashes are counted anew. What has"
            " succeeded is not asked for again.",
            done="put back in line",
            filters=("step", "error_code"),
            look=_of("requeue"),
            settle=_requeue,
        ),
        Kind(
            name="release",
            open_to=OPEN_TO["release"],
            title="Release parked jobs",
            right=Right.RELEASE,
            effect="They go back in line now, whatever they wait for. An incident or pause that"
            " still lasts parks them again.",
            done="released",
            filters=("step",),
            look=_of("release"),
            settle=_release,
        ),
        Kind(
            name="reset",
            title="Reset stale work",
            right=Right.RESET,
            effect="Batches and chunks go back to waiting with their attempts as they are, and a"
            " worker that comes back can write nothing more of them. A lost worker is counted, and"
            " a job that has lost its third in one pass is dead then. Only where the job's lease"
            " has run out or the job does not run; a live worker's are left alone, however old.",
            done="put back",
            look=_of("reset"),
            settle=_reset,
        ),
    )
}
"""By name; the name is the verb of the operation, and of its audit."""
