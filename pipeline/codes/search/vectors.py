"""The table of vectors: each text is embedded once per model, and found by its digest."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence

from django.db import connection

from pipeline.codes.search.embedder import literal
from pipeline.codes.search.meaning import digest_of
from pipeline.models import CodeVector


def known(model: str, texts: Iterable[str]) -> dict[str, Sequence[float]]:
    """Return the vectors of those texts that have one, in one statement."""
    by_digest = {digest_of(text): text for text in texts}
    if not by_digest:
        return {}
    rows = CodeVector.objects.filter(model=model, digest__in=by_digest)
    # An array of floats needs a tenth of the memory of a list.
    return {
        by_digest[digest]: array("f", vector)
        for digest, vector in rows.values_list("digest", "vector")
    }


def keep(model: str, vectors: Mapping[str, Sequence[float]]) -> None:
    """Keep the vectors of some texts, in one statement; a vector that is there stays.

    Rows are in the order of their digests, so that two records never wait for each other in turn.
    """
    if not vectors:
        return
    rows = sorted((digest_of(text), literal(vector)) for text, vector in vectors.items())
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO code_search_vectors (model, digest, vector)"
            " SELECT %s, digest, vector"
            " FROM unnest(%s::text[], %s::halfvec[]) AS v (digest, vector)"
            " ON CONFLICT (model, digest) DO NOTHING",
            [model, [digest for digest, _ in rows], [vector for _, vector in rows]],
        )
