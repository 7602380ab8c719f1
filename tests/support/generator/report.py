"""The figures of generated cases: verdicts per kind, and the name of every wrong case."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.support.generator.judge import Judgement, Verdict
from tests.support.generator.kinds import KINDS


@dataclass
class Report:
    """The counts of many judgements."""

    by_kind: dict[str, Counter[Verdict]] = field(default_factory=lambda: defaultdict(Counter))
    wrong: list[str] = field(default_factory=list)
    """Each wrong attribute: `kind:seed attribute`."""

    @classmethod
    def of(cls, judgements: Iterable[Judgement]) -> Report:
        """Count the verdicts."""
        report = cls()
        for judged in judgements:
            kind = judged.case.kind
            report.by_kind[kind] += judged.counts
            report.wrong += [
                f"{judged.name} {attribute}"
                for attribute, verdict in judged.verdicts
                if verdict is Verdict.WRONG
            ]
        report.by_kind = dict(sorted(report.by_kind.items(), key=lambda item: _place(item[0])))
        return report

    @property
    def total(self) -> Counter[Verdict]:
        """The verdicts of all kinds."""
        return sum(self.by_kind.values(), Counter())

    def table(self) -> list[str]:
        """Return one line per kind, and their sum."""
        lines = [f"{'kind':<25}" + "".join(f"{verdict:>21}" for verdict in Verdict)]
        for kind, counts in (*self.by_kind.items(), ("all", self.total)):
            cells = (_cell(counts[verdict], counts.total()) for verdict in Verdict)
            lines.append(f"{kind:<25}" + "".join(f"{cell:>21}" for cell in cells))
        return lines


def _place(kind: str) -> int:
    return list(KINDS).index(kind) if kind in KINDS else len(KINDS)


def _cell(number: int, total: int) -> str:
    return f"{number:,} ({number / max(1, total):.1%})"
