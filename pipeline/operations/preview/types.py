"""The request for a retry and its preview, as values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from pipeline.core.errors import ErrorCode
from pipeline.core.states import Step
from pipeline.transitions import Scope

JOBS_LIMIT = 10_000
"""Most jobs that one preview, and an operation started from it, can contain."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The work to retry: given by one id, or by the code or incident of the failure.

    Raises ValueError unless exactly one of the seven is given. The times limit the failure's time.
    """

    record: UUID | None = None
    job: UUID | None = None
    jobs: tuple[UUID, ...] | None = None
    """Several jobs, each as a whole."""
    encounter: UUID | None = None
    item: UUID | None = None
    """A work item of any pass."""
    incident: UUID | None = None
    """All work that failed because of the incident."""
    error_code: ErrorCode | None = None
    """The code of the failure, or the code behind MAX_RETRIES_EXCEEDED."""
    step: Step | None = None
    model: str | None = None
    """With a code: only failures in calls of this model."""
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        given = (
            self.record, self.job, self.jobs, self.encounter, self.item, self.incident,
            self.error_code,
        )  # fmt: skip
        if sum(each is not None for each in given) != 1:
            raise ValueError(
                "name one record, job, encounter or work item, or one code or incident"
            )

    def __str__(self) -> str:
        for name in ("record", "job", "encounter", "item"):
            if (value := getattr(self, name)) is not None:
                return f"{'work item' if name == 'item' else name} {value}"
        if self.jobs is not None:
            return "jobs that failed again"
        if self.incident is not None:
            return f"all work that failed because of incident {self.incident}"
        return f"all work that failed with {self.error_code}"


class RetryCandidate(NamedTuple):
    """A job that a retry would requeue, with the work of its present pass.

    A tuple, because a preview makes 10,000 of them.
    """

    job_id: UUID
    shell_file_id: UUID
    step: Step
    scope: Scope
    encounters: int
    calls: int
    pages: int
    """Pages that are sent again."""
    input_tokens: int
    """Estimated from the text of the pages."""
    later_calls: int = 0
    """Estimated calls of the passes that follow, from the pages of the record."""
    later_tokens: int = 0
    """Estimated input tokens of these calls."""
    permanent: tuple[str, ...] = ()
    """Causes that no retry can repair by itself."""


@dataclass(frozen=True, kw_only=True)
class Ineligible:
    """Work that a retry would exclude, and the reason."""

    job_id: UUID
    shell_file_id: UUID
    reason: str


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The effect of a retry, as of `taken_at`."""

    selection: object
    """The request; its text describes it for people."""
    eligible: tuple[RetryCandidate, ...]
    ineligible: tuple[Ineligible, ...]
    output_tokens: int
    """Estimated from the share that earlier calls of the same passes needed."""
    cost_usd: Decimal
    """Cost of the calls of the present passes and of the passes that follow."""
    quota_minutes: float
    """Least minutes of quota for all these calls; requests or tokens, whichever binds."""
    same_versions: bool | None
    """Whether prompt and model are the same as in earlier calls; None without earlier calls."""
    taken_at: datetime
    is_capped: bool = False
    """Whether more jobs match; the preview has the oldest ones."""

    @cached_property
    def calls(self) -> int:
        """The number of calls, if each succeeds at once."""
        return sum(each.calls for each in self.eligible)

    @cached_property
    def input_tokens(self) -> int:
        """The estimated input tokens of these calls."""
        return sum(each.input_tokens for each in self.eligible)

    @cached_property
    def later_calls(self) -> int:
        """The estimated calls of the passes that follow."""
        return sum(each.later_calls for each in self.eligible)

    @cached_property
    def later_tokens(self) -> int:
        """The estimated input tokens of the passes that follow."""
        return sum(each.later_tokens for each in self.eligible)

    @cached_property
    def pages(self) -> int:
        """The number of pages that are sent again."""
        return sum(each.pages for each in self.eligible)

    @cached_property
    def encounters(self) -> int:
        """The number of failed encounters that are included."""
        return sum(each.encounters for each in self.eligible)

    @cached_property
    def reasons(self) -> dict[str, int]:
        """The number of excluded jobs, by reason."""
        return dict(Counter(each.reason for each in self.ineligible).most_common())

    def as_json(self) -> dict[str, Any]:
        """Return the preview for programs; only ids and figures."""
        return {
            "selection": str(self.selection),
            "taken_at": self.taken_at,
            "eligible": [
                {
                    "job_id": each.job_id,
                    "shell_file_id": each.shell_file_id,
                    "step": each.step,
                    "encounters": each.encounters,
                    "calls": each.calls,
                    "pages": each.pages,
                    "input_tokens": each.input_tokens,
                    "later_calls": each.later_calls,
                    "later_tokens": each.later_tokens,
                    "permanent": each.permanent,
                }
                for each in self.eligible
            ],
            "ineligible": [
                {
                    "job_id": each.job_id,
                    "shell_file_id": each.shell_file_id,
                    "reason": each.reason,
                }
                for each in self.ineligible
            ],
            "calls": self.calls,
            "pages": self.pages,
            "encounters": self.encounters,
            "input_tokens": self.input_tokens,
            "later_calls": self.later_calls,
            "later_tokens": self.later_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": self.cost_usd,
            "quota_minutes": round(self.quota_minutes, 2),
            "same_versions": self.same_versions,
            "is_capped": self.is_capped,
        }
