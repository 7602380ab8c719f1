"""Decide which names of the sources are also ordinary words, in English or another language."""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import cached_property
from pathlib import Path

_FOLDER = Path(__file__).parent


class Ordinary:
    """The words that people use without meaning a disease or a drug."""

    def __init__(self, frequencies: Mapping[str, Mapping[str, float]]) -> None:
        self._languages = frequencies

    def is_word(self, word: str) -> bool:
        """Return whether one of the languages, or our own list, knows `word` as frequent."""
        return word in self._own or any(word in known for known in self._languages.values())

    def is_english(self, word: str) -> bool:
        """Return whether `word` is frequent in English, or in our own list."""
        return word in self._own or word in self._languages.get("en", {})

    def is_disease(self, word: str, sites: Container[str]) -> bool:
        """Return whether `word` names a disease.

        A rare word does, unless it names a part of the body. A frequent word is in our own list.
        """
        return word in self._diseases or not (word in sites or self.is_english(word))

    @cached_property
    def _own(self) -> frozenset[str]:
        return _words("ordinary_words.txt")

    @cached_property
    def _diseases(self) -> frozenset[str]:
        return _words("disease_words.txt")


def _words(name: str) -> frozenset[str]:
    lines = (_FOLDER / name).read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())
