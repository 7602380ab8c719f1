"""The version of the loaded code tables, as part of the key under which results are reused."""

from __future__ import annotations

from django.conf import settings

from pipeline.codes.search.embedder import NgramEmbedder
from pipeline.codes.search.index import REVISION
from pipeline.models import CodeSystem
from pipeline.models.code_index import EMBEDDING_DIMENSIONS


def code_table_version() -> str:
    """Return key, version and short digest of each loaded system, and the version of the search.

    Systems are in the order of their keys. Two databases with the same codes, search and embedder
    have the same version. Without any code system the version is "". Runs one statement.
    """
    rows = CodeSystem.objects.order_by("key").values_list("key", "version", "digest")
    systems = [f"{key} {version} {digest[:12]}" for key, version, digest in rows]
    return "; ".join([*systems, search_version()] if systems else [])


def search_version() -> str:
    """Return the revision of the index and the embedder: either can change a shortlist."""
    return f"search {REVISION} {embedder_name()}"


def embedder_name() -> str:
    """Return the name of the configured embedder, and its dimensions if a provider embeds."""
    if settings.CODE_EMBEDDER == "gemini":
        return f"{settings.CODE_EMBEDDING_MODEL}/{EMBEDDING_DIMENSIONS}"
    return NgramEmbedder.name
