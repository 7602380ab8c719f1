"""The fault script that an operator writes: rules that decide which call gets which fault.

The first matching rule applies. A probability is drawn from the content, the attempt and the seed,
so a script has the same effect in every order of arrival.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from gemini_emulator.embeddings import VECTOR_FAULTS
from gemini_emulator.faults import FAULTS, SLOW_S, Setting


def _ranges(value: object) -> object:
    """Parse `7`, `"3-5"`, `"10-"` and lists of these as inclusive ranges."""
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
    raise ValueError("write a number, '3-5', '10-' or a list of these")


Ranges = Annotated[list[tuple[int, int]], BeforeValidator(_ranges)]


class FaultRule(BaseModel):
    """One `[[fault]]` of a script; all given selectors must match."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fault: str
    number: Ranges | None = None
    """The number of the call since the start, from 1."""
    item: Ranges | None = None
    """The ordinal of the item by its first call, from 1."""
    attempt: Ranges | None = None
    """The attempt number of the item, from 1."""
    page: Ranges | None = None
    """The first own page of the call."""
    pages: Ranges | None = None
    """The number of the call's own pages."""
    kind: (
        Literal["discovery", "entities", "enrichment", "narrative", "embedding", "other"] | None
    ) = None
    window: tuple[float, float] | None = None
    """Seconds since the first call."""
    probability: float = Field(default=1.0, ge=0.0, le=1.0)
    times: int | None = Field(default=None, ge=1)
    """The most applications of this rule."""
    retry_after_s: float | None = Field(default=None, ge=0.0)
    delay_s: float | None = Field(default=None, ge=0.0)
    """Wait this long before the reply, in addition to the latency; `trickle` waits between the
    bytes."""
    reason: str = ""
    """The finish or block reason of `finish` and `blocked`; `any` draws a reason."""

    @field_validator("fault")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in FAULTS and name not in VECTOR_FAULTS:
            known = ", ".join((*FAULTS, *VECTOR_FAULTS))
            raise ValueError(f"no such fault: {name}; known faults: {known}")
        return name

    @model_validator(mode="after")
    def _is_of_its_kind(self) -> Self:
        if self.fault in VECTOR_FAULTS and self.kind != "embedding":
            raise ValueError(f"{self.fault} needs the kind embedding")
        return self

    @property
    def setting(self) -> Setting:
        """The parameters of the rule's fault."""
        return Setting(retry_after_s=self.retry_after_s, delay_s=self.delay_s, reason=self.reason)

    def scaled(self, factor: float) -> FaultRule:
        """Return the same rule with all its seconds times `factor`."""
        delay_s = SLOW_S if self.fault == "slow" and self.delay_s is None else self.delay_s
        return self.model_copy(
            update={
                "window": self.window and (self.window[0] * factor, self.window[1] * factor),
                "delay_s": None if delay_s is None else delay_s * factor,
                "retry_after_s": self.retry_after_s and self.retry_after_s * factor,
            }
        )


@dataclass(frozen=True, kw_only=True)
class MatchableCall:
    """The part of a call that a rule can match."""

    number: int
    item: int
    attempt: int
    page: int
    kind: str
    elapsed_s: float
    seed: str
    """Identifies the content and the attempt."""
    pages: int = 1


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    note: str = ""
    fault: list[FaultRule] = Field(default_factory=list)


@dataclass
class Script:
    """The rules, and how often each rule has applied."""

    rules: Sequence[FaultRule] = ()
    _played: dict[int, int] = field(default_factory=dict)

    def choose(self, call: MatchableCall) -> FaultRule | None:
        """Return the rule that applies to `call`, and count it."""
        for at, rule in enumerate(self.rules):
            if self._meets(at, rule, call):
                self._played[at] = self._played.get(at, 0) + 1
                return rule
        return None

    def _meets(self, at: int, rule: FaultRule, call: MatchableCall) -> bool:
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


def read_rules(document: dict[str, Any]) -> list[FaultRule]:
    """Check a parsed script. Raises ValueError with all mistakes on one line."""
    try:
        return _File.model_validate(document).fault
    except ValidationError as exc:
        raise ValueError(mistakes(exc)) from None


def mistakes(exc: ValidationError) -> str:
    """Return all mistakes of a file on one line, each with its place."""
    return "; ".join(
        f"{'.'.join(map(str, e['loc']))}: {e['msg']}"
        for e in exc.errors(include_input=False, include_url=False)
    )


def load_script(path: Path) -> list[FaultRule]:
    """Read a script from a `.toml` or `.json` file. Raises ValueError if the script is wrong."""
    text = path.read_text(encoding="utf-8")
    document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    if not isinstance(document, dict):
        raise ValueError("a script is a table with a list `fault`")
    return read_rules(document)
