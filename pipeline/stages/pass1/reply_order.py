"""Choose the places of quotes by the order of a reply, and say where the order leaves a doubt.

This module is pure. A reply lists its entities in the order of the text. So a quote that occurs in
several places belongs between the places of its neighbours.
"""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from pipeline.core.types import Span

IN_ORDER = 0.9
"""The share of the entities with one place that must keep the order of the text. In a reply with
less order, neighbours decide nothing."""


@dataclass(frozen=True, kw_only=True)
class QuotedMention:
    """An entity of a reply, with the places where its quote occurs."""

    sameness: Hashable = field(repr=False)
    """Equal for two mentions that must not share a place."""
    quote: str = field(repr=False)
    places: tuple[Span, ...]
    """The places on the page that the reply names; if there is none, the places of the batch."""
    others: tuple[Span, ...] = ()
    """The places on other pages of the batch."""


def chosen_places(mentions: Sequence[QuotedMention]) -> list[Span | None]:
    """Choose a place for as many mentions as possible, so that the places keep the reply's order.

    The result is the longest increasing sequence of places; earlier places win. None means that the
    mention has no place in that order.
    """
    ranks: dict[Hashable, int] = {}
    keys: list[tuple[Span, int]] = []
    """The last place of the best sequence of each length."""
    ends: list[int] = []
    steps: list[tuple[int, Span, int]] = []
    """QuotedMention, place and previous step of every step that was ever best."""
    for number, mention in enumerate(mentions):
        rank = ranks.setdefault(mention.sameness, len(ranks))
        for place in sorted(mention.places, reverse=True):
            key = (place, rank)
            length = bisect.bisect_left(keys, key)
            if length < len(keys) and keys[length] == key:
                continue
            steps.append((number, place, ends[length - 1] if length else -1))
            if length == len(keys):
                keys.append(key)
                ends.append(len(steps) - 1)
            else:
                keys[length], ends[length] = key, len(steps) - 1
    found: list[Span | None] = [None] * len(mentions)
    step = ends[-1] if ends else -1
    while step >= 0:
        number, place, step = steps[step]
        found[number] = place
    return found


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """What the order of the reply leaves open about the place of a quote."""

    rivals: tuple[Span, ...] = ()
    """The places among which the neighbours do not decide."""
    is_out_of_order: bool = False
    """The quote has several places, and its place is not between those of its neighbours."""


def doubts(
    mentions: Sequence[QuotedMention],
    chosen: Sequence[Span | None],
    placed: Sequence[Span | None],
) -> list[Doubt]:
    """Return, for each mention, what its neighbours leave open about its place.

    `chosen` are the results of `chosen_places`, `placed` the final places.
    A place is certain if as many places as mentions of the quote lie between the nearest
    neighbours that have one place only.
    """
    anchors = [n for n, m in enumerate(mentions) if len(m.places) == 1 and not m.others]
    kept = [n for n in anchors if chosen[n] is not None]
    if len(kept) < IN_ORDER * len(anchors):
        kept = []
    counts: defaultdict[tuple[int, str], Counter[Hashable]] = defaultdict(Counter)
    for number, mention in enumerate(mentions):
        gap = bisect.bisect_left(kept, number)
        counts[gap, mention.quote][mention.sameness] += 1
    found: list[Doubt] = []
    for number, mention in enumerate(mentions):
        every, place = mention.places + mention.others, placed[number]
        if len(every) < 2 or place is None:
            found.append(Doubt())
            continue
        gap = bisect.bisect_left(kept, number)
        low = chosen[kept[gap - 1]] if gap else None
        high = chosen[kept[gap]] if gap < len(kept) else None
        between = tuple(
            each
            for each in every
            if (low is None or low <= each) and (high is None or each <= high)
        )
        if place not in between:
            found.append(Doubt(rivals=every, is_out_of_order=True))
        elif len(between) > max(counts[gap, mention.quote].values()):
            found.append(Doubt(rivals=between))
        else:
            found.append(Doubt())
    return found
