"""Decide whether a text layer is trustworthy, from its characters alone.

A font without a character map yields few, private or shifted characters. Such a page is read from
its image instead.
"""

from __future__ import annotations

import unicodedata
from dataclasses import replace

from .text_layer import Layer

#: These letters make up at least half of any Latin text, and vowels a fifth. Shifted text has less.
_FREQUENT = frozenset("etaoinshrdlu")
_VOWELS = frozenset("aeiou")
#: Fewer Latin letters are too few for statistics.
_ENOUGH_LETTERS = 80


def plausible(text: str) -> bool:
    """Return whether `text` looks like text, not like a font's private numbering."""
    visible = [char for char in text if not char.isspace()]
    if not visible:
        return False
    strange = sum(map(_is_strange, visible))
    if strange > 0.1 * len(visible):
        return False
    spoken = sum(char.isalnum() for char in visible)
    if spoken < 0.3 * len(visible):
        return False
    latin = [char for char in text.lower() if "a" <= char <= "z"]
    if len(latin) < _ENOUGH_LETTERS or len(latin) < 0.3 * spoken:
        return True
    frequent = sum(char in _FREQUENT for char in latin)
    vowels = sum(char in _VOWELS for char in latin)
    return frequent >= 0.5 * len(latin) and vowels >= 0.2 * len(latin)


def spoken(layer: Layer) -> Layer:
    """Return `layer` without words of a font whose characters have no meaning.

    A short sign is kept, because it is a bullet or a check box.
    """
    lines = (
        tuple(
            token for token in line if len(token.text) < 3 or not all(map(_is_strange, token.text))
        )
        for line in layer.lines
    )
    return replace(layer, lines=tuple(line for line in lines if line))


def _is_strange(char: str) -> bool:
    return char == "\ufffd" or unicodedata.category(char) in {"Co", "Cn", "Cc"}
