"""Whether a text layer can be believed, from its words alone.

Imports the standard library only. A font without a character map yields few, private or shifted
characters; such a page is read from its image instead.
"""

from __future__ import annotations

import unicodedata

#: Letters that make up at least half of any Latin text, and vowels a fifth; shifted text has fewer.
_FREQUENT = frozenset("etaoinshrdlu")
_VOWELS = frozenset("aeiou")
#: Latin letters below which their frequencies say nothing.
_ENOUGH_LETTERS = 80


def plausible(text: str) -> bool:
    """Return whether `text` reads like text rather than like a font's private numbering."""
    visible = [char for char in text if not char.isspace()]
    if not visible:
        return False
    strange = sum(
        char == "\ufffd" or unicodedata.category(char) in {"Co", "Cn", "Cc"} for char in visible
    )
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
