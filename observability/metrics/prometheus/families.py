"""Every metric of `/metrics`: name, type, help and labels. docs/metrics.md lists the same.

The first three names are those of requirement 46, so they have neither prefix nor unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric


class MetricKind(StrEnum):
    """The type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, kw_only=True)
class MetricDeclaration:
    """The declaration of one metric."""

    name: str
    """Without the suffix `_total` of a counter, which the text format adds."""
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    counted: str = ""
    """The name in `metric_counts`; empty for a value that is read elsewhere."""
    bounds: tuple[float, ...] = ()
    """Upper bounds of the buckets of a histogram."""
    zeros: tuple[tuple[str, ...], ...] = ()
    """Label values that are sent from the start, so that the first increase is seen."""

    @property
    def samples(self) -> tuple[str, ...]:
        """The names of the samples, as a query names them."""
        match self.kind:
            case MetricKind.COUNTER:
                return (f"{self.name}_total",)
            case MetricKind.GAUGE:
                return (self.name,)
            case MetricKind.HISTOGRAM:
                return (f"{self.name}_bucket", f"{self.name}_sum", f"{self.name}_count")


Values = Mapping[tuple[str, ...], float]
"""A value for each combination of label values."""


def plain(family: MetricDeclaration, values: Values) -> Metric:
    """Return a counter or gauge with its values; `zeros` fill the gaps."""
    made: Metric
    if family.kind is MetricKind.COUNTER:
        made = CounterMetricFamily(family.name, family.help, labels=family.labels)
    else:
        made = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    filled = {**dict.fromkeys(family.zeros, 0.0), **values}
    for labels in sorted(filled):
        made.add_metric(labels, filled[labels])
    return made


def histogram(
    family: MetricDeclaration,
    buckets: Iterable[tuple[tuple[str, ...], str, float]],
    sums: Values,
) -> Metric:
    """Return a histogram from the counts of single buckets: (labels, `le`, count)."""
    made = HistogramMetricFamily(family.name, family.help, labels=family.labels)
    bounds = [*(str(float(bound)) for bound in family.bounds), "+Inf"]
    found: dict[tuple[str, ...], dict[str, float]] = {labels: {} for labels in family.zeros}
    for labels, bound, count in buckets:
        found.setdefault(labels, {})[bound] = count
    for labels in sorted(found):
        counts = [found[labels].get(bound, 0.0) for bound in bounds]
        made.add_metric(labels, _cumulated(bounds, counts), sums.get(labels, 0.0))
    return made


def _cumulated(bounds: Sequence[str], counts: Sequence[float]) -> list[tuple[str, float]]:
    total = 0.0
    reached = []
    for bound, count in zip(bounds, counts, strict=True):
        total += count
        reached.append((bound, total))
    return reached
