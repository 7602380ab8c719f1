"""A number that only the quote of an entity states: how long a medication is taken."""

from __future__ import annotations

import re

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.narrative.amounts import StatedAmount, unit_of

_DURATION = re.compile(
    r"(?:\bfor|\bx|×)\s*(?P<number>\d{1,3})[ -]?(?P<unit>(?:day|week|month)s?)\b", re.I
)
_SEPARATORS = re.compile(r"[,;.](?!\d)|\b(?:and|or|then|with|but|not|no|stop\w*|if)\b", re.I)


def duration(facts: EntityFacts) -> StatedAmount | None:
    """Return how long a medication is taken: `BID for 10 days`.

    The quote must state one duration only, without a separator between name and duration: behind
    a separator the words may be about another drug.
    """
    found = list(_DURATION.finditer(facts.quote))
    begin = facts.quote.casefold().find(facts.name.casefold())
    if len(found) != 1 or begin < 0 or begin > found[0].start():
        return None
    if _SEPARATORS.search(facts.quote[begin + len(facts.name) : found[0].start()]):
        return None
    number, unit = found[0]["number"], found[0]["unit"].casefold()
    return StatedAmount(printed=f"{number} {unit}", first=number, unit=unit_of(unit))
