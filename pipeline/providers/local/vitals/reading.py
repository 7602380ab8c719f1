"""What a statement of a vital sign says: its readings, and whether its words are explained."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class VitalReading:
    """One value of a vital sign; offsets count in the document's text."""

    start: int
    end: int
    value: str
    unit: str | None
    earlier: bool = False
    day: str | None = None
    """The full date beside the value, as printed."""
    part: str | None = None
    """The date without a year beside the value, as printed."""
    dated: bool = False
    now: bool = False
    source: bool = False
    """The value behind `from`, which another value replaces."""
    dropped: bool = False


@dataclass(slots=True)
class Statement:
    """The readings of one vital sign."""

    end: int
    readings: list[VitalReading] = field(default_factory=list)
    understood: bool = True
    reach: int = 0
    """Where the explained words end."""
