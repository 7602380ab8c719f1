"""The event log of a step: its entries, and how values of the executor look in them.

A log has one JSON line per entry, in the order of the executor thread. `in` is what the thread was
told (a finished call, the time, an event of the fan-out), `call` a question to its environment with
the recorded answer, `out` a decision.
"""

from __future__ import annotations

import itertools
import json
import lzma
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db import DataError, OperationalError

from pipeline.core.errors import CallDetails, CallError, ErrorCode, LeaseLostError, PipelineError
from pipeline.execution import fanout
from pipeline.execution.splits import SplitKey
from pipeline.execution.step_result import (
    AllItemsEnded,
    ExecutorResult,
    StepFailed,
    StepInterrupted,
    StepParked,
)
from pipeline.execution.step_work import AcceptedReply
from pipeline.transitions import Flush, Parking

FOLDER = Path(__file__).parents[1] / "fixtures" / "executor_logs"

Entry = dict[str, Any]
_REPLIES = itertools.count()


class LogEndedError(BaseException):
    """The log has ended, because its worker was killed. No `except Exception` may catch this."""


class DivergedError(BaseException):
    """The executor differs from the log. No `except Exception` may catch this."""


def logs(path: Path) -> Iterator[list[Entry]]:
    """Provide the log of each step of a fixture."""
    entries: list[Entry] = []
    with lzma.open(path, "rt") as lines:
        for line in lines:
            entry = json.loads(line)
            if entry.get("in") == "step" and entries:
                yield entries
                entries = []
            entries.append(entry)
    yield entries


def plain(value: Any) -> Any:
    """Return a value as a log has it."""
    return json.loads(json.dumps(value, default=str))


@dataclass
class EventLog:
    """A cursor over the entries of one step, and the count of what was compared."""

    entries: list[Entry]
    position: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    now: float = 0.0
    epoch: float = 0.0
    _difference: DivergedError | None = None

    @property
    def next(self) -> Entry:
        # What the executor does after the first difference, to end its run, tells nothing.
        if self._difference is not None:
            raise self._difference
        if self.position == len(self.entries):
            raise LogEndedError
        return self.entries[self.position]

    def compare(self, found: Any, logged: Any) -> None:
        """Raise DivergedError where the executor differs from the log."""
        if found != logged:
            message = f"entry {self.position}:\n executor {found}\n log      {logged}"
            self._difference = DivergedError(message)
            raise self._difference

    def take(self, kind: str) -> Entry:
        """Take the next entry, an input of this kind; the clock is set to its time."""
        entry = self.next
        self.compare({"in": kind}, {"in": entry.get("in")} if "in" in entry else entry)
        self.position += 1
        self.now, self.epoch = entry["t"]
        self.compared["inputs"] += 1
        return entry

    def expect(self, kind: str, name: str, **said: Any) -> Entry:
        """Take the next entry, which must be this question or decision."""
        entry = self.next
        told = {k: v for k, v in entry.items() if k not in {"answer", "error"}}
        if name == "raised":
            told = dict(entry)
        found = {kind: name, **plain(said)}
        self.compare(found, told)
        self.position += 1
        self.compared["questions" if kind == "call" else "decisions"] += 1
        return entry

    def ask(self, name: str, **said: Any) -> Any:
        """Take the recorded answer to a question, or raise the recorded error."""
        entry = self.expect("call", name, **said)
        match entry.get("error"):
            case None:
                return entry["answer"]
            case "away":
                raise OperationalError("the server is away")
            case "refused":
                raise DataError("refused")
            case "lease lost":
                raise LeaseLostError("the lease was lost")
            case other:
                raise RuntimeError(other)

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.epoch

    def sleep(self, seconds: float) -> None:
        """Take the next entry of the log instead of waiting."""
        self.take("turn")

    def wall(self) -> datetime:
        return datetime.fromtimestamp(self.epoch, UTC)


def key_entry(key: SplitKey) -> list[str]:
    return [str(key[0]), key[1]]


def details_entry(details: CallDetails) -> Entry:
    empty = {**asdict(CallDetails()), "raw_reply": False}
    found = {**asdict(details), "raw_reply": bool(details.raw_reply)}
    return {name: value for name, value in found.items() if value != empty[name]}


def details_of(entry: Entry) -> CallDetails:
    # The logs have no text of a reply. They are older than the rule about identical replies, so
    # each reply is another text here. The fault matrix tests that rule.
    raw_reply = f"reply {next(_REPLIES)}" if entry.get("raw_reply") else ""
    return CallDetails(**{**entry, "raw_reply": raw_reply})


def reply_entry(reply: AcceptedReply | None) -> Entry | None:
    if reply is None:
        return None
    return {
        "output": reply.output,
        "counts": reply.counts,
        "details": details_entry(reply.details),
    }


def reply_of(entry: Entry) -> AcceptedReply:
    return AcceptedReply(
        output=entry["output"],
        counts=entry["counts"],
        details=details_of(entry.get("details", {})),
    )


def error_entry(error: BaseException | None) -> Entry | None:
    match error:
        case None:
            return None
        case CallError():
            return {
                "type": "call",
                "code": error.code,
                "message": error.message,
                "details": details_entry(error.details),
            }
        case PipelineError():
            return {"type": "pipeline", "code": error.code, "message": error.message}
        case fanout.CallTimedOut():
            return {
                "type": "timed_out",
                "deadline_s": error.deadline_s,
                "elapsed_s": error.elapsed_s,
            }
        case fanout.DeadlineExceeded():
            return {
                "type": "deadline",
                "delay_s": error.delay_s,
                "remaining_s": error.remaining_s,
            }
        case _:
            return {"type": "other", "name": type(error).__name__}


def error_of(entry: Entry) -> BaseException:
    match entry["type"]:
        case "call":
            return CallError(
                entry["message"],
                code=ErrorCode(entry["code"]),
                details=details_of(entry["details"]),
            )
        case "pipeline":
            return PipelineError(entry["message"], code=ErrorCode(entry["code"]))
        case _:
            error: BaseException = type(entry["name"], (Exception,), {})()
            return error


def item_entry(item: fanout.Item[SplitKey, Hashable]) -> Entry:
    return {
        "key": key_entry(item.key),
        "group": str(item.group),
        "size": item.size,
        "attempts": item.attempts,
        "waits": item.free_retries,
    }


_SHOWN: dict[str, Callable[[Any], Any]] = {
    "key": key_entry,
    "result": reply_entry,
    "error": error_entry,
    "items": lambda items: [item_entry(item) for item in items],
    "failed_keys": lambda keys: [key_entry(key) for key in keys],
    "group": str,
}


def value_entry(value: Any) -> Entry:
    """Return an event or a decision as a log has it."""
    found = {f.name: getattr(value, f.name) for f in fields(value)}
    return {
        "kind": type(value).__name__,
        **{name: _SHOWN.get(name, lambda same: same)(each) for name, each in found.items()},
    }


def call_entry(row: Entry) -> Entry:
    return {k: v for k, v in row.items() if k not in {"id", "prompt_version", "schema_version"}}


def flush_entry(flush: Flush) -> Entry:
    return {
        "items": flush.items,
        "calls": [call_entry(row) for row in flush.calls],
        "payloads": [[row["page_range_start"], row["page_range_end"]] for row in flush.payloads],
        "encounters": flush.parents,
        "entities": len(flush.results),
    }


def parking_entry(parking: Parking) -> Entry:
    return {
        "reason": parking.reason,
        "until": parking.until and parking.until.isoformat(),
        "incident_id": parking.incident_id and str(parking.incident_id),
        "pause_id": parking.pause_id and str(parking.pause_id),
    }


def result_entry(result: ExecutorResult) -> Entry:
    match result:
        case AllItemsEnded():
            return {"kind": "all_ended"}
        case StepParked(parking=parking):
            return {"kind": "parked", **parking_entry(parking)}
        case StepInterrupted(reason=reason):
            return {"kind": "interrupted", "reason": reason}
        case StepFailed(failure=failure):
            return {
                "kind": "failed",
                "code": failure.code,
                # The logs are older than the waits at the end of this message.
                "message": failure.message.partition("; waited")[0],
                "encounter_id": failure.encounter_id and str(failure.encounter_id),
                "batch_index": failure.batch_index,
            }
