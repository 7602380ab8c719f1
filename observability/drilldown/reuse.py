"""What a record reused from earlier records, and what the reuse saved. This module is pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from observability.drilldown.summary import dollars, thousands
from pipeline.core.labels import PASS_TITLES, counted
from pipeline.core.states import Step
from pipeline.models import Reuse


@dataclass(frozen=True, kw_only=True)
class ReusedFrom:
    """The passes that a record reused from one other record."""

    source: UUID | None
    """None if that record was deleted later."""
    passes: tuple[str, ...]
    calls: int
    tokens: int
    cost_usd: Decimal

    @property
    def saved(self) -> str:
        """The passes and the saving, such as `(Pass 0.5, Pass 1): saved 12 calls, 61.2k tokens`."""
        money = f", {dollars(float(self.cost_usd))}" if self.cost_usd else ""
        return (
            f"({', '.join(self.passes)}): saved {counted(self.calls, 'call')},"
            f" {thousands(self.tokens)} tokens{money}."
        )

    @property
    def line(self) -> str:
        """The whole sentence."""
        source = f"record {self.source}" if self.source else "a record that was deleted"
        return f"Reused from {source} {self.saved}"

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "record": str(self.source) if self.source else None,
            "passes": list(self.passes),
            "calls_saved": self.calls,
            "tokens_saved": self.tokens,
            "cost_saved_usd": str(self.cost_usd),
        }


def reused_from(rows: Sequence[Reuse]) -> list[ReusedFrom]:
    """Return the sources of a record in the order in which the record used them first."""
    order = list(Step)
    rows = sorted(rows, key=lambda row: order.index(Step(row.step)))
    found = []
    for source in dict.fromkeys(row.source_id for row in rows):
        own = [row for row in rows if row.source_id == source]
        found.append(
            ReusedFrom(
                source=source,
                passes=tuple(PASS_TITLES[Step(row.step)] for row in own),
                calls=sum(row.calls_saved for row in own),
                tokens=sum(row.tokens_saved for row in own),
                cost_usd=sum((row.cost_saved_usd for row in own), Decimal(0)),
            )
        )
    return found
