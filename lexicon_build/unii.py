"""Select the drugs among the names of the UNII list, which also names foods, dyes and pesticides.

A substance is a drug if a register of drugs names the substance. Water, sugar and elements have no
international nonproprietary name (INN), so they are drugs only beside a dose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lexicon_build.wheels import Substances

_DRUG = frozenset({"INN", "USAN", "BAN", "EMA EPAR", "PURPLE BOOK CDER"})
"""Registers that name drug substances only."""
_SOLD = frozenset({"ORANGE BOOK", "VANDF"})
"""Registers of sold products; they also name carriers, foods and elements."""
_OTHER_USE = frozenset(
    {"FCC", "FHFI", "HPUS", "LANGUAL", "ISO", "II", "DSC", "EMA HERBAL SUBSTANCE"}
)
"""Registers of foods, flavours, homeopathy, pesticides, carriers, supplements and herbs."""
_NAME = re.compile(r"[a-z][a-z'-]{3,}(?: [a-z][a-z-]*| alfa| beta(?:-\d[ab])?){0,2}")
_CODE_LIKE = re.compile(r"[^aeiouy]{5}|-[a-z]{4}$|^[^aeiouy]+$")
"""A run of letters without a vowel, and the suffix of a copied antibody (`-abcd`)."""
_COMPONENT = re.compile(r"\s+component\s.*")
_PRODUCT_WORD = re.compile(
    r"\b(?:component|granules?|powder|oil|extract|liquid|solution|plus|acid|vitamin|sodium"
    r"|hydrochloride|cream|gel|surfactant|blue|red|green|yellow|black|white|brand|plant"
    r"|probiotic|insecticide|resin|wax|starch|catalyst|human|forte|depot|retard)\b"
)


def drugs(found: Substances) -> Iterator[tuple[str, str]]:
    """Yield kind (`of`, `bare` or `bn`) and name of each drug, in lower case."""
    official = {name.lower() for name, kind, _ in found.names if kind == "of"}
    for name, kind, unii in found.names:
        marks = found.marks.get(unii, frozenset())
        if not marks & (_DRUG | _SOLD):
            continue
        low = _COMPONENT.sub("", name.lower())
        if not _NAME.fullmatch(low) or _CODE_LIKE.search(low):
            continue
        certain = bool(marks & _DRUG) and ("INN" in marks or not marks & _OTHER_USE)
        if kind == "of":
            yield ("of" if certain else "bare"), low
        elif certain and not _is_described(low, official):
            yield "bn", low


def _is_described(brand: str, official: set[str]) -> bool:
    """Return whether a brand only repeats a substance (`CLOPIDOGREL TEVA`) or names a form."""
    first = brand.split()[0]
    return first in official or brand in official or _PRODUCT_WORD.search(brand) is not None
