"""The language of a page, and whether this engine reads it.

Function words decide the clear cases, so that tables without sentences are not misjudged. The model
of py3langid decides only doubtful cases in Latin letters, because loading this model takes 0.5 to
1.1 s and 80 MB (measured).
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from pipeline.core.types import PageSlice
from pipeline.providers.local.names.word_lists import rows

_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = "en"
_RECORD = "record"
"""The list's key for English words of tables and forms, which contain no function words."""
_MIN_LETTERS = 8
"""A page with fewer letters says nothing about its language."""
_MIN_FOREIGN = 4
_LAST_LATIN = 0x24F
"""The last code point of Latin Extended-B."""
_MIN_WORDS = 25
"""With fewer words the model is not asked, because names and numbers mislead the model."""
_CLEAR_SHARE = 0.08
"""The share of English function words that makes a page English; prose has 0.3 and more."""
_CLEAR_COUNT = 4
_SURE = 0.95
_LIKELY = 0.7
"""The confidence that suffices for a page without English function words."""
_SCRIPTS = {
    "ARABIC": "ar",
    "CYRILLIC": "ru",
    "GREEK": "el",
    "HEBREW": "he",
    "HANGUL": "ko",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "zh",
    "DEVANAGARI": "hi",
    "BENGALI": "bn",
    "TAMIL": "ta",
    "THAI": "th",
    "ARMENIAN": "hy",
    "GEORGIAN": "ka",
}
"""First word of a letter's Unicode name → the most spoken language of that script."""
_LATIN = frozenset(
    {"en", "es", "fr", "de", "pt", "it", "nl", "ca", "gl", "ro", "sv", "da", "nb", "no", "fi", "is"}
    | {"pl", "cs", "sk", "sl", "hr", "hu", "tr", "et", "lv", "lt", "sq", "eu", "ga", "cy", "mt"}
    | {"af", "id", "ms", "tl", "vi", "sw"}
)
# `cache` does not lock: two threads would both load the model, 80 MB each.
_lock = threading.Lock()


def languages(slices: Sequence[PageSlice]) -> tuple[str, set[int]]:
    """Return the main language (ISO 639-1) of the own pages, and the pages that cannot be read."""
    texts: dict[int, list[str]] = {}
    own: set[int] = set()
    for part in slices:
        texts.setdefault(part.page, []).append(part.text)
        if not part.context:
            own.add(part.page)
    found = {page: language_of("\n".join(parts)) for page, parts in texts.items()}
    weights: Counter[str] = Counter()
    for page in own:
        weights[found[page]] += sum(len(text) for text in texts[page])
    main = max(weights, key=lambda code: (weights[code], code == _ENGLISH), default=_ENGLISH)
    return main, {page for page, code in found.items() if code != _ENGLISH}


@lru_cache(maxsize=256)
def language_of(text: str) -> str:
    """Return the language of a page; English if the page leaves it open."""
    letters = [c for c in text[:20_000] if c.isalpha()]
    foreign = [c for c in letters if ord(c) > _LAST_LATIN]
    if len(foreign) * 2 > len(letters) and len(foreign) >= _MIN_FOREIGN:
        return _by_script(foreign)
    if len(letters) < _MIN_LETTERS:
        return _ENGLISH
    words = [word.lower() for word in _WORD.findall(text)]
    counts = {code: sum(word in known for word in words) for code, known in _function_words()}
    english = counts.pop(_ENGLISH)
    record = counts.pop(_RECORD)
    other = max(counts.values())
    if english >= _CLEAR_COUNT and english >= _CLEAR_SHARE * len(words) and english > other:
        return _ENGLISH
    if record >= _CLEAR_COUNT and record >= _CLEAR_SHARE * len(words) and record > 2 * other:
        return _ENGLISH
    if len(words) < _MIN_WORDS and other <= max(2, english):
        return _ENGLISH
    if other <= english and english >= _CLEAR_COUNT:
        return _ENGLISH
    guess, confidence = _model_says(text)
    if guess == _ENGLISH or confidence < (_SURE if english else _LIKELY):
        return max(counts, key=lambda code: counts[code]) if other > 4 + 2 * english else _ENGLISH
    if other == 0 and not any(not c.isascii() for c in letters):
        return _ENGLISH
    return guess


def _by_script(letters: list[str]) -> str:
    names = Counter(unicodedata.name(c, "").partition(" ")[0] for c in letters)
    if names["HIRAGANA"] or names["KATAKANA"]:
        return "ja"
    for name, _ in names.most_common():
        if name in _SCRIPTS:
            return _SCRIPTS[name]
    return "und"


@cache
def _function_words() -> tuple[tuple[str, frozenset[str]], ...]:
    found = []
    for row in rows("function_words.txt"):
        code, _, words = row.partition(":")
        found.append((code, frozenset(words.split())))
    return tuple(found)


def _model_says(text: str) -> tuple[str, float]:
    code, confidence = _model().classify(text)
    return ("no" if code == "nb" else str(code)), float(confidence)


def _model() -> Any:
    with _lock:
        return _loaded()


@cache
def _loaded() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    model.set_languages(sorted(_LATIN & set(model.labels)))
    return model
