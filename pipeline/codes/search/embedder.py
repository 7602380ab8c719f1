"""Vectors for texts: the interface, and hashed character n-grams, which need no model.

The vectors of similar texts are near each other. So the search finds a word that OCR misread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol
from zlib import crc32

from pipeline.models.code_index import GRAM_DIMENSIONS

Vector = list[float]

_CONFUSED = str.maketrans("015689|", "olsbbgl")


class Embedder(Protocol):
    """Turns texts into vectors of one length; near vectors mean like texts."""

    @property
    def name(self) -> str:
        """The name of the model; vectors of two names are never compared."""
        ...

    def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text, each of length 1; an empty text has zeros."""
        ...


def folded(text: str) -> str:
    """Return a text in which characters are equal that OCR confuses: `0` and `o`, `rn` and `m`."""
    return text.translate(_CONFUSED).replace("rn", "m").replace("cl", "d").replace("vv", "w")


class NgramEmbedder:
    """Counts hashed bigrams and trigrams of the folded text."""

    name = "ngrams-1"

    def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector of GRAM_DIMENSIONS values per text."""
        return [self._vector(f"^{folded(text)}$") for text in texts]

    @staticmethod
    def _vector(text: str) -> Vector:
        values = [0.0] * GRAM_DIMENSIONS
        data = text.encode()
        for size in (2, 3):
            for at in range(len(data) - size + 1):
                hashed = crc32(data[at : at + size])
                values[(hashed >> 1) % GRAM_DIMENSIONS] += 1.0 if hashed & 1 else -1.0
        length = math.sqrt(sum(value * value for value in values))
        return [value / length for value in values] if length else values


def literal(vector: Sequence[float]) -> str:
    """Return a vector as pgvector reads it."""
    return "[" + ",".join(f"{value:.4g}" for value in vector) + "]"
