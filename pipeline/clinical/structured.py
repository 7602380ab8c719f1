"""The step from printed text to structured attributes: its input, its output, its registry.

`Printed` holds only text that the entity's evidence supports. A structurer never adds a fact: a
value that it does not understand becomes a flag, and the printed text stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel

from pipeline.clinical.date_forms import DateOrder
from pipeline.clinical.facts import EntityFacts


@dataclass(frozen=True, kw_only=True)
class Printed:
    """What the evidence of one entity states, as printed, after the check against the page.

    The text fields are those of `providers.schemas.FoundAttributes`.
    """

    facts: EntityFacts
    decimal_sign: str | None = None
    """`.` or `,`: the decimal sign that the page of the entity proves, if one."""
    date_order: str | None = None
    """Value of `date_forms.DateOrder`: the order of day and month that the page's dates prove."""
    ingredient: str | None = None
    strength: str | None = None
    dose: str | None = None
    route: str | None = None
    frequency: str | None = None
    start: str | None = None
    stop: str | None = None
    status: str | None = None
    verification: str | None = None
    severity: str | None = None
    indication: str | None = None
    body_site: str | None = None
    laterality: str | None = None
    value: str | None = None
    unit: str | None = None
    reference_range: str | None = None
    abnormal_flag: str | None = None
    substance: str | None = None
    reaction: str | None = None
    product: str | None = None
    dose_number: str | None = None

    @property
    def order(self) -> DateOrder | None:
        """The order of day and month; None if the page proves none."""
        return DateOrder(self.date_order) if self.date_order else None


@dataclass(frozen=True, kw_only=True)
class Structured:
    """Structured attributes with the flags that arose."""

    attributes: BaseModel
    """An instance of the category's model in `clinical.attributes.ATTRIBUTES`."""
    flags: tuple[str, ...] = ()
    """Values of `enrichment_flags.flagged`."""


Structurer = Callable[[Printed], Structured]
