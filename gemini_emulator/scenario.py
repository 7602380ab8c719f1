"""Scenarios that an operator writes in TOML: quotas, latency, a timeline and fault rules.

A plain name refers to a file in `scenarios/`; a name with a suffix is a file. See
`docs/emulator.md`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gemini_emulator.fault_script import FaultRule, mistakes
from gemini_emulator.faults import FAULTS
from gemini_emulator.latency import read_latency
from gemini_emulator.service import Options

FOLDER = Path(__file__).parent / "scenarios"

STATES: dict[str, str] = {
    "down": "503",
    "unreachable": "reset",
    "hanging": "hang",
    "failing": "500",
    "throttled": "429",
    "out of quota": "429-day",
    "slow": "slow",
    "key refused": "400-key",
    "truncating": "truncated",
    "garbling": "bad-json",
}
"""Words of a timeline → fault. A timeline may also name a fault directly."""

_PHASE = re.compile(
    r"^from (?P<first>\S+)(?: to (?P<last>\S+))?: (?P<state>[\w -]+?)(?:, (?P<part>[\d.]+) ?%)?$"
)
_TIME = re.compile(r"^(?:(?P<minutes>[\d.]+)m)?(?:(?P<seconds>[\d.]+)s?)?$")
_UNBOUNDED_S = 1e12


class _Quota(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    rpm: int = Field(default=0, ge=0)
    tpm: int = Field(default=0, ge=0)
    rpd: int = Field(default=0, ge=0)
    spend_usd: float = Field(default=0.0, ge=0.0)
    window_s: float = Field(default=60.0, gt=0.0)


class Scenario(BaseModel):
    """One rehearsal."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    expect: str
    """The behaviour that the operator should observe; printed at the start."""
    seed: int = 1
    clock: str = ""
    """Pacific time at the start."""
    latency: str = "0"
    quota: _Quota = _Quota()
    timeline: tuple[str, ...] = ()
    fault: tuple[FaultRule, ...] = ()

    @field_validator("latency")
    @classmethod
    def _is_latency(cls, text: str) -> str:
        read_latency(text)
        return text

    @field_validator("timeline")
    @classmethod
    def _is_timeline(cls, phases: tuple[str, ...]) -> tuple[str, ...]:
        for phase in phases:
            read_phase(phase)
        return phases

    @property
    def rules(self) -> list[FaultRule]:
        """All rules; the phases of the timeline come first."""
        return [*map(read_phase, self.timeline), *self.fault]

    def options(self, *, scale: float = 1.0, **changed: Any) -> Options:
        """Return the options, all seconds times `scale`; `changed` replaces fields."""
        options = Options(
            rpm=self.quota.rpm,
            tpm=self.quota.tpm,
            rpd=self.quota.rpd,
            spend_usd=self.quota.spend_usd,
            window_s=self.quota.window_s * scale,
            clock=self.clock,
            latency=read_latency(self.latency).scaled(scale),
            rules=[rule.scaled(scale) for rule in self.rules],
            seed=self.seed,
        )
        return replace(options, **changed)


def read_phase(text: str) -> FaultRule:
    """Parse a phase such as `from 30s to 90s: down` or `from 2m: 429, 50%`.

    Raises ValueError for any other form.
    """
    found = _PHASE.match(text.strip())
    if found is None:
        raise ValueError(f"not a phase: {text!r}; write 'from 30s to 90s: down' or ': 429, 50%'")
    fault = STATES.get(found["state"], found["state"])
    if fault not in FAULTS:
        known = ", ".join([*STATES, *FAULTS])
        raise ValueError(f"no such state: {found['state']}; known states: {known}")
    last = _UNBOUNDED_S if found["last"] is None else _seconds(found["last"])
    part = 1.0 if found["part"] is None else float(found["part"]) / 100
    return FaultRule(fault=fault, window=(_seconds(found["first"]), last), probability=part)


def read_scenario(document: Mapping[str, Any]) -> Scenario:
    """Check a parsed scenario. Raises ValueError with all mistakes on one line."""
    try:
        return Scenario.model_validate(document)
    except ValidationError as exc:
        raise ValueError(mistakes(exc)) from None


def load_scenario(name: str | Path) -> Scenario:
    """Read a ready scenario by its name, or a scenario file.

    Raises ValueError for an unknown name or a wrong file, and OSError.
    """
    path = Path(name)
    if not path.suffix:
        if str(name) not in ready():
            raise ValueError(f"no such scenario: {name}; ready scenarios: {', '.join(ready())}")
        path = FOLDER / f"{name}.toml"
    return read_scenario(tomllib.loads(path.read_text(encoding="utf-8")))


def ready() -> list[str]:
    """Return the names of the scenarios that come with the emulator."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def _seconds(text: str) -> float:
    found = _TIME.match(text)
    if found is None or not text:
        raise ValueError(f"not a time: {text!r}; write 90s, 2m or 1m30s")
    return 60 * float(found["minutes"] or 0) + float(found["seconds"] or 0)
