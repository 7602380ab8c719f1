"""Replays the event log of a recorded step through the executor, without a database.

`ReplayedStep.play` feeds the inputs of the log, gives the recorded answers, and fails at the first
question, decision, row or result that differs from the log.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Self, cast
from unittest.mock import patch
from uuid import UUID, uuid4

from django.db import OperationalError
from django.test import override_settings
from pydantic import BaseModel

from pipeline import transitions
from pipeline.core import deadline as core_deadline
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import CallDetails, ErrorCode, LeaseLostError, PipelineError
from pipeline.core.states import Step
from pipeline.execution import (
    admission,
    call_log,
    executor,
    failed_call,
    fanout,
    heartbeat,
    preemption,
    split_plan,
    step_writer,
)
from pipeline.execution.executor import StepExecutor
from pipeline.execution.fanout.scheduler import Scheduler
from pipeline.execution.splits import Split, SplitKey
from pipeline.execution.step_work import AcceptedReply
from pipeline.incidents import lifecycle
from pipeline.models import Batch, selectors
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import WORK_TABLES
from pipeline.providers.base import Provider, Request
from pipeline.ratelimit import Ask, Later, Reported, Standing, Ticket, Why
from pipeline.ratelimit.types import Go, Outcome
from pipeline.transitions import Flush, Lease, Parking
from tests.support.event_log import (
    Entry,
    EventLog,
    LogEndedError,
    details_entry,
    error_of,
    flush_entry,
    item_entry,
    key_entry,
    plain,
    reply_of,
    result_entry,
    value_entry,
)

CLOCKED = (
    core_deadline,
    admission,
    call_log,
    executor,
    failed_call,
    heartbeat,
    preemption,
    step_writer,
)
"""Modules that read `time`."""
DATED = (admission, call_log, executor)
"""Modules that read `timezone`."""


class AnyReply(BaseModel):
    """A stored reply; the log has only its hash."""


COUNTED = frozenset({Why.RAMP, Why.REQUESTS, Why.TOKENS, Why.TURN, Why.NEW, Why.LOCAL})
"""Waits that counted towards the deadline of a step when the logs were recorded."""


class RecordedDeadline(StepDeadline):
    """A deadline whose every extension must be in the log.

    The logs are older than two rules: all waits for the rate limiter are left out, and so is the
    moment until the step asks again. `test_quota_waits.py` tests these rules.
    """

    log: EventLog

    def leave_out_until(self, now: float) -> None:
        pass

    def extend(self, seconds: float) -> None:
        super().extend(seconds)
        self.log.expect("out", "extend_deadline", seconds=seconds, ends_at=self.ends_at)


@dataclass
class RecordedLimiter:
    """Answers as the rate limiter did."""

    log: EventLog

    def admit_many(self, asks: Sequence[Ask], standing: object) -> list[Go | Later]:
        (ask,) = asks
        return [self.admit(ask)]

    def admit(self, ask: Ask) -> Go | Later:
        answer = self.log.ask("limiter.admit", item=ask.item, tokens=ask.tokens)
        if not answer["go"]:
            return Later(
                seconds=answer["seconds"],
                why=Why(answer["why"]),
                outage_since=answer["failing_since"],
            )
        return Go(
            ticket=Ticket(
                id="",
                item=ask.item,
                generation=0,
                epoch=0,
                bucket="",
                tokens=ask.tokens,
                estimate=ask.tokens,
                prompt_version="",
                asked_at=0.0,
                is_probe=answer["is_probe"],
            )
        )

    def report(self, ticket: Ticket, outcome: Outcome) -> Reported:
        answer = self.log.ask("limiter.report", item=ticket.item, **self._outcome(outcome))
        return Reported(starts_in_s=answer["opens_in_s"], outage_since=answer["failing_since"])

    def note(self, ticket: Ticket, outcome: Outcome) -> None:
        self.log.ask("limiter.note", item=ticket.item, **self._outcome(outcome))

    def flush(self) -> None:
        """Report nothing; the recorded executor sent each outcome by itself."""

    def abandon(self, items: Sequence[str]) -> None:
        self.log.ask("limiter.abandon", items=items)

    def leave(self) -> None:
        """Give up no place; the recorded runs do not tell of places."""

    def align(self, standing: Standing) -> None:
        self.log.ask("limiter.align", standing=_standing_entry(standing))

    def state(self) -> Any:
        outage = self.log.ask("limiter.last_outage")
        return SimpleNamespace(last_outage=outage and tuple(outage))

    @staticmethod
    def _outcome(outcome: Outcome) -> Entry:
        return {
            "code": outcome.code,
            "input_tokens": outcome.input_tokens,
            "retry_after_s": outcome.retry_after_s,
            "quota_id": outcome.quota_id,
        }


class RecordedWork:
    """The work items of a log, and the publisher of their groups."""

    schema = BaseModel

    def __init__(self, log: EventLog, header: Entry) -> None:
        self.log = log
        self.model: type[Any] = WORK_TABLES[Step(header["pass"])].model
        rows = {row["id"]: self._row(row) for row in header["rows"]}
        self.rows = [rows[row["id"]] for row in header["rows"] if not row["known"]]
        self.known = [rows[row["id"]] for row in header["rows"] if row["known"]]
        self._groups = {UUID(row["id"]): UUID(row["group"]) for row in header["rows"]}
        self._pages = {UUID(row["id"]): row["pages"] for row in header["rows"]}
        self.groups = [UUID(group) for group in header["groups"]]
        decided = [e["decision"] for e in log.entries if e.get("out") == "decide"]
        made = [e for e in log.entries if e.get("out") == "fanout"]
        items = [item for each in (*made, *decided) for item in each.get("items", ())]
        self._sizes = {(UUID(i["key"][0]), i["key"][1]): i["size"] for i in items}

    def _row(self, row: Entry) -> Any:
        names = {f.attname for f in self.model._meta.concrete_fields}
        values = {k: v for k, v in row.items() if k in names}
        values["page_range_start"], values["page_range_end"] = row["page_range"]
        values["id"] = UUID(row["id"])
        for name in ("started_at", "completed_at"):
            values[name] = row[name] and datetime.fromisoformat(row[name])
        if self.model is Batch:
            values["batch_index"] = row["index"]
            values["healthcare_encounter_id"] = UUID(row["encounter_id"])
        else:
            values["chunk_index"] = row["index"]
        return self.model(**values)

    def group_of(self, row: WorkItem) -> Hashable:
        return self._groups[row.id]

    def pages_of(self, row: WorkItem) -> Sequence[int]:
        return cast(Sequence[int], self._pages[row.id])

    def size_of(self, split: Split[Any]) -> int:
        return cast(int, self._sizes[split.key])

    def request(self, split: Split[Any]) -> Request:
        raise AssertionError("a replay makes no call")

    def accept(self, split: Split[Any], output: BaseModel) -> AcceptedReply:
        """Return a stored reply again, as it was read when the step resumed."""
        answer = self.log.ask("read_stored_reply", key=key_entry(split.key))
        if answer is None:
            raise PipelineError("unusable")
        return reply_of(answer)

    def merge(
        self, row: WorkItem, outputs: Sequence[tuple[Split[Any], Mapping[str, Any]]]
    ) -> AcceptedReply:
        names = [split.name for split, _ in outputs]
        return reply_of(self.log.ask("merge", item=str(row.id), splits=names))

    def start(self, row: WorkItem, flush: Flush) -> None:
        flush.parents += self.log.ask("group_started", item=str(row.id))

    def settle(self, group: Hashable, flush: Flush) -> Sequence[UUID]:
        answer = self.log.ask("settle_group", group=str(group))
        flush.parents += answer["encounters"]
        flush.results += [{}] * answer["entities"]
        return [UUID(row) for row in answer["published"]]

    def refuse(self, group: Hashable, code: ErrorCode, flush: Flush) -> None:
        flush.parents += self.log.ask("refuse_group", group=str(group), code=code)


class RecordedFanOut:
    """The real scheduler, told what the log says in place of threads and a clock."""

    log: EventLog

    def __init__(
        self,
        items: Sequence[fanout.Item[SplitKey, Hashable]],
        *,
        call: Any,
        decide: Callable[..., Any],
        admit_many: Callable[..., Any],
        groups: Sequence[Hashable],
        limits: fanout.Limits,
        deadline: StepDeadline,
    ) -> None:
        made = self.log.next
        known = asdict(limits)
        made["limits"] = {k: v for k, v in made["limits"].items() if k in known}
        self.log.expect(
            "out",
            "fanout",
            items=[item_entry(item) for item in items],
            groups=[str(group) for group in groups],
            limits=known,
        )
        self._decide, self._admit_many = decide, admit_many
        self._scheduler: Scheduler[SplitKey, Hashable, AcceptedReply] = Scheduler(
            items,
            self._decided,
            limits=limits,
            now=self.log.now,
            groups=groups,
            admit=self._admitted,
            deadline=deadline,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scheduler.abandon()

    @property
    def stop_reason(self) -> str | None:
        return self._scheduler.stop_reason

    def stop(self, reason: str, *, grace_s: float | None = None) -> None:
        self.log.expect("out", "request_stop", reason=reason, grace_s=grace_s)

    def events(self) -> Iterator[Any]:
        told = {
            "start_next": lambda e: self._scheduler.start_next(e["t"][0]),
            "advance": lambda e: self._scheduler.advance(e["t"][0]),
            "succeed": lambda e: self._scheduler.succeed(
                e["call_no"], reply_of(e["result"]), duration_s=e["duration_s"]
            ),
            "fail": lambda e: self._scheduler.fail(
                e["call_no"], error_of(e["error"]), now=e["t"][0], duration_s=e["duration_s"]
            ),
            "stop": lambda e: self._scheduler.stop(
                e["reason"], now=e["t"][0], grace_s=e["grace_s"]
            ),
        }
        while True:
            self._skip_a_look()
            kind = self.log.next.get("in", "event")
            entry = self.log.take(kind)
            if kind in told:
                told[kind](entry)
                continue
            event = self._event(entry["event"])
            yield event
            if isinstance(event, fanout.Finished | fanout.Stopped):
                return

    def _skip_a_look(self) -> None:
        """Skip a look for smaller records at the moment between parking and its effect.

        The recorded executor stopped the run by a message to itself; this one stops the run in the
        same step, and so has no such moment.
        """
        parks = self._scheduler.stop_reason == failed_call.PARKED
        if parks and self.log.next.get("call") == "should_preempt":
            self.log.position += 1
            self.log.compared["looks less"] += 1

    def _event(self, recorded: Entry) -> Any:
        is_tick = recorded["kind"] == "Tick"
        waiting: deque[Any] = self._scheduler.events
        if not (is_tick or waiting):
            self.log.compare(None, recorded)
        event = self._scheduler.tick() if is_tick else waiting.popleft()
        self.log.compare(plain(value_entry(event)), recorded)
        self.log.compared["events"] += 1
        return event

    def _decided(self, item: Any, attempt: int, error: BaseException, now: float) -> Any:
        decision = self._decide(item, attempt, error, now)
        self.log.expect("out", "decide", key=key_entry(item.key), decision=value_entry(decision))
        return decision

    def _admitted(self, item: Any, now: float) -> Any:
        # The recorded executor asked about one item at a time.
        _, answer = self._admit_many([item], now)
        parks = isinstance(answer, fanout.Park)
        hold_s = self.log.next.get("hold_s") if parks else answer
        self.log.expect("out", "admit", key=key_entry(item.key), hold_s=hold_s, parks=parks)
        return answer


@dataclass
class ReplayedStep:
    """One step of a fixture."""

    log: EventLog

    def play(self) -> Counter[str]:
        """Replay the step; return the number of inputs, questions, decisions, events and rows."""
        header = self.log.take("step")
        work = RecordedWork(self.log, header)
        lease = Lease(
            job_id=UUID(header["job"]),
            shell_file_id=uuid4(),
            session_id=UUID(header["session"]),
            step=Step(header["pass"]),
            gen=header["lease_gen"],
            worker_id="worker",
        )
        with self._environment(header):
            deadline = RecordedDeadline(3600.0)
            try:
                self._run(lease, work, SimpleNamespace(**header["provider"]), deadline)
            except LogEndedError:
                self.log.compared["cut off"] += 1
        self.log.compare(self.log.position, len(self.log.entries))
        self.log.compared["steps"] += 1
        return self.log.compared

    def _run(self, lease: Lease, work: RecordedWork, provider: Any, deadline: StepDeadline) -> None:
        publisher = work if work.model is Batch else None
        self._deadline = deadline
        step: StepExecutor[Any] = StepExecutor(
            lease, work, cast(Provider, provider), deadline, publisher
        )
        deadline_s = self.log.take("run")["deadline_s"]
        try:
            # In the logs, a statement of its own stored the deadline before the first heartbeat.
            self.log.ask("set_deadline", seconds=deadline_s)
            result = step.run(deadline_s)
        except LeaseLostError:
            self.log.expect("out", "raised", error="lease lost")
        except OperationalError:
            self.log.expect("out", "raised", error="away")
        except RuntimeError as error:
            self.log.expect("out", "raised", error=str(error))
        else:
            self.log.expect("out", "result", result=result_entry(result))

    @contextmanager
    def _environment(self, header: Entry) -> Iterator[None]:
        log = self.log
        provider = header["provider"]["name"]
        limiter = None if provider == admission.UNLIMITED else RecordedLimiter(log)
        replaced: list[tuple[Any, str, Any]] = [
            *((module, "time", log) for module in CLOCKED),
            *((module, "timezone", SimpleNamespace(now=log.wall)) for module in DATED),
            (transitions, "renew_lease", self._renew_lease),
            (transitions, "write", self._write),
            (selectors, "split_calls", self._split_calls),
            (split_plan, "stored_output", lambda *_, **__: AnyReply()),
            (admission, "limiter_of", lambda _: limiter),
            (admission, "_NOT_COUNTED", frozenset(Why) - COUNTED),
            # The logs are older than the pause after a refused heartbeat.
            (heartbeat, "REPEAT_SHARE", 0.0),
            (admission, "pause_on", self._pause_on),
            (lifecycle, "open_and_park", self._parking),
            (lifecycle, "standing", lambda _: _standing_of(log.ask("standing"))),
            (preemption, "should_preempt", lambda *_: log.ask("should_preempt")),
            (preemption, "preempt_after_s", lambda: header["preempt_after_s"]),
            (random, "Random", lambda: SimpleNamespace(random=lambda: log.ask("random"))),
            (executor, "grace_s", lambda: header["grace_s"]),
            (executor, "on_stop", lambda _: lambda: None),
            (fanout, "FanOut", type("FanOut", (RecordedFanOut,), {"log": log})),
            (RecordedDeadline, "log", log),
            *(
                (module, name, value)
                for name, value in header["constants"].items()
                for module in (admission, step_writer, executor)
                if hasattr(module, name)
            ),
        ]
        with ExitStack() as stack:
            stack.enter_context(override_settings(**header["settings"]))
            for target, name, value in replaced:
                stack.enter_context(patch.object(target, name, value, create=True))
            yield

    def _renew_lease(self, lease: Lease, deadline_left_s: float) -> bool:
        self.log.compare(deadline_left_s, self._deadline.ends_at - self.log.now)
        return bool(self.log.ask("heartbeat", ends_at=self._deadline.ends_at))

    def _write(self, lease: Lease, flush: Flush) -> None:
        if flush:
            rows = flush_entry(flush)
            self.log.compared["rows"] += len(rows["items"]) + len(rows["calls"])
            self.log.ask("write", rows=rows)

    def _split_calls(self, rows: Sequence[WorkItem]) -> list[selectors.SplitCall]:
        return [
            selectors.SplitCall(
                row_id=UUID(call["item"]),
                split=call["split"],
                accepted=call["accepted"],
                page_range=call["page_range"] and tuple(call["page_range"]),
                reply="a reply" if call["reply"] else None,
            )
            for call in self.log.ask("split_calls", items=[str(row.id) for row in rows])
        ]

    def _pause_on(self, _: object) -> Any:
        pause = self.log.ask("pause_on")
        return pause and SimpleNamespace(reason=pause["reason"], pause_id=UUID(pause["pause_id"]))

    def _parking(
        self,
        code: ErrorCode,
        _: object,
        *,
        first_failure_at: datetime | None = None,
        details: CallDetails | None = None,
    ) -> Parking:
        answer = self.log.ask(
            "parking",
            code=code,
            first_failure_at=first_failure_at and first_failure_at.isoformat(),
            details=details and details_entry(details),
        )
        return Parking(
            reason=answer["reason"],
            until=answer["until"] and datetime.fromisoformat(answer["until"]),
            incident_id=answer["incident_id"] and UUID(answer["incident_id"]),
            pause_id=answer["pause_id"] and UUID(answer["pause_id"]),
        )


# The logs are older than some names: they say `failing_since` for `outage_since`, and `opens_in_s`
# for `starts_in_s`.
def _standing_entry(standing: Standing) -> Entry:
    # The limiter's window is no part of the recorded holds.
    entry = {name: value for name, value in asdict(standing).items() if name != "past"}
    return {"failing_since": entry.pop("outage_since"), **entry}


def _standing_of(entry: Entry) -> Standing:
    return Standing(outage_since=entry.pop("failing_since"), **entry)
