"""What each fault of the emulator must come to, whether it lasts or passes: one table.

Imports nothing of the pipeline but the emulator's names of faults, so that it can disagree with it.
`tests/integration/test_fault_matrix.py` holds both passes to the table.
`python -m tests.support.fault_matrix` prints the table.
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
"""Between the pieces of a trickle that ends in time."""
HINT_S = 0.02
EXHAUSTED = "MAX_RETRIES_EXCEEDED"


class Lasts(StrEnum):
    """How long a fault goes on."""

    PERSISTENT = "persistent"
    """Every call of its pages meets it."""
    PASSING = "passing"
    """The first one does."""


@dataclass(frozen=True, kw_only=True)
class ExpectedEnd:
    """How a batch or chunk of two pages ends, and with it the record that has no other."""

    status: str
    """Of the batch, the chunk; of a parked job's it is `pending`."""
    attempts: int = 0
    waits: int = 0
    calls: tuple[str, ...]
    """Outcome of each call in the order of parts, `FAULT` for the code of the fault."""
    error: str = ""
    """`error_code` of everything from the batch to the job, `FAULT` for the code of the fault."""
    words: str

    @property
    def failures(self) -> int:
        """How many entries its history has."""
        return self.calls.count(FAULT)


FAULT = "FAULT"


class ExpectedBudget(Enum):
    """What a fault costs: its name, its end while it lasts, and its end when it passes."""

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
    KEY = (
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

    def end(self, lasts: Lasts) -> ExpectedEnd:
        """Return what its faults come to."""
        return self._lasting if lasts is Lasts.PERSISTENT else self._passing

    @property
    def parks(self) -> bool:
        """Whether the job waits, which closes the gate for every other call."""
        return self in {ExpectedBudget.QUOTA, ExpectedBudget.KEY}


@dataclass(frozen=True, kw_only=True)
class FaultCase:
    """One fault, perhaps with a setting that makes another fault of it."""

    fault: str
    code: str = ""
    """Of the call; empty where the reply is read."""
    budget: ExpectedBudget
    setting: Mapping[str, Any] = field(default_factory=dict)
    times_out: bool = False
    """It is the call's wall deadline that ends it."""
    also: str = ""
    """Which of several rows of this fault it is."""

    @property
    def name(self) -> str:
        """Its name in the printed table."""
        return f"{self.fault} {self.also}".rstrip()

    @property
    def http_status(self) -> int | None:
        """The status that its calls bear; None where no answer came."""
        if self.fault[:3].isdigit():
            return int(self.fault[:3])
        return None if self.times_out or self.fault in {"reset", "cut"} else 200

    @property
    def in_outages(self) -> bool:
        """Whether the breaker counts it, and an outage gives it back."""
        return self.code in {"API_5XX", "API_TIMEOUT"}


def _rows() -> Iterator[FaultCase]:
    for fault in ("429", "429-tokens"):
        yield FaultCase(
            fault=fault,
            code="RATE_LIMIT",
            budget=ExpectedBudget.LIMITED,
            setting={"retry_after_s": HINT_S},
        )
    for fault in ("429-bare", "429-reason"):
        yield FaultCase(fault=fault, code="RATE_LIMIT", budget=ExpectedBudget.LIMITED)
    for fault in ("429-day", "429-mixed", "429-spend"):
        yield FaultCase(fault=fault, code="QUOTA_EXHAUSTED", budget=ExpectedBudget.QUOTA)
    for fault in ("400-key", "403"):
        yield FaultCase(fault=fault, code="API_AUTH", budget=ExpectedBudget.KEY)
    for fault in ("400-tokens", "400-size"):
        yield FaultCase(fault=fault, code="CONTEXT_TOO_LARGE", budget=ExpectedBudget.HALVES)
    for fault in ("400-bare", "400-schema", "400-deadline", "404"):
        yield FaultCase(fault=fault, code="API_4XX", budget=ExpectedBudget.ENDS)
    yield FaultCase(fault="400-pages", code="INPUT_INVALID", budget=ExpectedBudget.ENDS)
    for fault in ("500", "502", "503", "reset", "cut"):
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
    yield FaultCase(fault="fenced", budget=ExpectedBudget.NOTHING)
    for fault in ("bad-json", "html"):
        yield FaultCase(fault=fault, code="PARSE_JSON", budget=ExpectedBudget.ATTEMPT)
    for fault in ("bare-list", "wrong-shape"):
        yield FaultCase(fault=fault, code="PARSE_SCHEMA", budget=ExpectedBudget.ATTEMPT)
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


def markdown() -> str:
    """Return the matrix as a Markdown table."""
    lines = [
        "| fault | code | costs | Pass 0.5, persistent / passing | Pass 1, persistent / passing |",
        "|---|---|---|---|---|",
    ]
    for row in MATRIX:
        cells = (
            f"`{row.name}`",
            row.code or "–",
            row.budget.words,
            _both("chunk", row),
            _both("batch", row),
        )
        lines.append(f"| {' | '.join(cells)} |")
    refunded = ", ".join(f"`{row.name}`" for row in MATRIX if row.in_outages)
    lines += [
        "",
        (
            "Where a chunk or batch fails, its encounter, session, report card and job carry the"
            " same code, with the fault's own as the cause, and nothing of it is visible."
        ),
        "",
        (
            "Where these come together as an outage, every attempt that is made before the breaker"
            f" keeps the rest from it is refunded, and the job is parked: {refunded}."
        ),
    ]
    return "\n".join(lines)


def _both(unit: str, row: FaultCase) -> str:
    lasting, passing = (row.budget.end(lasts).words for lasts in Lasts)
    return f"{unit} {lasting} / {passing}"


if __name__ == "__main__":
    sys.stdout.write(f"{markdown()}\n")
