"""The calls of a record on a time line: a lane for each encounter, a bar for each call.

This module is pure. Long idle stretches (parked, waiting) are drawn short and marked, so that the
calls stay visible. All figures are in the units of the drawing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from uuid import UUID

from observability.drilldown.queries import RecordRows
from observability.drilldown.text import WORTH_SAYING_MS
from pipeline.core.errors import ErrorCode
from pipeline.core.labels import PASS_TITLES, counted, duration
from pipeline.core.states import Step
from pipeline.models import OUTCOME_OK, Incident, ProviderCall
from pipeline.models.work_tables import WORK_TABLES

WIDTH = 1000
ROW = 7
"""Height of a bar, with the gap below it."""
LANE_GAP = 5
LANE = 14
"""Least height of a lane, so that its name is readable."""
IDLE_S = 20.0
"""Seconds without any call after which the stretch is drawn short."""
IDLE_WIDTH = 24
IDLE_SHARE = 0.4
"""Largest share of the width for all idle stretches together."""
LEAST = 2.0
"""Least width of a bar, so that it is visible and can be clicked."""
LISTED = 300
"""Most calls that are also listed as text; a record of 1,000 pages can have 1,500."""
TICKS = 5
LOCAL = "local"
FREE_SLOT = "a free slot"
"""The first thing that a call waits for: the calls of a step in flight are limited."""


@dataclass(frozen=True, kw_only=True)
class CallBar:
    """A bar, which shows one call."""

    x: float
    y: int
    width: float
    kind: str
    """ok, failed or limited."""
    title: str
    node_id: str
    at: str
    """Time since the first call."""
    wait_x: float = 0.0
    wait_width: float = 0.0
    """The wait for the start, drawn before the bar; 0 if too short to show."""


@dataclass(frozen=True, kw_only=True)
class Lane:
    """The calls of one encounter, or of a pass without encounters."""

    title: str
    node_id: str
    y: int
    height: int
    calls: Sequence[CallBar]
    failed: int
    took: str

    @property
    def base(self) -> int:
        """The baseline of the lane's name."""
        return self.y + 8


@dataclass(frozen=True, kw_only=True)
class Band:
    """A time span behind the lanes: idle, a cooldown, or an incident."""

    x: float
    width: float
    kind: str
    title: str


@dataclass(frozen=True, kw_only=True)
class ScaleMark:
    """A mark of the time scale."""

    x: float
    word: str


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The complete drawing."""

    lanes: Sequence[Lane]
    bands: Sequence[Band]
    ticks: Sequence[ScaleMark]
    height: int
    words: str
    waited: str
    """What a call waited for before its start, as the legend names it."""
    listed: Sequence[tuple[str, CallBar]]
    """The calls with the names of their lanes, failed calls first."""
    unlisted: int
    width: int = WIDTH


class _Scale:
    """Maps times to drawing units, with short idle stretches."""

    def __init__(self, calls: Sequence[ProviderCall]) -> None:
        spans = sorted((_ready(call), _end(call)) for call in calls)
        busy: list[list[float]] = []
        for start, end in spans:
            if busy and start - busy[-1][1] <= IDLE_S:
                busy[-1][1] = max(busy[-1][1], end)
            else:
                busy.append([start, end])
        total = sum(end - start for start, end in busy) or 1.0
        gaps = len(busy) - 1
        self.idle_width = min(IDLE_WIDTH, WIDTH * IDLE_SHARE / gaps) if gaps else 0.0
        self.per_second = (WIDTH - self.idle_width * gaps) / total
        self._pieces: list[tuple[float, float, float]] = []
        x = 0.0
        for start, end in busy:
            self._pieces.append((start, end, x))
            x += (end - start) * self.per_second + self.idle_width
        self.start, self.end = busy[0][0], busy[-1][1]

    def x(self, at: float) -> float:
        before = 0.0
        for start, end, x in self._pieces:
            if at < start:
                return round(max(before, x - self.idle_width / 2), 1)
            if at <= end:
                return round(x + (at - start) * self.per_second, 1)
            before = x + (end - start) * self.per_second
        return round(min(before, WIDTH), 1)

    def idle(self) -> Iterable[Band]:
        for (_, end, _), (start, _, x) in pairwise(self._pieces):
            yield Band(
                x=round(x - self.idle_width, 1),
                width=round(self.idle_width, 1),
                kind="idle",
                title=f"no call for {duration(start - end)}",
            )

    def ticks(self) -> Iterable[ScaleMark]:
        for place in range(TICKS + 1):
            at = self.start + (self.end - self.start) * place / TICKS
            yield ScaleMark(x=self.x(at), word=duration(at - self.start) if place else "0 s")


def timeline(rows: RecordRows, incidents: Sequence[Incident] = ()) -> Timeline | None:
    """Draw the calls of a record; None if it has no calls."""
    if not rows.calls:
        return None
    scale = _Scale(rows.calls)
    names = _names(rows)
    by_lane: defaultdict[str, list[ProviderCall]] = defaultdict(list)
    for call in rows.calls:
        by_lane[names.lane(call)].append(call)
    lanes: list[Lane] = []
    y = 0
    for key in sorted(by_lane, key=names.order):
        lane = _lane(key, by_lane[key], names, scale, y)
        lanes.append(lane)
        y += lane.height + LANE_GAP
    bands = [*scale.idle(), *_cooldowns(rows.calls, scale), *_incidents(incidents, scale)]
    failed = sum(lane.failed for lane in lanes)
    every = [(lane.title, call) for lane in lanes for call in lane.calls]
    every.sort(key=lambda each: each[1].kind == "ok")
    took = duration(scale.end - scale.start)
    words = (
        f"{counted(len(rows.calls), 'call')} over {took} in {counted(len(lanes), 'lane')};"
        f" {failed or 'none'} of them failed."
    )
    return Timeline(
        lanes=lanes,
        bands=bands,
        ticks=list(scale.ticks()),
        height=y,
        words=words,
        waited=_legend(rows.calls),
        listed=every[:LISTED],
        unlisted=len(every[LISTED:]),
    )


class _names:  # noqa: N801 - used like a function
    """The names of a call's lane and unit."""

    def __init__(self, rows: RecordRows) -> None:
        self._encounter_of: dict[UUID, str] = {}
        self._units: dict[UUID, str] = {}
        for step, items in rows.items.items():
            table = WORK_TABLES[step]
            for item in items:
                self._units[item.pk] = f"{table.noun} {table.number_of(item) + 1}"
                if item.encounter_id is not None:
                    self._encounter_of[item.pk] = str(item.encounter_id)
        self._places = {
            str(e.id): (place, f"encounter {e.encounter_index}")
            for place, e in enumerate(rows.encounters)
        }

    def lane(self, call: ProviderCall) -> str:
        item = call.work_item_id
        return (item and self._encounter_of.get(item)) or str(call.step)

    def order(self, key: str) -> tuple[int, int]:
        if key in self._places:
            return list(Step).index(Step.PASS1), self._places[key][0]
        return list(Step).index(Step(key)), -1

    def title(self, key: str) -> str:
        return self._places[key][1] if key in self._places else PASS_TITLES[Step(key)]

    def unit(self, call: ProviderCall) -> str:
        found = self._units.get(call.work_item_id) if call.work_item_id else None
        split = f" split {call.split}" if call.split else ""
        return f"{found or PASS_TITLES[Step(call.step)]}{split}"


def _lane(key: str, calls: Sequence[ProviderCall], names: _names, scale: _Scale, top: int) -> Lane:
    ends: list[float] = []
    drawn = []
    for call in sorted(calls, key=_ready):
        start, end = _ready(call), _end(call)
        row = next((n for n, free in enumerate(ends) if free <= start), len(ends))
        if row == len(ends):
            ends.append(end)
        ends[row] = end
        drawn.append(_bar(call, names.unit(call), scale, top + row * ROW))
    first, last = min(map(_ready, calls)), max(map(_end, calls))
    return Lane(
        title=names.title(key),
        node_id=key,
        y=top,
        height=max(LANE, len(ends) * ROW),
        calls=drawn,
        failed=sum(bar.kind != "ok" for bar in drawn),
        took=duration(last - first),
    )


def _bar(call: ProviderCall, unit: str, scale: _Scale, y: int) -> CallBar:
    sent = call.started_at.timestamp()
    x, end = scale.x(sent), scale.x(_end(call))
    waited = call.queue_wait_ms if call.queue_wait_ms >= WORTH_SAYING_MS else 0
    wait_x = scale.x(_ready(call)) if waited else x
    kind = {OUTCOME_OK: "ok", ErrorCode.RATE_LIMIT.value: "limited"}.get(call.outcome, "failed")
    width = round(max(LEAST, end - x), 1)
    said = [f"{unit}, call {call.attempt}: {call.outcome}"]
    said += [f"waited {duration(waited / 1000)} for {_awaited(call)}"] if waited else []
    return CallBar(
        x=round(min(x, WIDTH - width), 1),
        y=y,
        width=width,
        kind=kind,
        title=", ".join([*said, f"took {duration(call.duration_ms / 1000)}"]),
        node_id=str(call.id),
        at=duration(sent - scale.start),
        wait_x=wait_x,
        wait_width=round(x - wait_x, 1),
    )


def _awaited(call: ProviderCall) -> str:
    """Return for what a call waited before its start: the local engine has no rate limiter."""
    return FREE_SLOT if call.provider == LOCAL else f"{FREE_SLOT} or the rate limiter"


def _legend(calls: Sequence[ProviderCall]) -> str:
    """Return the wait that the bars of these calls show, as the legend names it."""
    return f"waited for {max(map(_awaited, calls), key=len)}"


def _ready(call: ProviderCall) -> float:
    waited_ms: int = call.queue_wait_ms
    return call.started_at.timestamp() - waited_ms / 1000


def _end(call: ProviderCall) -> float:
    took_ms: int = call.duration_ms
    return call.started_at.timestamp() + took_ms / 1000


def _cooldowns(calls: Sequence[ProviderCall], scale: _Scale) -> Iterable[Band]:
    until = 0.0
    for call in sorted(calls, key=_end):
        if call.outcome != ErrorCode.RATE_LIMIT or call.retry_after_ms is None:
            continue
        start, end = _end(call), _end(call) + call.retry_after_ms / 1000
        if start < until:
            continue
        until = end
        words = f"cooldown of {duration(call.retry_after_ms / 1000)}"
        yield _band("cooldown", scale.x(start), scale.x(end), words)


def _incidents(incidents: Sequence[Incident], scale: _Scale) -> Iterable[Band]:
    for incident in incidents:
        began: datetime = incident.first_failure_at
        ended: float = incident.closed_at.timestamp() if incident.closed_at else scale.end
        words = f"incident: {incident.kind} of {incident.provider} {incident.model}"
        yield _band("incident", scale.x(began.timestamp()), scale.x(ended), words)


def _band(kind: str, x: float, end: float, words: str) -> Band:
    width = round(max(LEAST, end - x), 1)
    return Band(x=round(min(x, WIDTH - width), 1), width=width, kind=kind, title=words)
