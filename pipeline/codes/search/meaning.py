"""Order a shortlist by meaning: the vectors of an optional embedder beside the scores of the words.

This module is pure. It orders the codes of a list, and neither adds nor drops a code. A text is
compared with the terms of the codes without their facets, so no vector chooses a side, a trimester
or an encounter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.clinical.facts import Candidate
from pipeline.codes.search.facets import of_display
from pipeline.codes.search.query import MAX_CHARACTERS
from pipeline.codes.search.rank import UNSTATED

BOOST = 0.25
"""The most by which a near meaning raises a score: no code passes a code with a score of more than
1.25 times its own. Each contradiction, another number and another context costs more than that.
The figure follows from this limit; it was not tuned with a model."""


def text_of(name: str) -> str:
    """Return the text that is embedded for the name of an entity; "" for a name without words."""
    return " ".join(name[:MAX_CHARACTERS].lower().split())


def text_of_code(candidate: Candidate) -> str:
    """Return the text that is embedded for a code: its best term without facets."""
    return text_of(of_display(candidate.term or candidate.display)[0])


def digest_of(text: str) -> str:
    """Return the key under which the vector of a text is kept."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def texts_of(name: str, candidates: Sequence[Candidate]) -> set[str]:
    """Return the texts whose vectors `ordered` needs; none where there is nothing to order."""
    if len(candidates) < 2 or not text_of(name):
        return set()
    return {text for text in (text_of(name), *map(text_of_code, candidates)) if text}


def ordered(
    name: str, candidates: Sequence[Candidate], vectors: Mapping[str, Sequence[float]]
) -> list[Candidate]:
    """Return the same candidates, best first, by words and meaning.

    `vectors` has a vector of length 1 for each of `texts_of`. A code that states a side or a
    specimen which the text does not state is never raised. Scores fall from first to last.
    """
    if not texts_of(name, candidates):
        return list(candidates)
    asked = vectors[text_of(name)]
    likeness = [_likeness(asked, vectors.get(text_of_code(each))) for each in candidates]
    nearest, farthest = max(likeness), min(likeness)
    if nearest == farthest:
        return list(candidates)
    raised = [
        _raised(each, like, (like - farthest) / (nearest - farthest))
        for each, like in zip(candidates, likeness, strict=True)
    ]
    # The sort is stable: equal scores keep the order of the words.
    return sorted(raised, key=lambda each: -each.score)


def _raised(candidate: Candidate, likeness: float, nearness: float) -> Candidate:
    share = 0.0 if UNSTATED in candidate.reason else nearness
    score = candidate.score * (1 + BOOST * share) / (1 + BOOST)
    return replace(
        candidate, score=round(score, 4), reason=f"{candidate.reason}; meaning {likeness:.2f}"
    )


def _likeness(asked: Sequence[float], of_code: Sequence[float] | None) -> float:
    """Return the cosine of two vectors of length 1, between -1 and 1."""
    if of_code is None:
        return -1.0
    return sum(a * b for a, b in zip(asked, of_code, strict=True))
