"""The words of a record that must stay inside, and the search for them in each usual encoding.

A word is found in any case, in a URL, in JSON and HTML, in UTF-16, in hexadecimal and in base64.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

LEAST = 6
"""Shorter words occur by chance in base64 and in ids."""
_BASE64_SKIPPED = (0, 2, 3)
"""The first characters that a neighbour of 0, 1 or 2 bytes decides."""


class Needles:
    """A search for words in bytes."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        assert all(len(word) >= LEAST for word in self.words)
        self._any_case = _pattern({form: word for word in self.words for form in folded(word)})
        self._exact = _pattern({form: word for word in self.words for form in in_base64(word)})

    def found(self, content: bytes | str) -> set[str]:
        """Return the words that occur in any form."""
        raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        found: set[str] = set()
        for (pattern, words), text in ((self._any_case, raw.lower()), (self._exact, raw)):
            found |= {words[match[0]] for match in pattern.finditer(text)}
        return found


def folded(word: str) -> set[bytes]:
    """Return the forms of a word whose bytes are compared in lower case."""
    texts = {word.lower(), word.upper(), word}
    forms = {text.encode() for text in texts}
    for text in texts:
        forms |= {
            quote(text, safe="").encode(),
            quote_plus(text).encode(),
            json.dumps(text)[1:-1].encode(),
            html.escape(text).encode(),
            text.encode("utf-16-le"),
            text.encode("utf-16-be"),
            text.encode().hex().encode(),
        }
        if text.isascii() or all(ord(each) < 256 for each in text):
            forms.add(text.encode("latin-1"))
    return {form.lower() for form in forms}


def in_base64(word: str) -> set[bytes]:
    """Return what is the same in the base64 of every text that holds the word."""
    forms = set()
    for text in {word, word.lower(), word.upper()}:
        for before, skipped in enumerate(_BASE64_SKIPPED):
            packed = b"-" * before + text.encode()
            whole = len(packed) // 3 * 4
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                forms.add(encode(packed)[skipped:whole])
    return forms


def _pattern(forms: dict[bytes, str]) -> tuple[re.Pattern[bytes], dict[bytes, str]]:
    longest_first = sorted(forms, key=len, reverse=True)
    return re.compile(b"|".join(map(re.escape, longest_first))), forms
