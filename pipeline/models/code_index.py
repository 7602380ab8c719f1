"""The index of the code search: what a term says, and which codes the term leads to.

`codes.search.index.fill` writes entries and words, once per load of a code system. Pass 1.5 writes
the vectors of the optional embedder.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from pgvector.django import HalfVectorField, SparseVectorField

from pipeline.models import fields
from pipeline.models.codes import CodeSystem

LEXEME_DIMENSIONS = 999_999_937
"""Dimensions of `CodeEntry.dimensions`; a prime below pgvector's limit of 1,000,000,000."""
GRAM_DIMENSIONS = 128
"""Dimensions of `CodeWord.grams`."""

EMBEDDING_DIMENSIONS = 768
"""Dimensions of `CodeVector.vector`. The service recommends 768, 1,536 or 3,072."""


class CodeEntry(models.Model):
    """One term without its facets (side, trimester, encounter), with all codes that share it."""

    id = models.BigAutoField(primary_key=True)
    system = models.ForeignKey(
        CodeSystem, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    lexemes = SearchVectorField()
    dimensions = SparseVectorField(dimensions=LEXEME_DIMENSIONS)
    """1 at the hash of each lexeme; the inner product with a query is the covered weight."""
    words = ArrayField(models.TextField())
    """The lexemes in the order of the text; `codes.search.words` explains the prefixes."""
    weights = ArrayField(models.SmallIntegerField())
    """What it costs to leave a word of `words` unmentioned, in hundredths."""
    weight = models.FloatField()
    """Sum of `weights`."""
    codes = ArrayField(models.BigIntegerField())
    """Ids of `codes`."""
    facets = ArrayField(models.TextField())
    """The facets of each code, as `codes.search.facets` writes them."""

    class Meta:
        db_table = "code_search_entries"
        db_table_comment = "Index of the code search: terms without facets, with their codes."
        indexes = [
            # Without an index on `system` the planner cannot combine that index with this index,
            # which would read all entries of the system for every query.
            # No pending list: the first search after a load is as fast as any other search.
            GinIndex(fields=["lexemes"], name="idx_code_entries_lexemes", fastupdate=False),
        ]

    def __str__(self) -> str:
        return f"entry {self.pk} of {self.system_id}"


class CodeWord(models.Model):
    """One word of the terms of a system, with the vector of its character n-grams."""

    id = models.BigAutoField(primary_key=True)
    system = models.ForeignKey(
        CodeSystem, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    word = models.TextField()
    lexeme = models.TextField()
    """The stem of the word, as PostgreSQL's English stemmer writes it."""
    entry_count = models.IntegerField()
    """Entries that contain the lexeme."""
    length = models.SmallIntegerField()
    grams = HalfVectorField(dimensions=GRAM_DIMENSIONS)

    class Meta:
        db_table = "code_search_words"
        db_table_comment = "Words of the code search, with their character n-grams."
        indexes = [
            models.Index(fields=["system", "lexeme"], name="idx_code_words_lexeme"),
            models.Index(fields=["system", "length"], name="idx_code_words_length"),
        ]

    def __str__(self) -> str:
        return f"word {self.pk} of {self.system_id}"


class CodeVector(models.Model):
    """The vector of one text by one model of the optional embedder. PHI.

    Texts are terms of codes and names of entities. The row does not say which, names no record, and
    has no text. A vector still tells what its text is about.
    """

    id = models.BigAutoField(primary_key=True)
    model = models.TextField()
    digest = models.CharField(max_length=64)
    """SHA-256 of the text."""
    vector = HalfVectorField(dimensions=EMBEDDING_DIMENSIONS)
    created_at = fields.created_at()

    class Meta:
        verbose_name = "vector"
        verbose_name_plural = "vectors"
        db_table = "code_search_vectors"
        db_table_comment = "Vectors of texts by the digest of the text (optional embedder). PHI."
        constraints = [
            models.UniqueConstraint(fields=["model", "digest"], name="idx_code_vectors_text"),
        ]

    def __str__(self) -> str:
        return f"vector {self.pk} of {self.model}"
