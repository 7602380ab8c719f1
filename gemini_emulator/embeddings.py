"""Vectors for texts: equal texts have equal vectors, similar texts have near vectors.

Words and their trigrams are hashed into the dimensions with a sign (feature hashing, Weinberger et
al. 2009), and the sum is normalized. There is no model and no randomness.
"""

from __future__ import annotations

import hashlib
import math
import re

DIMENSIONS = 3_072
"""The service's default for `outputDimensionality`."""
_WORD = re.compile(r"\w+")


def embed(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Return the vector of a text, with length 1; an empty text has zeros."""
    vector = [0.0] * dimensions
    for word in _WORD.findall(text.lower()):
        padded = f" {word} "
        parts = [word, *(padded[at : at + 3] for at in range(len(padded) - 2))]
        for part in parts:
            digest = hashlib.blake2b(part.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            at = int.from_bytes(digest, "big")
            vector[(at >> 1) % dimensions] += 1.0 if at & 1 else -1.0
    length = math.sqrt(sum(x * x for x in vector))
    return [round(x / length, 8) for x in vector] if length else vector
