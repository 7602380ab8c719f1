"""Under which words identities are filed, so that each is held only against likely ones.

Imports this package's `reading` and `likeness`; pure. Two identities that agree always meet: one is
filed under a word under which the other is sought. The words are PHI and go no further.
"""

from __future__ import annotations

from pipeline.core.identity.parsing import Identity, ParsedName, fold
from pipeline.core.identity.similarity import orders

_BORN, _NUMBERED = 1, 2


def filed_under(identity: Identity) -> frozenset[str]:
    """Return the words under which others find this identity."""
    name, _, _ = identity.reading
    return _facts(identity) | {f"{_stated(identity)}:{pair}" for pair in _pairs(name)}


def sought_under(identity: Identity) -> frozenset[str]:
    """Return the words under which all stand that this identity can agree with.

    Those who share neither birth date nor number agree only by name, and only where one of the two
    lacks the date and one lacks the number.
    """
    name, _, _ = identity.reading
    fitting = [other for other in range(4) if not other & _stated(identity)]
    return _facts(identity) | {f"{other}:{pair}" for pair in _pairs(name) for other in fitting}


def _facts(identity: Identity) -> frozenset[str]:
    _, born, number = identity.reading
    dates, numbers = {f"dob:{born}"} if born else set(), {f"mrn:{number}"} if number else set()
    return frozenset(dates | numbers)


def _stated(identity: Identity) -> int:
    _, born, number = identity.reading
    return (_BORN if born else 0) | (_NUMBERED if number else 0)


def _pairs(name: ParsedName | None) -> set[str]:
    """Return a given name with the whole or a word of the family name, in each possible order."""
    found = set()
    for one in [name, *orders(name)] if name else []:
        if one.given:
            for family in ("".join(one.family), *one.family):
                found.add(f"{fold(one.given[0])} {fold(family)}")
    return found
