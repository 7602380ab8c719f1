"""What a laboratory row states: its name, its current value, its earlier values."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.providers.local.labs.cells import NameCell
from pipeline.providers.local.text.latest_reading import Moment


@dataclass(frozen=True, slots=True)
class RowReading:
    """One value of a row; `end` is the end of the value's cell."""

    value: str
    start: int
    end: int
    day: str | None = None
    """The date of the value, as ISO 8601."""
    past: bool = True
    """An earlier value; False for a further value of the same day."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; `current` is None if the row gives no value."""

    name: NameCell
    start: int
    end: int
    understood: bool
    has_shape: bool
    """The row has the shape of a result, understood or not."""
    sure: bool = False
    """The row has a unit, a range or a flag."""
    current: RowReading | None = None
    earlier: tuple[RowReading, ...] = ()
    unit: str | None = None
    reference_range: str | None = None
    flag: str | None = None
    moment: Moment | None = None
    """The date and time of the row, if the table has a column for them."""
