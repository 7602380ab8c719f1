"""Charts as plain figures: the position of each bar of a sparkline or a trend.

This module is pure. Charts are SVG with attributes only, because the page's content security policy
forbids inline styles. Python writes the bars, because a template needs a tenth of a millisecond for
each, and the overview has hundreds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from django.utils.safestring import SafeString


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar, in the units of its chart; y grows downwards."""

    x: float
    y: float
    width: float
    height: float
    title: str = ""
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Bars, and a text with the same content."""

    width: int
    height: int
    bars: Sequence[Bar]
    words: str
    """For users who cannot see the chart."""

    @property
    def rects(self) -> SafeString:
        """The bars as SVG."""
        return rects(self.bars)


def rects(bars: Iterable[Bar], kind: str = "") -> SafeString:
    """Return bars as SVG; `kind` is the CSS class of bars without a kind of their own."""
    return SafeString("".join(_rect(bar, f"b-{bar.kind}" if bar.kind else kind) for bar in bars))


def _rect(bar: Bar, kind: str) -> str:
    of_kind = f' class="{escape(kind)}"' if kind else ""
    place = f'x="{bar.x}" y="{bar.y}" width="{bar.width}" height="{bar.height}"'
    if not bar.title:
        return f"<rect{of_kind} {place}/>"
    return f"<rect{of_kind} {place}><title>{escape(bar.title)}</title></rect>"


def bars(
    numbers: Sequence[int],
    *,
    words: str,
    titles: Sequence[str] = (),
    height: int = 24,
    step: int = 4,
    kind: str = "",
) -> Chart:
    """Return a bar for each number except 0; the highest bar has the height of the chart."""
    top = max(numbers, default=0)
    drawn = [
        Bar(
            x=place * step,
            y=round(height - max(1.0, height * number / top), 1),
            width=step - 1,
            height=round(max(1.0, height * number / top), 1),
            title=titles[place] if titles else "",
            kind=kind,
        )
        for place, number in enumerate(numbers)
        if number
    ]
    return Chart(width=len(numbers) * step, height=height, bars=drawn, words=words)


def stacked(
    columns: Sequence[Sequence[tuple[str, int]]],
    *,
    words: str,
    titles: Sequence[str] = (),
    height: int = 40,
    step: int = 5,
) -> Chart:
    """Return stacked columns; each column lists its parts as (kind, number) from the bottom."""
    top = max((sum(number for _, number in column) for column in columns), default=0)
    drawn = []
    for place, column in enumerate(columns):
        floor = float(height)
        for kind, number in column:
            if not number:
                continue
            tall = max(1.0, height * number / top)
            floor -= tall
            drawn.append(
                Bar(
                    x=place * step, y=round(floor, 1), width=step - 1, height=round(tall, 1),
                    kind=kind, title=titles[place] if titles else "",
                )
            )  # fmt: skip
    return Chart(width=len(columns) * step, height=height, bars=drawn, words=words)
