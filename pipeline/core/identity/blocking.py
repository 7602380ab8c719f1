"""Index keys of identities, so that an identity is compared only with likely candidates.

Two identities that agree always share a key: one is filed under it, the other is sought under it.
The keys are PHI and must not leave this package. The functions are pure.
"""

from __future__ import annotations

from pipeline.core.identity.parsing import Identity, ParsedName, fold
from pipeline.core.identity.similarity import orders

_BORN, _NUMBERED = 1, 2


def filed_under(identity: Identity) -> frozenset[str]:
    """Return the keys under which other identities find this identity."""
    name, _, _ = identity.reading
    return _facts(identity) | {f"{_stated(identity)}:{pair}" for pair in _pairs(name)}


def sought_under(identity: Identity) -> frozenset[str]:
    """Return the keys of all identities that can agree with this identity.

    Two identities without a common birth date or number agree only by name. Then one of them must
    lack the date, and one must lack the number.
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
    """Return the given name with the family name or one word of it, in each order."""
    found = set()
    for one in [name, *orders(name)] if name else []:
        if one.given:
            for family in ("".join(one.family), *one.family):
                found.add(f"{fold(one.given[0])} {fold(family)}")
    return found
