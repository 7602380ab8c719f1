"""What the words in brackets behind a value say of the value.

Only known words are passed over. `(goal)`, `(mother)` or an unknown word makes the row unclear,
because the value may not be the patient's present value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from pipeline.clinical.date_forms import DateOrder
from pipeline.providers.local.labs.cells import Cell
from pipeline.providers.local.labs.patterns import CLOCK, DATE
from pipeline.providers.local.text.latest_reading import moment_of

_SAME_VALUE = re.compile(
    r"(?:(?:non-?)?fasting|random|post-?prandial|calc(?:ulated)?|est(?:imated)?|direct|indirect|auto"
    r"|automated|manual|serum|plasma|blood|whole|venous|arterial|capillary|urine|spot|csf|fingerstick"
    r"|finger|stick|point|of|care|poc|method|assay|immunoassay|jaffe|enzymatic|nephelometry|elisa"
    r"|pcr|hplc|dipstick|clean|catch|catheter(?:ized)?|final|verified|confirmed|corrected|adjusted"
    r"|repeat(?:ed)?|rechecked|duplicate|duplicated|reviewed|resulted|abnormal|normal|wnl|high|low"
    r"|very|slightly|mildly|moderately|markedly|borderline|critical|panic|alert|elevated|increased"
    r"|decreased|up|down|within|limits?|range|in|out|the|above|below|non-?reactive|reactive|positive"
    r"|negative|detected|not|see|note|notes|comment|comments|footnote|reference|ref|flag|flagged|trace"
    r"|hemoly[sz]ed|haemoly[sz]ed|icteric|lipemic|rounded|approx(?:imately)?|about|total|free|level|lab"
    r"|labs|today|now|current(?:ly)?|new|this|morning|am|a\.m\.|pm|p\.m\.|at|on|admission|arrival|ed|er"
    r"|icu|ward|clinic|visit|stable|unchanged|improved|improving|worse|worsening|rising|falling|mmol"
    r"|mg|dl|l|ml|g|iu|u|percent|percentile|a|h|n|ll|hh|called|to|rn|md|dr|by|phone|and|or|egfr|ckd-?epi"
    r"|mdrd|cockcroft|gault|friedewald|dcct|ifcc|ngsp|si|units?|using|race|african|american|for|if|black"
    r"|adults?|child(?:ren)?|pediatric|males?|females?|men|women|(?:pre|post)-?menopausal"
    r"|sandwich|chemiluminescence|clia|ise|gfr|anion|gap|room|air|ra|o2|nasal|cannula)",
    re.I,
)
"""Words about the method, the specimen, the flag, or the present time."""
_EARLIER = re.compile(
    r"\b(?:previous(?:ly)?|prior|baseline|old|former(?:ly)?|outside|past|earlier|historical|nadir"
    r"|peak|lowest|highest|last|yesterday|before|ago|pre-?(?:op\w*|treatment|dialysis|transfusion)"
    r")\b",
    re.I,
)
_COMPARED = re.compile(
    r"\b(?:from|since|than|compared|vs|versus|chang\w*|unchanged|improv\w*|wors\w*|stable|similar"
    r"|same|as|up|down|better|higher|lower)\b",
    re.I,
)
"""The value is compared with an earlier value, and is perhaps the present value."""
_ANOTHER = re.compile(
    r"\b(?:goal|target|desired|mother|father|maternal|paternal|donor|husband|wife|sibling|brother"
    r"|sister|baby|infant|newborn|twin|fetal|fetus|cancel\w*|error|erroneous|void|disregard|wrong"
    r"|invalid|rejected)\b",
    re.I,
)
"""Words of another person, of a goal, or of a value that is taken back."""
_BEHIND = re.compile(r"(?:[^()\n;.,]|[.,](?=\d)){0,40}\(([^()\d\n]{1,60})\)")
"""Brackets behind a value, its unit and its range."""
_DAY = re.compile(rf"\(({DATE})(?:[ ]{CLOCK})?\)")
_YEAR = re.compile(r"[(\[](?:19|20)\d\d[)\]]")
_TIME = re.compile(rf"\((?:at[ ])?(?!(?:19|20)\d\d\)){CLOCK}\)")
"""`(2015)` can be a year, and a quarter past eight."""
_MARK = re.compile(r"[ ,;:/.%*!-]+")


class BracketMeaning(Enum):
    """What the words in brackets say of the value before them."""

    SAME = "same"
    EARLIER = "earlier"
    UNCLEAR = "unclear"


def meaning_of(cells: Sequence[Cell], behind: int) -> BracketMeaning:
    """Return what the brackets behind the place `behind` say of the value that ends there."""
    found = [
        _meaning(cell.words)
        for cell in cells
        if cell.start >= behind
        and (cell.kind == "paren" or (cell.kind == "other" and _YEAR.fullmatch(cell.words)))
    ]
    for meaning in (BracketMeaning.UNCLEAR, BracketMeaning.EARLIER):
        if meaning in found:
            return meaning
    return BracketMeaning.SAME


def speaks_of_another(text: str, end: int) -> bool:
    """Return whether brackets behind a value of running text name a goal or another person."""
    found = _BEHIND.match(text, end)
    return found is not None and _ANOTHER.search(found[1]) is not None


def with_dates(cells: Sequence[Cell], order: DateOrder | None) -> list[Cell]:
    """Return the cells with each date in brackets as a cell of a date.

    A date with two readings (`01/05/2019`) stays in its brackets, and running text is read instead.
    """
    return [
        cell._replace(kind="date", words=day[1])
        if cell.kind == "paren"
        and (day := _DAY.fullmatch(cell.words))
        and (moment := moment_of(day[1], order, None)) is not None
        and moment.day is not None
        else cell
        for cell in cells
    ]


def _meaning(words: str) -> BracketMeaning:
    if _TIME.fullmatch(words):
        return BracketMeaning.SAME
    if _ANOTHER.search(words):
        return BracketMeaning.UNCLEAR
    if _EARLIER.search(words):
        is_compared = _COMPARED.search(words) is not None
        return BracketMeaning.UNCLEAR if is_compared else BracketMeaning.EARLIER
    parts = [part for part in _MARK.split(words.strip("()")) if part]
    if all(_SAME_VALUE.fullmatch(part) for part in parts):
        return BracketMeaning.SAME
    return BracketMeaning.UNCLEAR
