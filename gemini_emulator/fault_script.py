"""The fault script that an operator writes: rules, and which call each of them meets.

May import `faults`. The first rule that meets a call is played. A probability is drawn from what is
asked, the attempt and the seed, so that a script plays the same whatever the order of arrival.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from gemini_emulator.faults import FAULTS, SLOW_S, Setting


def _ranges(value: object) -> object:
    """Read `7`, `"3-5"`, `"10-"` and lists of them as inclusive ranges."""
    if isinstance(value, list):
        return [pair for part in value for pair in _range(part)]
    return _range(value)


def _range(value: object) -> list[tuple[int, int]]:
    if isinstance(value, int):
        return [(value, value)]
    if isinstance(value, str):
        first, dash, last = value.partition("-")
        end = (int(last) if last else 2**62) if dash else int(first)
        return [(int(first), end)]
    if isinstance(value, (list, tuple)) and len(value) == 2:
        return [(int(value[0]), int(value[1]))]
    raise ValueError("write a number, '3-5', '10-' or a list of them")


Ranges = Annotated[list[tuple[int, int]], BeforeValidator(_ranges)]


class Rule(BaseModel):
    """One `[[fault]]` of a script; every selector that is given must fit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fault: str
    number: Ranges | None = None
    """The call's number since the start, from 1."""
    item: Ranges | None = None
    """The item's ordinal, from 1, by its first call."""
    attempt: Ranges | None = None
    """Which call of its item it is, from 1."""
    page: Ranges | None = None
    """The first own page of the call."""
    pages: Ranges | None = None
    """How many pages of its own the call has."""
    kind: Literal["discovery", "entities", "embedding", "other"] | None = None
    window: tuple[float, float] | None = None
    """Seconds since the first call."""
    probability: float = Field(default=1.0, ge=0.0, le=1.0)
    times: int | None = Field(default=None, ge=1)
    """How often it is played at most."""
    retry_after_s: float | None = Field(default=None, ge=0.0)
    delay_s: float | None = Field(default=None, ge=0.0)
    """Wait this long before the answer, beside the latency; between the bytes for `trickle`."""
    reason: str = ""
    """The finish or block reason of `finish` and `blocked`; `any` draws one."""

    @field_validator("fault")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in FAULTS:
            raise ValueError(f"no such fault: {name}; known are {', '.join(FAULTS)}")
        return name

    @property
    def setting(self) -> Setting:
        """What the rule says beside the name."""
        return Setting(retry_after_s=self.retry_after_s, delay_s=self.delay_s, reason=self.reason)

    def scaled(self, factor: float) -> Rule:
        """Return the same with all its seconds times `factor`."""
        delay_s = SLOW_S if self.fault == "slow" and self.delay_s is None else self.delay_s
        return self.model_copy(
            update={
                "window": self.window and (self.window[0] * factor, self.window[1] * factor),
                "delay_s": None if delay_s is None else delay_s * factor,
                "retry_after_s": self.retry_after_s and self.retry_after_s * factor,
            }
        )


@dataclass(frozen=True, kw_only=True)
class Call:
    """What a rule can see of a call."""

    number: int
    item: int
    attempt: int
    page: int
    kind: str
    elapsed_s: float
    seed: str
    """Stands for what is asked and the attempt."""
    pages: int = 1


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    note: str = ""
    fault: list[Rule] = Field(default_factory=list)


@dataclass
class Script:
    """The rules, and how often each has been played."""

    rules: Sequence[Rule] = ()
    _played: dict[int, int] = field(default_factory=dict)

    def choose(self, call: Call) -> Rule | None:
        """Return the rule that `call` meets, and count it."""
        for at, rule in enumerate(self.rules):
            if self._meets(at, rule, call):
                self._played[at] = self._played.get(at, 0) + 1
                return rule
        return None

    def _meets(self, at: int, rule: Rule, call: Call) -> bool:
        if rule.times is not None and self._played.get(at, 0) >= rule.times:
            return False
        if rule.kind is not None and rule.kind != call.kind:
            return False
        if rule.window and not rule.window[0] <= call.elapsed_s < rule.window[1]:
            return False
        seen = (
            (rule.number, call.number),
            (rule.item, call.item),
            (rule.attempt, call.attempt),
            (rule.page, call.page),
            (rule.pages, call.pages),
        )
        if not all(ranges is None or _within(ranges, value) for ranges, value in seen):
            return False
        return rule.probability >= 1.0 or (
            random.Random(f"{call.seed}:{at}").random() < rule.probability
        )


def _within(ranges: Sequence[tuple[int, int]], value: int) -> bool:
    return any(first <= value <= last for first, last in ranges)


def read_rules(document: dict[str, Any]) -> list[Rule]:
    """Check a script that has been read; raises ValueError with one line for each mistake."""
    try:
        return _File.model_validate(document).fault
    except ValidationError as exc:
        raise ValueError(mistakes(exc)) from None


def mistakes(exc: ValidationError) -> str:
    """Return every mistake of a file by its place, on one line."""
    return "; ".join(
        f"{'.'.join(map(str, e['loc']))}: {e['msg']}"
        for e in exc.errors(include_input=False, include_url=False)
    )


def load_script(path: Path) -> list[Rule]:
    """Read a script from a `.toml` or `.json` file; raises ValueError where it is wrong."""
    text = path.read_text(encoding="utf-8")
    document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    if not isinstance(document, dict):
        raise ValueError("a script is a table with a list `fault`")
    return read_rules(document)
