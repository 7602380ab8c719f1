"""What a retry is asked for, and what it would do. Imports `errors`, `states` and Scope only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from pipeline.core.errors import ErrorCode
from pipeline.core.states import Step
from pipeline.transitions import Scope

JOBS_LIMIT = 10_000
"""Jobs that one preview, and what is started from it, looks at."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is to be retried: by one id, or by the code or incident that it failed with.

    Raises ValueError unless exactly one of the seven is given. The times bound when it failed.
    """

    record: UUID | None = None
    job: UUID | None = None
    jobs: tuple[UUID, ...] | None = None
    """Several, whole."""
    encounter: UUID | None = None
    batch: UUID | None = None
    """A batch of Pass 1 or a chunk of Pass 0.5."""
    incident: UUID | None = None
    """What failed because of it."""
    error_code: ErrorCode | None = None
    """The code itself, or the one behind MAX_RETRIES_EXCEEDED."""
    step: Step | None = None
    model: str | None = None
    """With a code: what failed with it at a call of this model."""
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        given = (
            self.record, self.job, self.jobs, self.encounter, self.batch, self.incident,
            self.error_code,
        )  # fmt: skip
        if sum(each is not None for each in given) != 1:
            raise ValueError("name one record, job, encounter or batch, or one code or incident")

    def __str__(self) -> str:
        for name in ("record", "job", "encounter", "batch"):
            if (value := getattr(self, name)) is not None:
                return f"{name} {value}"
        if self.jobs is not None:
            return "jobs that failed again"
        if self.incident is not None:
            return f"all that failed because of incident {self.incident}"
        return f"all that failed with {self.error_code}"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A job that a retry would put back in line, with what it would ask for in its present pass."""

    job_id: UUID
    shell_file_id: UUID
    step: Step
    scope: Scope = field(repr=False)
    encounters: int
    calls: int
    pages: int
    """Pages sent again."""
    input_tokens: int
    """By estimate, of the pages' text."""
    permanent: tuple[str, ...] = ()
    """Causes that no retry mends by itself."""


@dataclass(frozen=True, kw_only=True)
class Ineligible:
    """Something that a retry would leave as it is, and why."""

    job_id: UUID
    shell_file_id: UUID
    reason: str


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What a retry would do, as of `taken_at`. Later passes follow; their calls are not counted."""

    selection: object
    """What was asked for; its text says it to people."""
    eligible: tuple[Candidate, ...]
    ineligible: tuple[Ineligible, ...]
    output_tokens: int
    """By the share that earlier calls of the same passes needed."""
    cost_usd: Decimal
    quota_minutes: float
    """What the calls take of the quota at least; whichever of requests and tokens binds."""
    same_versions: bool | None
    """Whether prompt and model are those of the calls before; None where there were none."""
    taken_at: datetime
    is_capped: bool = False
    """Whether there are more; these are the oldest."""

    @property
    def calls(self) -> int:
        """How many calls it would make, if each succeeds at once."""
        return sum(each.calls for each in self.eligible)

    @property
    def input_tokens(self) -> int:
        """How many input tokens they carry, by estimate."""
        return sum(each.input_tokens for each in self.eligible)

    @property
    def pages(self) -> int:
        """How many pages are sent again."""
        return sum(each.pages for each in self.eligible)

    @property
    def encounters(self) -> int:
        """How many failed encounters are taken up."""
        return sum(each.encounters for each in self.eligible)

    @property
    def reasons(self) -> dict[str, int]:
        """How many are left alone, by reason."""
        return dict(Counter(each.reason for each in self.ineligible).most_common())

    def as_json(self) -> dict[str, Any]:
        """Return it for programs; holds ids and figures only."""
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
            "output_tokens": self.output_tokens,
            "cost_usd": self.cost_usd,
            "quota_minutes": round(self.quota_minutes, 2),
            "same_versions": self.same_versions,
            "is_capped": self.is_capped,
        }
