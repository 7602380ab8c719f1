"""Bytes to text: UTF-8, UTF-16 and cp1252, each only where the bytes prove the encoding.

charset-normalizer was not used: it weighs frequencies of characters, and a note has only a few
characters beyond ASCII. A wrong guess there turns a sign of a unit into another sign.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .. import refusals
from ..file_type import ZEROS
from ..types import ENCODING_GUESSED

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)

#: Where each byte above ASCII can stand in cp1252. The same bytes are letters, signs or lines in
#: the code pages of DOS and the Macintosh, where they stand elsewhere: `ò5` is `≥5` of DOS, and
#: `³5` is `≥5` of the Macintosh.
_EXPLAINED = (
    r"(?<![A-Za-z0-9])[“‘„‚](?=\S)",
    r"[”’](?![A-Za-z0-9])",
    r"(?<=[A-Za-z])[’](?=[A-Za-z])",
    r"(?<=[\d\s])’(?=\d\ds?\b)",
    r"(?<=[\w)\]%\s.,:;])[–—](?=[\w(\[\s.])",
    r"(?m:^)\s*[–—•·](?=\s*\S)",
    r"(?<=\s)[•·…]|(?<=\w)…|\xa0",
    r"(?<=[\d\s/(])µ(?=[gmlLMskUuVAKI])",
    r"(?<=\d)\s?°|(?<=\s)°(?=\s?[CF]\b)",
    r"(?<=[\d\s(])±(?=[\d\s.])",
    r"(?<![^\s\d(])[½¼¾](?![^\W\d_])",
    r"(?<=[\d\s])×(?=[\d\s])",
    r"(?:(?<=[a-zA-Z])|(?<=10))[²³¹]",
    r"(?<=[A-Za-z])[®™]|[©§€£](?=\s?[\w(])",
)
_LETTER = "[ŠŒŽšœžŸÀ-ÖØ-öø-ÿ]"
#: A word with letters beyond ASCII; no number, sign of division or other unit before it.
_WORD = (
    rf"(?<![\d/µ°])(?<!\d\s)\b(?=[A-Za-z'’-]*{_LETTER})(?=\w*[A-Za-z])[A-Za-zŠŒŽšœžŸÀ-ÖØ-öø-ÿ]+\b"
)
_SIGN = re.compile("|".join(_EXPLAINED))
_WORDS = re.compile(_WORD)
_CAPITAL_INSIDE = re.compile(r"[a-z][ŠŒŽŸÀ-ÖØ-Þ]|[A-Z]{2}[šœžà-öø-ÿ]")


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """A text, and the warnings for all its pages."""

    text: str
    warnings: tuple[str, ...] = ()


def decode(raw: bytes) -> Decoded:
    """Return the text of a file. Raises InputRefused where the encoding cannot be told."""
    if raw.startswith(_UTF32):
        raise refusals.not_text("The file is in UTF-32, which medproc does not read")
    for mark, encoding in _BOMS:
        if raw.startswith(mark):
            return Decoded(text=_strictly(raw[len(mark) :], encoding))
    if b"\0" in raw[:65_536]:
        return Decoded(text=_strictly(raw, _utf16(raw)))
    try:
        return Decoded(text=raw.decode("utf-8"))
    except UnicodeDecodeError:
        return _cp1252(raw)


def _strictly(raw: bytes, encoding: str) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError:
        name = encoding.upper().removesuffix("-LE").removesuffix("-BE")
        raise refusals.not_text(f"The file holds bytes that are no {name} text") from None


def _utf16(raw: bytes) -> str:
    """Return the byte order of UTF-16 without a mark: one byte of nearly each pair is 0."""
    head = raw[:65_536]
    first, second = head[::2].count(0), head[1::2].count(0)
    pairs = len(head) // 2
    if len(raw) % 2 == 0 and second > ZEROS * pairs and first == 0:
        return "utf-16-le"
    if len(raw) % 2 == 0 and first > ZEROS * pairs and second == 0:
        return "utf-16-be"
    raise refusals.not_text("The file holds binary data, not text")


def _cp1252(raw: bytes) -> Decoded:
    try:
        text = raw.decode("cp1252")
    except UnicodeDecodeError:
        raise refusals.not_text("The file's characters are in an unknown encoding") from None
    has_letters = False
    for line in _beyond_ascii(text):
        signs = {match.end() - 1 for match in _SIGN.finditer(line)}
        for word in _WORDS.finditer(line):
            if not _CAPITAL_INSIDE.search(word[0]):
                signs.update(range(word.start(), word.end()))
                has_letters = True
        if any(char > "\x7f" and at not in signs for at, char in enumerate(line)):
            raise refusals.not_text("The file does not say the encoding of its characters")
    return Decoded(text=text, warnings=(ENCODING_GUESSED,) if has_letters else ())


def _beyond_ascii(text: str) -> Iterator[str]:
    """Yield a window around each run of characters beyond ASCII; a line may have any length."""
    end = 0
    for match in re.finditer(r"[^\x00-\x7f]", text):
        if match.start() >= end:
            start, end = max(0, match.start() - 40), match.start() + 400
            yield text[start : end + 40]
