"""The pages of an earlier record with the same bytes: copied, not read again.

The copy is one fenced transaction, so a record has all pages of its source or none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from uuid import UUID

from django.conf import settings
from django.db import connection

from pipeline.core.states import Step
from pipeline.execution.reuse.conditions import conditions_of
from pipeline.models import Job, Page, Reuse, ShellFile
from pipeline.transitions import Lease, fenced

# The newest complete reading. KEY SHARE keeps the source until the commit; a source that is being
# deleted is skipped.
_SOURCE = """
SELECT s.id, s.page_count
FROM shell_files f
JOIN processed_documents p ON p.document_hash = f.sha256 AND p.owner = f.owner
  AND p.step = 'pages' AND p.engine = %(engine)s AND p.model_version = %(model_version)s
JOIN shell_files s ON s.id = p.shell_file_id AND s.page_count = s.pages_read
WHERE f.id = %(shell_file)s AND f.owner <> '' AND NOT f.forced AND f.pages_read = 0
  AND s.id <> f.id AND s.page_count BETWEEN 1 AND %(most)s
ORDER BY p.created_at DESC, s.id LIMIT 1 FOR KEY SHARE OF s SKIP LOCKED
"""


class _CutShortError(Exception):
    """The source has fewer pages than its record says: the copy is rolled back."""


def copy_pages(lease: Lease, size_class: Callable[[int], int]) -> bool:
    """Give a record the pages of an earlier record; return whether there was such a record."""
    try:
        with fenced(lease):
            return _copy(lease, size_class)
    except _CutShortError:
        return False


def _copy(lease: Lease, size_class: Callable[[int], int]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            _SOURCE,
            {
                **conditions_of(Step.PAGES).as_columns(),
                "shell_file": lease.shell_file_id,
                "most": settings.MAX_PAGES,
            },
        )
        row = cursor.fetchone()
        if row is None:
            return False
        source: UUID = row[0]
        count: int = row[1]
        cursor.execute(_insert(), {"shell_file": lease.shell_file_id, "source": source})
        if cursor.rowcount != count:
            raise _CutShortError
    ShellFile.objects.filter(id=lease.shell_file_id).update(page_count=count, pages_read=count)
    Job.objects.filter(id=lease.job_id).update(size_class=size_class(count))
    Reuse.objects.create(
        shell_file_id=lease.shell_file_id, step=Step.PAGES, source_id=source, items=count
    )
    return True


@cache
def _insert() -> str:
    options = Page._meta
    kept = ("id", "shell_file_id", "created_at")
    names = ", ".join(
        str(f.column)
        for f in options.local_concrete_fields
        if f.column not in kept and not f.generated
    )
    return (
        f"INSERT INTO {options.db_table} (shell_file_id, {names})"  # noqa: S608 - names come from the model, values are parameters
        f" SELECT %(shell_file)s, {names} FROM {options.db_table}"
        " WHERE shell_file_id = %(source)s"
    )
