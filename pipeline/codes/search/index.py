"""Fill the index of the code search for one code system, inside the loader's transaction.

Sizes and times are in docs/performance.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any
from zlib import crc32

from django.db import connection, transaction

from pipeline.codes.search.embedder import NgramEmbedder, literal
from pipeline.codes.search.staging import PART, Staged, StagedEntries
from pipeline.codes.search.words import NEGATED, RESIDUAL, SearchWord
from pipeline.core.copy_rows import copy_rows
from pipeline.models import CodeEntry, CodeSystem, CodeWord
from pipeline.models.code_index import GRAM_DIMENSIONS, LEXEME_DIMENSIONS

REVISION = 2
"""Raise this number if `fill` writes another index for the same codes: start-up then refills."""
OPTIONAL_SHARE = 0.25
"""A word in brackets may be left out: "(congestive)"."""
NEGATED_SHARE = 0.12
"""A text that does not mention ascites usually means "without ascites"."""
RESIDUAL_COST = {
    "unspecified": 60, "nos": 30, "unsp": 60, "uncomplicated": 40, "site": 60, "part": 80,
    "severity": 60, "organism": 60, "unilateral": 100, "primary": 150, "essential": 100,
    "female": 150, "male": 150, "adult": 150,
}  # fmt: skip
"""What it costs to leave such a word unmentioned, in hundredths."""
RESIDUAL_COST_OTHER = 250
"""The same for "other" and "specified": such a code names what no other code names."""
MAX_WEIGHT = 1500
TOTAL = ""
"""The word whose row counts all entries of a system."""
MAX_WORD = 60
"""Characters of a word that the index keeps; longer words are formulas."""
STEM_ROWS = 5_000


def fill(system_key: str) -> int:
    """Replace the index of a system by its codes and terms; return the number of entries.

    Runs in the caller's transaction. Memory holds the distinct words of the system, and a part of
    its entries.
    """
    with transaction.atomic(), closing(StagedEntries(system_key)) as entries:
        lexemes = _lexemes(entries.words)
        counts: Counter[str] = Counter()
        total = 0
        for words in entries.distinct():
            total += 1
            counts.update({lexeme_of(word, lexemes) for word in words})
        CodeEntry.objects.filter(system_id=system_key).delete()
        CodeWord.objects.filter(system_id=system_key).delete()
        rows = _entry_rows(system_key, entries, lexemes, counts, total)
        copy_rows(CodeEntry._meta.db_table, _ENTRY, rows)
        copy_rows(CodeWord._meta.db_table, _WORD, _word_rows(system_key, lexemes, counts, total))
        CodeSystem.objects.filter(key=system_key).update(index_revision=REVISION)
    return total


_ENTRY = ("system_id", "lexemes", "dimensions", "words", "weights", "weight", "codes", "facets")
_WORD = ("system_id", "word", "lexeme", "entry_count", "length", "grams")


def lexeme_of(word: SearchWord, lexemes: dict[str, str]) -> str:
    """Return the lexeme under which the index has a word; a negated word has its own lexeme."""
    return (NEGATED if word.is_negated else "") + lexemes[word.text]


def dimension(lexeme: str) -> int:
    """Return the dimension of a lexeme, 1-based."""
    return crc32(lexeme.encode()) % LEXEME_DIMENSIONS + 1


def importance(entry_count: int, total: int) -> float:
    """Return how much a lexeme tells: its inverse document frequency, about 1 to 11."""
    return max(0.5, math.log((total + 1) / (entry_count + 0.5)))


def _lexemes(texts: Iterable[str]) -> dict[str, str]:
    """Return the stem of each word, by PostgreSQL's English stemmer."""
    ordered = sorted(texts)
    found: dict[str, str] = {}
    with connection.cursor() as cursor:
        for at in range(0, len(ordered), STEM_ROWS):
            part = [text[:MAX_WORD] for text in ordered[at : at + STEM_ROWS]]
            cursor.execute(
                "SELECT coalesce((ts_lexize('english_stem', word))[1], word)"
                " FROM unnest(%s::text[]) WITH ORDINALITY AS w (word, n) ORDER BY n",
                [part],
            )
            stems = [stem for (stem,) in cursor]
            found.update(zip(ordered[at : at + STEM_ROWS], stems, strict=True))
    return found


def _entry_rows(
    system_key: str,
    found: Iterable[Staged],
    lexemes: dict[str, str],
    counts: Counter[str],
    total: int,
) -> Iterator[tuple[Any, ...]]:
    for words, codes, facets in found:
        indexed = [lexeme_of(word, lexemes) for word in words]
        weights = [
            _cost(word, lexeme, importance(counts[lexeme], total))
            for word, lexeme in zip(words, indexed, strict=True)
        ]
        distinct = sorted(set(indexed))
        dimensions = {dimension(lexeme) for lexeme in distinct}
        yield (
            system_key,
            " ".join(
                "'" + lexeme.replace("'", "''").replace("\\", "\\\\") + "'" for lexeme in distinct
            ),
            "{" + ",".join(f"{d}:1" for d in sorted(dimensions)) + f"}}/{LEXEME_DIMENSIONS}",
            [word.prefix + lexemes[word.text] for word in words],
            weights,
            float(sum(weights)),
            codes,
            facets,
        )


def _cost(word: SearchWord, lexeme: str, importance_of_word: float) -> int:
    if word.is_joined:
        return 0
    if word.text in RESIDUAL_COST or word.text in RESIDUAL:
        return RESIDUAL_COST.get(word.text, RESIDUAL_COST_OTHER)
    share = NEGATED_SHARE if word.is_negated else OPTIONAL_SHARE if word.is_optional else 1.0
    return min(MAX_WEIGHT, round(importance_of_word * share * 100))


def _word_rows(
    system_key: str, lexemes: dict[str, str], counts: Counter[str], total: int
) -> Iterator[tuple[Any, ...]]:
    yield system_key, TOTAL, TOTAL, total, 0, literal([0.0] * GRAM_DIMENSIONS)
    texts = sorted(lexemes)
    for at in range(0, len(texts), PART):
        part = texts[at : at + PART]
        for text, vector in zip(part, NgramEmbedder().vectors(part), strict=True):
            lexeme = lexemes[text]
            yield system_key, text, lexeme, counts[lexeme], len(text), literal(vector)
