"""Other word orders of a name with the same meaning: `left knee pain`, `pain in the left knee`."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.narrative.text import words_of

_DEGREES = {"mild", "moderate", "severe", "acute", "chronic", "mildly", "severely"}
_SIDES = {"left", "right", "bilateral"}
_CLOSED = {
    "no", "not", "without", "with", "of", "in", "to", "and", "or", "due", "from", "by", "for",
    "secondary", "on", "at", "the", "type", "stage", "grade", "non", "history", "possible",
}  # fmt: skip
"""Words after which another order could mean something else."""
_CATEGORIES = {"condition", "symptom", "procedure"}
_LINKS = (("of",), ("of", "the"), ("in", "the"), ("in",))


def other_orders(facts: EntityFacts) -> Iterator[tuple[str, ...]]:
    """Yield the names that put the site behind the head, for a name that contains its site."""
    words = words_of(facts.name)
    site = str(facts.attributes.get("body_site") or "")
    if facts.category in _CATEGORIES:
        yield from _site_first(words, words_of(site))
    if facts.category not in _CATEGORIES or _CLOSED & set(words) or not 1 < len(words) < 8:
        return
    places = {*words_of(site), *_SIDES}
    degrees = [word for word in words if word in _DEGREES]
    rest = [word for word in words if word not in _DEGREES]
    yield from _behind(degrees, rest, places)
    yield from _side_apart(facts, degrees, rest)
    if len(rest) > 1 and rest[-1] in places - _SIDES:
        # "MRI brain": the site follows the head already.
        head, last = rest[:-1], rest[-1]
        yield (*degrees, last, *head)
        yield from ((*degrees, *head, *link, last) for link in _LINKS)


def _site_first(words: tuple[str, ...], site: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield `brain MRI` for `MRI of the brain`, for a name that ends with its site."""
    for link in (("of", "the"), ("of",)):
        tail = (*link, *site)
        head = words[: -len(tail)]
        if site and head and words[-len(tail) :] == tail and not _CLOSED & set(head):
            yield (*site, *head)
            yield (*head, *site)


def _behind(degrees: list[str], rest: list[str], places: set[str]) -> Iterator[tuple[str, ...]]:
    """Yield `head of the site` for each head of one or two words behind a site."""
    for length in (1, 2):
        middle, head = rest[:-length], rest[-length:]
        if not middle or not set(middle) & places or set(head) & places:
            continue
        for link in _LINKS:
            yield (*degrees, *head, *link, *middle)
        if middle[0] == "bilateral":
            for noun in (middle[1:], [*middle[1:-1], f"{middle[-1]}s"]):
                yield (*degrees, *head, "of", "both", *noun)
                yield (*degrees, *head, "in", "both", *noun)
                yield (*degrees, "bilateral", *head, "of", "the", *noun)


def _side_apart(
    facts: EntityFacts, degrees: list[str], rest: list[str]
) -> Iterator[tuple[str, ...]]:
    """Yield `total knee arthroplasty of the left knee` for a left total knee arthroplasty."""
    site = words_of(str(facts.attributes.get("body_site") or ""))
    side = [word for word in rest if word in ("left", "right")]
    others = [word for word in rest if word not in _SIDES]
    if len(side) == 1 and site and set(site) <= set(others):
        yield (*degrees, *others, "of", "the", *side, *site)
        yield (*degrees, *others, "in", "the", *side, *site)
        yield (*degrees, *others, "on", "the", *side)
