"""The check digits of LOINC (modulus 10) and SNOMED CT (Verhoeff's dihedral scheme)."""

from __future__ import annotations

import re

_LOINC = re.compile(r"[0-9]{1,7}-[0-9]")
_SCTID = re.compile(r"[1-9][0-9]{5,17}")
_PERMUTED = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def _multiply(first: int, second: int) -> int:
    """Multiply in the group of the ten symmetries of a pentagon."""
    if first < 5:
        return (first + second) % 5 if second < 5 else 5 + (first + second) % 5
    return 5 + (first - second) % 5 if second < 5 else (first - second) % 5


def _permutations() -> list[list[int]]:
    rows = [list(range(10))]
    for _ in range(7):
        rows.append([_PERMUTED[digit] for digit in rows[-1]])
    return rows


_TABLE = [[_multiply(first, second) for second in range(10)] for first in range(10)]
_ROUNDS = _permutations()


def is_loinc(code: str) -> bool:
    """Return whether a text is a LOINC code with the right check digit."""
    if not _LOINC.fullmatch(code):
        return False
    body, digit = code.split("-")
    total = 0
    for place, character in enumerate(reversed(body)):
        doubled = int(character) * 2 if place % 2 == 0 else int(character)
        total += doubled - 9 if doubled > 9 else doubled
    return (total + int(digit)) % 10 == 0


def is_sctid(code: str) -> bool:
    """Return whether a text is an identifier of SNOMED CT with the right check digit."""
    if not _SCTID.fullmatch(code):
        return False
    state = 0
    for place, character in enumerate(reversed(code)):
        state = _TABLE[state][_ROUNDS[place % 8][int(character)]]
    return state == 0
