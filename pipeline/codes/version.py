"""The version of the loaded code tables, as part of the key under which results are reused."""

from __future__ import annotations

from pipeline.models import CodeSystem


def code_table_version() -> str:
    """Return key, version and short digest of each loaded system in the order of the keys.

    Two databases with the same codes have the same version. Without any code system the version is
    "". Runs one statement.
    """
    rows = CodeSystem.objects.order_by("key").values_list("key", "version", "digest")
    return "; ".join(f"{key} {version} {digest[:12]}" for key, version, digest in rows)
