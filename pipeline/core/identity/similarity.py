"""The similarity of two names, birth dates or record numbers.

A difference that a scanner explains is a SLIP. The functions are pure.
"""

from __future__ import annotations

from datetime import date
from difflib import SequenceMatcher
from enum import Enum

from pipeline.core.identity.parsing import ParsedName, fold

_LOOK_ALIKE = str.maketrans({"c": "e", "f": "t", "h": "b", "v": "u", "q": "g", "r": "n"})


class NameMatch(Enum):
    """The similarity of two names."""

    SAME = 1
    SLIP = 2
    """Equal except for typical scanner errors inside a word."""
    INITIAL = 3
    """Same family name; one side prints only an initial of the given name."""
    FAMILY_CHANGED = 4
    CLOSE = 5
    """One letter apart without a scanner's explanation: twins, or a typing error."""
    DIFFERENT = 6
    UNKNOWN = 7


class PartMatch(Enum):
    """The similarity of two words, dates or numbers."""

    SAME = 1
    SLIP = 2
    CLOSE = 3
    DIFFERENT = 4
    UNKNOWN = 5


def names(a: ParsedName | None, b: ParsedName | None) -> NameMatch:
    """Compare two names; symmetric."""
    if a is None or b is None:
        return NameMatch.UNKNOWN
    if a.suffix and b.suffix and a.suffix != b.suffix:
        return NameMatch.DIFFERENT
    as_printed = _reading(a, b)
    if as_printed.value > NameMatch.SLIP.value and _same_words(a, b):
        as_printed = NameMatch.SLIP
    if a.ordered and b.ordered:
        return as_printed
    best = min((_reading(x, y) for x in orders(a) for y in orders(b)), key=lambda n: n.value)
    if not a.ordered and not b.ordered and best.value < as_printed.value:
        best = max(best, NameMatch.INITIAL, key=lambda n: n.value)
    return min(best, as_printed, key=lambda n: n.value)


def _same_words(a: ParsedName, b: ParsedName) -> bool:
    """Return whether both names have the same three or more words, in any order."""
    one, other = (sorted(fold(w) for w in (*n.given, *n.family)) for n in (a, b))
    return len(one) > 2 and one == other


def orders(name: ParsedName) -> list[ParsedName]:
    """Return the ways in which a name without a comma can be split."""
    if name.ordered:
        return [name]
    tokens = [*name.given, *name.family]
    return [
        ParsedName(tuple(tokens[:at]), tuple(tokens[at:]), name.suffix, ordered=True)
        for at in range(1, len(tokens))
    ] + [
        ParsedName(tuple(tokens[at:]), tuple(tokens[:at]), name.suffix, ordered=True)
        for at in range(1, len(tokens))
    ] or [name]


def _reading(a: ParsedName, b: ParsedName) -> NameMatch:
    family = _words("".join(a.family), "".join(b.family))
    if family is PartMatch.DIFFERENT and _married(a.family, b.family):
        family = PartMatch.SAME
    if not a.given or not b.given:
        return (
            NameMatch.INITIAL if family in (PartMatch.SAME, PartMatch.SLIP) else NameMatch.DIFFERENT
        )
    given = _words(a.given[0], b.given[0])
    if family is PartMatch.CLOSE and given is PartMatch.SAME and len(a.given[0]) > 3:
        family = _family_slip("".join(a.family), "".join(b.family))
    if len(a.given[0]) == 1 or len(b.given[0]) == 1:
        initial = fold(a.given[0][0]) == fold(b.given[0][0])
        near = family in (PartMatch.SAME, PartMatch.SLIP)
        return NameMatch.INITIAL if initial and near else NameMatch.DIFFERENT
    if PartMatch.DIFFERENT in (family, given):
        return (
            NameMatch.FAMILY_CHANGED
            if given in (PartMatch.SAME, PartMatch.SLIP)
            else NameMatch.DIFFERENT
        )
    if PartMatch.CLOSE in (family, given) or _middles_conflict(a.given[1:], b.given[1:]):
        return NameMatch.CLOSE
    return NameMatch.SLIP if PartMatch.SLIP in (family, given) else NameMatch.SAME


def _family_slip(a: str, b: str) -> PartMatch:
    """Compare family names beside equal given names: the last letter may be misread as well."""
    near = len(a) == len(b) > 5 and a[:-1] == b[:-1]
    return PartMatch.SLIP if near else PartMatch.CLOSE


def _married(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Return whether one family name is a part of the other double name."""
    shorter, longer = sorted((set(a), set(b)), key=len)
    return bool(shorter) and len(longer) > len(shorter) and shorter < longer


def _middles_conflict(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    if not a or not b:
        return False
    return fold(a[0][0]) != fold(b[0][0])


def _words(a: str, b: str) -> PartMatch:
    if fold(a) == fold(b):
        return PartMatch.SAME
    if _slip(a, b):
        return PartMatch.SLIP
    if min(len(a), len(b)) >= 4 and SequenceMatcher(None, a, b, autojunk=False).ratio() >= 0.8:
        return PartMatch.CLOSE
    return PartMatch.DIFFERENT


def _slip(a: str, b: str) -> bool:
    """Return whether two words differ in one inner letter, or only in look-alikes.

    The first and the last letter must match: they tell Jayden from Kayden and Daniel from Daniela.
    """
    if fold(a).translate(_LOOK_ALIKE) == fold(b).translate(_LOOK_ALIKE):
        return a[:1] == b[:1]
    short, long = sorted((a, b), key=len)
    if len(long) < 5 or len(long) - len(short) > 1 or a[0] != b[0] or a[-1] != b[-1]:
        return False
    if len(short) < len(long):
        return any(long[:at] + long[at + 1 :] == short for at in range(1, len(long) - 1))
    return len(long) >= 7 and sum(x != y for x, y in zip(a, b, strict=True)) == 1


def birth_dates(a: date | None, b: date | None) -> PartMatch:
    """Compare two birth dates. One different digit, or swapped month and day, is CLOSE."""
    if a is None or b is None:
        return PartMatch.UNKNOWN
    if a == b:
        return PartMatch.SAME
    one, other = a.isoformat(), b.isoformat()
    if sum(x != y for x, y in zip(one, other, strict=True)) == 1:
        return PartMatch.CLOSE
    swapped = a.year == b.year and (a.month, a.day) == (b.day, b.month)
    return PartMatch.CLOSE if swapped else PartMatch.DIFFERENT


def identifiers(a: str | None, b: str | None) -> PartMatch:
    """Compare two record numbers. One lost or wrong character is CLOSE."""
    if a is None or b is None:
        return PartMatch.UNKNOWN
    if a == b:
        return PartMatch.SAME
    short, long = sorted((a, b), key=len)
    if len(long) >= 5 and len(long) - len(short) <= 1:
        lost = any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
        wrong = len(long) == len(short) and sum(map(str.__ne__, a, b)) == 1
        return PartMatch.CLOSE if lost or wrong else PartMatch.DIFFERENT
    return PartMatch.DIFFERENT
