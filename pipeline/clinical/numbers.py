"""Read one printed value: a number with its comparator, a range, or a word, titer or ordinal.

A number is read only if its decimal sign is certain: `1,234` is read with proof alone. Titers and
ordinals are texts, never numbers. Only ASCII figures form numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from pipeline.clinical.attributes import Comparator

DecimalSign = Literal[".", ","]
_LONGEST = 60
_MOST_FIGURES = 18
_MOST_EXPONENT = 15
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-") | {"\xa0": " ", "\u202f": " ", "×": "x"})
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_COMPARATORS: tuple[tuple[str, Comparator], ...] = (
    (r"<[ ]?(?:or[ ]?)?=|=<|[≤⩽]|(?:less|lower)[ ]than[ ]or[ ]equal[ ]to|at[ ]most", "<="),
    (
        (
            r">[ ]?(?:or[ ]?)?=|=>|[≥⩾]|(?:greater|more|higher)[ ]than[ ]or[ ]equal[ ]to"
            r"|at[ ]least"
        ),
        ">=",
    ),
    (r"<|＜|(?:less|lower|fewer)[ ]than|under|below", "<"),
    (r">|＞|(?:greater|more|higher)[ ]than|over|above|exceeds", ">"),
)
_SIGN = re.compile(
    "|".join(f"(?P<c{at}>{form})" for at, (form, _) in enumerate(_COMPARATORS)), re.I
)
_PLAIN = r"(?:[0-9][0-9.,]*|[.,][0-9]+)"
_POWER = re.compile(
    rf"(?P<base>{_PLAIN})(?:[ ]?[x*][ ]?10(?:\^|\*{{1,2}}|[ ](?=-?[0-9]))?|[ ]?e[ ]?)"
    r"\(?(?P<exponent>[+-]?[0-9]{1,2})\)?",
    re.I,
)
_BARE_POWER = re.compile(r"10(?:\^|\*{1,2})\(?(?P<exponent>[0-9]{1,2})\)?")
_RANGE = re.compile(
    rf"(?P<low>[-+]?{_PLAIN})[ ]?(?:-|(?<![0-9])to(?![0-9])|[ ]to[ ])[ ]?"
    rf"(?P<high>[-+]?{_PLAIN})",
    re.I,
)
_TITER = re.compile(r"(?:(?:<|>|<=|>=|[≤≥])[ ]?)?1[ ]?:[ ]?[0-9]{1,7}(?:[.,][0-9]{3})?")
_ORDINAL = re.compile(
    r"[1-4][ ]?\+|\+[1-4]|\+{1,4}|\(\+{1,4}\)|\(-\)|[1-4]\+[ ]?(?:-|to)[ ]?[1-4]\+|\+/-|±"
)
_COLOR = r"(?:(?:pale|light|dark|deep)[ -]?)?(?:yellow|amber|straw|brown|red|orange|green|pink)"
_WORD = re.compile(
    r"(?:weak(?:ly)?|strong(?:ly)?|low|faint(?:ly)?|presumptive(?:ly)?)?[ ]?"
    r"(?:non-?[ ]?reactive|reactive|positive|negative|pos|neg|detected|abnormal|normal|immune"
    r"|non-?[ ]?immune|equivocal|indeterminate|borderline|inconclusive|present|absent|intact)"
    r"|not?[ ](?:detected|present|isolated|observed|identified|seen|growth)(?:[ ](?:to[ ]date"
    r"|(?:at|after|x|in)[ ][0-9]{1,3}[ ](?:days?|hours?|hrs?)))?"
    r"|none(?:[ ](?:seen|detected|found|present|observed))?|undetect(?:ed|able)|tntc"
    r"|too[ ]numerous[ ]to[ ]count|traces?|few|rare|occasional|moderate|many|numerous|small|large"
    r"|abundant|scant|light|heavy|mixed|packed|loaded|high|low|"
    rf"{_COLOR}|colou?rless|clear|cloudy|hazy|sl(?:ightly)?[ ](?:cloudy|hazy)|turbid|bloody"
    r"|sterile|within[ ]normal[ ]limits|wnl|unremarkable|mild|marked"
    r"|(?:a|b|ab|o)[ ]?(?:rh[ ]?)?(?:\(d\)[ ]?)?(?:positive|negative|pos|neg|\+|-)|(?:ab|o)"
    r"|(?:see|refer[ ]to)[ ](?:the[ ])?(?:notes?|comments?|below|text|report)|comment|tnp|qns"
    r"|test[ ]not[ ]performed|not[ ](?:performed|reported|done|available|calculated|applicable"
    r"|established|estab\.?|tested)|cancell?ed|quantity[ ]not[ ]sufficient|insufficient"
    r"|clotted|n/?a|pending|in[ ]process|to[ ]follow|invalid|rejected|refused|deferred"
    r"|h[ae]?emolyzed",
    re.I,
)
_GROUPED = {
    ",": re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?"),
    ".": re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]+)?"),
}
_POINT_PROOF = re.compile(
    r"(?<![0-9.,])(?:[0-9]+\.(?:[0-9]{1,2}|[0-9]{4,})|0\.[0-9]+|\.[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+"
    r"|[0-9]{1,3}(?:,[0-9]{3}){2,})(?![0-9]|[.,][0-9])"
)
_COMMA_PROOF = re.compile(
    r"(?<![0-9.,])(?:[0-9]+,(?:[0-9]{1,2}|[0-9]{4,})|0,[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+"
    r"|[0-9]{1,3}(?:\.[0-9]{3}){2,})(?![0-9]|[.,][0-9])"
)
_UNIT = r"(?=[ \t]*(?:%|°|[kmµμ]?g\b|mcg\b|mEq\b|mmol\b|[mµμ]?mol\b|units?\b|[A-Za-zµμ]{1,5}/))"
_PAGE_COMMA = re.compile(
    rf"(?<![\w.,/])(?:\d+,\d{{1,2}}{_UNIT}|\d{{1,3}}(?:\.\d{{3}})+,\d+(?![\d.,]))"
)
_PAGE_POINT = re.compile(
    rf"(?<![\w.,/])(?:\d+\.\d{{1,2}}{_UNIT}|\d{{1,3}}(?:,\d{{3}})+\.\d+(?![\d.,]))"
)
_FRACTIONS = {"½": "0.5", "¼": "0.25", "¾": "0.75", "⅛": "0.125", "⅜": "0.375", "⅝": "0.625"}
_FRACTION = re.compile(r"(?:(?P<whole>[0-9]{1,3})[ -]?)?(?P<sign>[½¼¾⅛⅜⅝])")
_SLASHED = re.compile(r"(?:(?P<whole>[0-9]{1,3})[ -])?(?P<over>[1-7])/(?P<under>2|4|8)")


@dataclass(frozen=True, kw_only=True)
class PrintedNumber:
    """What a printed value says: a number, a range from `number` to `high`, or a text."""

    number: Decimal | None = None
    high: Decimal | None = None
    comparator: Comparator | None = None
    text: str | None = None
    """A word, a titer or an ordinal, as printed."""

    @property
    def is_understood(self) -> bool:
        """Return whether the value has one meaning."""
        return self.number is not None or self.text is not None


NOT_UNDERSTOOD = PrintedNumber()


def decimal_sign(*texts: str | None) -> DecimalSign | None:
    """Return the decimal sign that printed numbers prove; None if none or both are proved."""
    joined = " ".join(text[:200] for text in texts if text)
    point, comma = _POINT_PROOF.search(joined), _COMMA_PROOF.search(joined)
    if (point is None) == (comma is None):
        return None
    return "." if point else ","


def as_sign(text: str | None) -> DecimalSign | None:
    """Return a decimal sign; None for any other text."""
    return "." if text == "." else "," if text == "," else None


def has_both_signs(*texts: str | None) -> bool:
    """Return whether printed numbers prove both decimal signs."""
    joined = " ".join(text[:200] for text in texts if text)
    return bool(_POINT_PROOF.search(joined) and _COMMA_PROOF.search(joined))


@lru_cache(maxsize=256)
def signs_of_page(text: str) -> frozenset[DecimalSign]:
    """Return the decimal signs that the numbers of a page prove.

    On a page only a number with a unit, or with groups and decimals, is proof: `2.1` can be a
    heading and `030.123456` a telephone number.
    """
    found: dict[DecimalSign, re.Pattern[str]] = {".": _PAGE_POINT, ",": _PAGE_COMMA}
    return frozenset(sign for sign, pattern in found.items() if pattern.search(text))


def plain_number(text: str, sign: DecimalSign | None = None) -> Decimal | None:
    """Return a number without comparator; None if its decimal sign is open or it is no number.

    `sign` is the decimal sign that the source proves. Without proof a single point is the decimal
    sign, and `1,234` is open.
    """
    text = text.strip()
    negative = text.startswith("-")
    text = text.lstrip("+-") if text[:1] in "+-" and text[1:2] not in ("+", "-") else text
    if not re.fullmatch(_PLAIN, text) or sum(c.isdigit() for c in text) > _MOST_FIGURES:
        return None
    text = text[:-1] if text[-1] in ".," and text[:-1].isdigit() else text
    sign = sign or decimal_sign(text) or ("." if "," not in text else None)
    if sign is None:
        return None
    group = "," if sign == "." else "."
    if group in text:
        # A group has three figures; the decimal sign comes once, behind the groups.
        if not _GROUPED[group].fullmatch(text):
            return None
        text = text.replace(group, "")
    text = text.replace(sign, ".")
    if not re.fullmatch(r"[0-9]*\.?[0-9]+", text):
        return None
    return Decimal(f"-{text}" if negative else text)


def fraction(text: str) -> Decimal | None:
    """Return a printed fraction of halves, quarters or eighths (`½`, `1 1/2`)."""
    m = _FRACTION.fullmatch(text.strip())
    if m:
        return Decimal(m["whole"] or 0) + Decimal(_FRACTIONS[m["sign"]])
    m = _SLASHED.fullmatch(text.strip())
    if m is None or int(m["over"]) >= int(m["under"]):
        return None
    return Decimal(m["whole"] or 0) + Decimal(m["over"]) / Decimal(m["under"])


def read_number(
    text: str, *, sign: DecimalSign | None = None, has_fractions: bool = False
) -> PrintedNumber:
    """Return what a printed value says; `NOT_UNDERSTOOD` if it has no single meaning.

    `sign` is the decimal sign that the source proves. With `has_fractions`, `1/2` is a number.
    """
    plain = _plain(text)
    if not plain or len(plain) > _LONGEST:
        return NOT_UNDERSTOOD
    if _TITER.fullmatch(plain) or _ORDINAL.fullmatch(plain) or _WORD.fullmatch(plain):
        return PrintedNumber(text=" ".join(text.split()))
    sign = sign or decimal_sign(plain)
    m = _SIGN.match(plain)
    comparator: Comparator | None = None
    if m:
        comparator = next(c for at, (_, c) in enumerate(_COMPARATORS) if m[f"c{at}"])
        plain = plain[m.end() :].strip()
    number = _single(plain, sign, has_fractions=has_fractions)
    if number is not None:
        return PrintedNumber(number=number, comparator=comparator)
    m = None if comparator else _RANGE.fullmatch(plain)
    if m is None:
        return NOT_UNDERSTOOD
    low, high = plain_number(m["low"], sign), plain_number(m["high"], sign)
    if low is None or high is None or low > high:
        return NOT_UNDERSTOOD
    return PrintedNumber(number=low, high=high)


def _plain(text: str) -> str:
    if len(text) > _LONGEST * 4:
        return ""
    plain = re.sub(r"(?<=10)[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda m: f"^{m[0].translate(_RAISED)}", text)
    plain = " ".join(plain.translate(_DASHES).split())
    return plain[:-1] if re.search(r"[0-9][.,;]$", plain) else plain


def _single(text: str, sign: DecimalSign | None, *, has_fractions: bool) -> Decimal | None:
    m = _BARE_POWER.fullmatch(text)
    if m and int(m["exponent"]) <= _MOST_EXPONENT:
        return Decimal(10) ** int(m["exponent"])
    m = _POWER.fullmatch(text)
    if m:
        base, exponent = plain_number(m["base"], sign), int(m["exponent"])
        if base is None or abs(exponent) > _MOST_EXPONENT:
            return None
        return Decimal(format(base.scaleb(exponent), "f"))
    if has_fractions and (found := fraction(text)) is not None:
        return found
    return plain_number(text, sign)
