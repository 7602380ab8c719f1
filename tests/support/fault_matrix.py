"""The expected end of each fault of the emulator, for faults that last and faults that pass.

The table knows nothing of the pipeline, so that it can disagree with the pipeline's own rules.
`tests/integration/test_fault_matrix.py` checks all passes with calls against it, and
`python -m tests.support.fault_matrix` prints it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any

ATTEMPTS = 3
"""`PASS1_MAX_RETRIES`."""
LIMITED_CALLS = 3
"""`RATE_LIMIT_BUDGET` while the matrix is played."""
PIECES_S = 0.001
"""Seconds between the pieces of a trickled reply that ends in time."""
HINT_S = 0.02
EXHAUSTED = "MAX_RETRIES_EXCEEDED"


class Lasts(StrEnum):
    """How long a fault lasts."""

    PERSISTENT = "persistent"
    """Every call of the fault's pages fails."""
    PASSING = "passing"
    """Only the first call fails."""


@dataclass(frozen=True, kw_only=True)
class ExpectedEnd:
    """The end of a chunk, batch or zone of two pages, or of a narrative."""

    status: str
    """Status of the work item; `pending` while its job is parked."""
    attempts: int = 0
    waits: int = 0
    calls: tuple[str, ...]
    """Outcome of each call in the order of the splits; `FAULT` means the code of the fault."""
    error: str = ""
    """`error_code` from the item up to the job; `FAULT` means the code of the fault."""
    words: str

    @property
    def failures(self) -> int:
        """Number of entries in the history of failures."""
        return self.calls.count(FAULT)


FAULT = "FAULT"
WHOLE = ExpectedEnd(
    status="failed",
    calls=(FAULT,),
    error=FAULT,
    words="fails with the code, 0 attempts: no half is smaller",
)
"""The end of a fault that asks for halves, for an item that cannot be halved."""
INCIDENTS = {
    "QUOTA_EXHAUSTED": "quota",
    "API_AUTH": "credentials",
    "API_BILLING": "billing",
    "API_PROXY": "proxy",
}


class ExpectedBudget(Enum):
    """The cost of a fault: its name, and the ends of a lasting and of a passing fault."""

    ATTEMPT = (
        "attempt",
        ExpectedEnd(
            status="failed",
            attempts=ATTEMPTS,
            calls=(FAULT,) * ATTEMPTS,
            error=EXHAUSTED,
            words=f"fails, {EXHAUSTED}, {ATTEMPTS} attempts",
        ),
        ExpectedEnd(
            status="succeeded", attempts=2, calls=(FAULT, "OK"), words="succeeds, 2 attempts"
        ),
    )
    SAME_REPLY = (
        "attempt, two of the same reply",
        ExpectedEnd(
            status="failed",
            attempts=2,
            calls=(FAULT,) * 2,
            error=FAULT,
            words="fails with the code, 2 attempts",
        ),
        ExpectedEnd(
            status="succeeded", attempts=2, calls=(FAULT, "OK"), words="succeeds, 2 attempts"
        ),
    )
    LIMITED = (
        "limited call",
        ExpectedEnd(
            status="failed",
            waits=LIMITED_CALLS,
            calls=(FAULT,) * LIMITED_CALLS,
            error=EXHAUSTED,
            words=f"fails, {EXHAUSTED}, all limited calls, 0 attempts",
        ),
        ExpectedEnd(
            status="succeeded",
            attempts=1,
            waits=1,
            calls=(FAULT, "OK"),
            words="succeeds, 1 attempt, 1 wait",
        ),
    )
    QUOTA = (
        "none, parks",
        ExpectedEnd(
            status="pending", calls=(FAULT, FAULT), words="waits, job parked until the reset"
        ),
        ExpectedEnd(
            status="succeeded",
            attempts=1,
            calls=(FAULT, "OK"),
            words="the same, then succeeds, 1 attempt",
        ),
    )
    ACCESS = (
        "none, parks",
        ExpectedEnd(
            status="pending", calls=(FAULT, FAULT), words="waits, job parked for the incident"
        ),
        ExpectedEnd(
            status="succeeded",
            attempts=1,
            calls=(FAULT, "OK"),
            words="the same, then succeeds, 1 attempt",
        ),
    )
    HALVES = (
        "none, halves",
        ExpectedEnd(
            status="failed",
            calls=(FAULT, FAULT, FAULT),
            error=FAULT,
            words="halved to one page, fails with the code, 0 attempts",
        ),
        ExpectedEnd(
            status="succeeded",
            attempts=1,
            calls=(FAULT, "OK", "OK"),
            words="halved, succeeds, 1 attempt",
        ),
    )
    ENDS = (
        "ends at once",
        ExpectedEnd(
            status="failed",
            attempts=1,
            calls=(FAULT,),
            error=FAULT,
            words="fails with the code, asked once",
        ),
        ExpectedEnd(
            status="failed",
            attempts=1,
            calls=(FAULT,),
            error=FAULT,
            words="the same",
        ),
    )
    NOTHING = (
        "nothing",
        ExpectedEnd(status="succeeded", attempts=1, calls=("OK",), words="read, 1 attempt"),
        ExpectedEnd(status="succeeded", attempts=1, calls=("OK",), words="read, 1 attempt"),
    )

    def __init__(self, words: str, lasting: ExpectedEnd, passing: ExpectedEnd) -> None:
        self.words = words
        self._lasting = lasting
        self._passing = passing

    def end(self, lasts: Lasts, *, has_halves: bool = True) -> ExpectedEnd:
        """Return the end of a fault with this budget.

        A narrative has no halves: its prompt lists entities and shows no pages.
        """
        if self is ExpectedBudget.HALVES and not has_halves:
            return WHOLE
        return self._lasting if lasts is Lasts.PERSISTENT else self._passing

    @property
    def parks(self) -> bool:
        """Whether the job parks, which closes the rate limiter for every other call."""
        return self in {ExpectedBudget.QUOTA, ExpectedBudget.ACCESS}


@dataclass(frozen=True, kw_only=True)
class FaultCase:
    """One fault; a setting can turn a fault into a different one."""

    fault: str
    code: str = ""
    """Error code of the call; empty when the reply is accepted."""
    budget: ExpectedBudget
    setting: Mapping[str, Any] = field(default_factory=dict)
    times_out: bool = False
    """Whether the deadline of the call ends it."""
    also: str = ""
    """Tells rows of the same fault apart."""

    @property
    def name(self) -> str:
        """Name of the row in the printed table."""
        return f"{self.fault} {self.also}".rstrip()

    @property
    def http_status(self) -> int | None:
        """HTTP status of the calls; None when no answer came."""
        if self.fault[:3].isdigit():
            return int(self.fault[:3])
        return None if self.times_out or self.fault in {"reset", "cut"} else 200

    @property
    def incident(self) -> str:
        """Kind of the incident for which the job waits; empty if the fault parks nothing."""
        return INCIDENTS.get(self.code, "")

    @property
    def in_outages(self) -> bool:
        """Whether the breaker counts the fault, so that an outage returns the attempt."""
        return self.code in {"API_5XX", "API_TIMEOUT"}


def _rows() -> Iterator[FaultCase]:
    for fault in ("429", "429-tokens"):
        yield FaultCase(
            fault=fault,
            code="RATE_LIMIT",
            budget=ExpectedBudget.LIMITED,
            setting={"retry_after_s": HINT_S},
        )
    yield FaultCase(
        fault="429-date",
        code="RATE_LIMIT",
        budget=ExpectedBudget.LIMITED,
        # The date is the next whole second, so the client waits for one second.
        setting={"retry_after_s": 0.0},
    )
    for fault in ("429-bare", "429-reason"):
        yield FaultCase(fault=fault, code="RATE_LIMIT", budget=ExpectedBudget.LIMITED)
    for fault in ("429-day", "429-mixed", "429-spend"):
        yield FaultCase(fault=fault, code="QUOTA_EXHAUSTED", budget=ExpectedBudget.QUOTA)
    for fault in ("400-key", "403"):
        yield FaultCase(fault=fault, code="API_AUTH", budget=ExpectedBudget.ACCESS)
    yield FaultCase(fault="402", code="API_BILLING", budget=ExpectedBudget.ACCESS)
    for fault in ("302", "403-html", "407", "html"):
        yield FaultCase(fault=fault, code="API_PROXY", budget=ExpectedBudget.ACCESS)
    for fault in ("400-tokens", "400-size"):
        yield FaultCase(fault=fault, code="CONTEXT_TOO_LARGE", budget=ExpectedBudget.HALVES)
    for fault in ("400-bare", "400-schema", "400-deadline", "404"):
        yield FaultCase(fault=fault, code="API_4XX", budget=ExpectedBudget.ENDS)
    yield FaultCase(fault="400-pages", code="INPUT_INVALID", budget=ExpectedBudget.ENDS)
    for fault in ("500", "502", "503", "200-error", "reset", "cut"):
        yield FaultCase(fault=fault, code="API_5XX", budget=ExpectedBudget.ATTEMPT)
    for fault in ("499", "503-deadline", "504"):
        yield FaultCase(fault=fault, code="API_TIMEOUT", budget=ExpectedBudget.ATTEMPT)
    for fault in ("hang", "slow", "late"):
        yield FaultCase(
            fault=fault, code="API_TIMEOUT", budget=ExpectedBudget.ATTEMPT, times_out=True
        )
    yield FaultCase(
        fault="trickle",
        code="API_TIMEOUT",
        budget=ExpectedBudget.ATTEMPT,
        times_out=True,
        also="past the deadline",
    )
    yield FaultCase(
        fault="trickle",
        budget=ExpectedBudget.NOTHING,
        setting={"delay_s": PIECES_S},
        also="in time",
    )
    for fault in ("fenced", "prose-around-json", "bad-item"):
        yield FaultCase(fault=fault, budget=ExpectedBudget.NOTHING)
    yield FaultCase(fault="bad-json", code="PARSE_JSON", budget=ExpectedBudget.ATTEMPT)
    for fault in ("bare-list", "wrong-shape"):
        yield FaultCase(fault=fault, code="PARSE_SCHEMA", budget=ExpectedBudget.SAME_REPLY)
    yield FaultCase(fault="wrong-token", code="REPLY_MISMATCH", budget=ExpectedBudget.ATTEMPT)
    for fault in ("empty", "empty-object", "empty-body"):
        yield FaultCase(fault=fault, code="EMPTY_RESPONSE", budget=ExpectedBudget.ATTEMPT)
    for fault in ("truncated", "truncated-empty", "loop", "loop-newlines"):
        yield FaultCase(fault=fault, code="OUTPUT_TRUNCATED", budget=ExpectedBudget.HALVES)
    yield FaultCase(fault="blocked", code="CONTENT_BLOCKED", budget=ExpectedBudget.ENDS)
    for reason, code, budget in (
        ("SAFETY", "CONTENT_BLOCKED", ExpectedBudget.ENDS),
        ("RECITATION", "CONTENT_BLOCKED", ExpectedBudget.ENDS),
        ("MAX_TOKENS", "OUTPUT_TRUNCATED", ExpectedBudget.HALVES),
        ("MALFORMED_RESPONSE", "PARSE_JSON", ExpectedBudget.ATTEMPT),
        ("OTHER", "EMPTY_RESPONSE", ExpectedBudget.ATTEMPT),
        ("A_REASON_OF_TOMORROW", "EMPTY_RESPONSE", ExpectedBudget.ATTEMPT),
    ):
        yield FaultCase(
            fault="finish", code=code, budget=budget, setting={"reason": reason}, also=reason
        )


MATRIX: tuple[FaultCase, ...] = tuple(_rows())
"""Every fault of `gemini_emulator.faults`, in the order of its codes."""


UNITS = {"Pass 0.5": "chunk", "Pass 1": "batch", "Pass 2": "zone", "Pass 3": "narrative"}
"""The work items of each pass."""


def markdown() -> str:
    """Return the matrix as a Markdown table."""
    passes = " | ".join(f"{name}, persistent / passing" for name in UNITS)
    lines = [
        f"| fault | code | costs | {passes} |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in MATRIX:
        cells = (
            f"`{row.name}`",
            row.code or "–",
            row.budget.words,
            *(_both(unit, row) for unit in UNITS.values()),
        )
        lines.append(f"| {' | '.join(cells)} |")
    refunded = ", ".join(f"`{row.name}`" for row in MATRIX if row.in_outages)
    lines += [
        "",
        (
            "If an item fails, its encounter, session, report card and job carry the same code,"
            " with the fault's own code as the cause, and no result of the item is visible."
        ),
        "",
        (
            "Where these come together as an outage, every attempt that is made before the breaker"
            f" keeps the rest from it is refunded, and the job is parked: {refunded}."
        ),
    ]
    return "\n".join(lines)


def _both(unit: str, row: FaultCase) -> str:
    halves = unit != UNITS["Pass 3"]
    lasting, passing = (row.budget.end(lasts, has_halves=halves).words for lasts in Lasts)
    return f"{unit} {lasting} / {passing}"


if __name__ == "__main__":
    sys.stdout.write(f"{markdown()}\n")
