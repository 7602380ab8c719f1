"""Vectors for texts: equal texts have equal vectors, similar texts have near vectors.

Words and their trigrams are hashed into the dimensions with a sign (feature hashing, Weinberger et
al. 2009), and the sum is normalized. There is no model and no randomness.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping

DIMENSIONS = 3_072
"""The service's default for `outputDimensionality`."""
MOST_IN_BATCH = 100
"""Texts of one `batchEmbedContents`; the service refuses more."""
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


VECTOR_FAULTS: Mapping[str, Callable[[list[list[float]]], list[list[float]]]] = {
    "few-vectors": lambda vectors: vectors[1:],
    "short-vector": lambda vectors: [vectors[0][:-1], *vectors[1:]],
    "nan-vector": lambda vectors: [[math.nan, *vectors[0][1:]], *vectors[1:]],
    "zero-vector": lambda vectors: [[0.0] * len(vectors[0]), *vectors[1:]],
}
"""Faults of an embedding: name in a script → change of the vectors. Only a rule of the kind
`embedding` can name them."""
