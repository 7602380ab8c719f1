"""The sweep of stored files: bytes that no record names are counted, and deleted after a safe age.

A submission stores its bytes before it commits its row, so a killed submission leaves bytes. A
marker beside the files names the last sweep. A database that does not know the marker is older than
the files (a restored backup, or another database), and the sweep then deletes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TypeVar
from uuid import UUID

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone

from pipeline.core.labels import counted
from pipeline.documents import storage
from pipeline.models import FileSweep, ShellFile
from pipeline.operations.database_identity import database_identity

SAFE_AGE_S = 24 * 3600.0
"""Age in seconds at which a file without a row is an orphan; backups may be newer than a dump."""
KEPT = timedelta(days=30)
"""How long the rows of old sweeps are kept."""
MANY, SHARE = 20, 0.5
"""More orphans than both: the number, and the share of all files, look like a wrong database."""
_MARKERS = "sweep-markers"
_PORTION = 1_000
_LOCK = int.from_bytes(b"sweep", "big")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """Stored bytes that no record names."""

    key: str
    size_bytes: int
    age_s: float


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The stored files beside the rows of records."""

    files: int
    orphans: tuple[StoredFile, ...]
    """Files without a row that are older than the safe age."""
    young: tuple[StoredFile, ...]
    """Files without a row that are younger: a submission may be about to commit its row."""
    missing: tuple[UUID, ...]
    """Records whose file does not exist."""
    held: str | None
    """The reason for which nothing may be deleted."""


def survey(older_s: float = SAFE_AGE_S) -> Survey:
    """Compare the stored files with the rows; change nothing."""
    keys = _stored_keys()
    unnamed = list(_described(_unnamed(keys)))
    orphans = tuple(file for file in unnamed if file.age_s >= older_s)
    return Survey(
        files=len(keys),
        orphans=orphans,
        young=tuple(file for file in unnamed if file.age_s < older_s),
        missing=tuple(_missing(keys)),
        held=_why_held(len(keys), len(orphans)),
    )


def sweep(
    older_s: float = SAFE_AGE_S,
    *,
    after_restore: bool = False,
    announce: Callable[[Survey], None] | None = None,
) -> tuple[Survey, FileSweep]:
    """Delete the orphans unless the sweep is held; return what was found, and the sweep's row.

    With `after_restore`, an operator states that the orphans may be deleted. `announce` is called
    before the first deletion.
    """
    found = survey(older_s)
    storage.abort_unfinished(older_s)
    held = None if after_restore else found.held
    gone: list[StoredFile] = []
    if held is None and found.orphans:
        if announce is not None:
            announce(found)
        gone = list(_deleted(found.orphans))
    row = FileSweep.objects.create(
        files=found.files,
        orphaned_files=len(found.orphans),
        orphaned_bytes=_bytes(found.orphans),
        young_files=len(found.young),
        young_bytes=_bytes(found.young),
        deleted_files=len(gone),
        deleted_bytes=_bytes(gone),
        missing_files=len(found.missing),
        held=held,
    )
    if held is None:
        _mark(row)
    FileSweep.objects.filter(created_at__lt=timezone.now() - KEPT).exclude(id=row.id).delete()
    return found, row


def last_sweep() -> FileSweep | None:
    """Return the row of the newest sweep."""
    return FileSweep.objects.order_by("-created_at").first()


def problems(last: FileSweep | None) -> list[str]:
    """Return the problems of the stored files at the last sweep, in sentences."""
    found = []
    if last is not None and last.held:
        found.append(f"stored files: {last.held}")
    if last is not None and last.missing_files:
        verb = "has" if last.missing_files == 1 else "have"
        found.append(
            f"stored files: {counted(last.missing_files, 'record')} {verb} no file;"
            " manage.py sweep_files --dry-run lists these records"
        )
    return found


def _portions(items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    """Yield the items in portions that a statement can take."""
    rest = iter(items)
    while portion := tuple(islice(rest, _PORTION)):
        yield portion


def _bytes(files: Iterable[StoredFile]) -> int:
    return sum(file.size_bytes for file in files)


def _stored_keys() -> set[str]:
    """Return the names of the stored files that medproc has made; other files stay untouched."""
    return {f"{storage.FOLDER}/{name}" for name in _names(storage.FOLDER) if _is_ours(name)}


def _names(folder: str) -> list[str]:
    try:
        return default_storage.listdir(folder)[1]
    except FileNotFoundError:
        return []


def _is_ours(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


def _unnamed(keys: Iterable[str]) -> Iterator[str]:
    """Yield the keys that no row names. The files were listed first, so a new row is seen."""
    for portion in _portions(keys):
        named = ShellFile.objects.filter(storage_key__in=portion)
        yield from set(portion) - set(named.values_list("storage_key", flat=True))


def _described(keys: Iterable[str]) -> Iterator[StoredFile]:
    now = datetime.now(UTC)
    for key in keys:
        try:
            size, age = default_storage.size(key), now - _newest_time(key)
        except FileNotFoundError:
            continue  # The submission was refused, and has deleted its bytes.
        yield StoredFile(key=key, size_bytes=size, age_s=max(0.0, age.total_seconds()))


def _newest_time(key: str) -> datetime:
    """Return the time of the last write, or of the copy: `cp -a` keeps only the former."""
    modified = default_storage.get_modified_time(key)
    try:
        return max(modified, default_storage.get_created_time(key))
    except NotImplementedError:
        return modified


def _missing(keys: set[str]) -> Iterator[UUID]:
    rows = ShellFile.objects.values_list("id", "storage_key")
    for record_id, key in rows.iterator(chunk_size=10_000):
        # A record that was submitted after the listing has a file that the listing lacks.
        if key not in keys and not default_storage.exists(key):
            yield record_id


def _deleted(files: Iterable[StoredFile]) -> Iterator[StoredFile]:
    """Delete files that no submission has claimed and no row names; yield the deleted files."""
    for portion in _portions(files):
        with transaction.atomic():
            free = set(storage.lock_unclaimed([file.key for file in portion]))
            named = ShellFile.objects.filter(storage_key__in=free)
            free -= set(named.values_list("storage_key", flat=True))
            for file in portion:
                if file.key in free:
                    storage.discard(file.key)
                    if not default_storage.exists(file.key):
                        yield file


def _why_held(files: int, orphans: int) -> str | None:
    markers = _names(_MARKERS)
    ids = [UUID(name) for name in markers if _is_ours(name)]
    if markers and not FileSweep.objects.filter(id__in=ids).exists():
        return (
            "the database does not know the last sweep of these files. Was a backup restored, or is"
            " this another database? See `manage.py sweep_files --after-restore`"
        )
    if ids and _identity() not in {_content(name) for name in markers}:
        return (
            "the database was restored, copied or promoted since the last sweep."
            " See `manage.py sweep_files --after-restore`"
        )
    if orphans > MANY and orphans > SHARE * files:
        return (
            f"{orphans} of {files} files have no record. Is this the right database?"
            " See `manage.py sweep_files --after-restore`"
        )
    return None


def _mark(sweep_row: FileSweep) -> None:
    """Write the marker of this sweep beside the files, then delete the older markers."""
    with transaction.atomic(), connection.cursor() as cursor:
        # Two sweeps at once must not delete each other's marker.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        older = _names(_MARKERS)
        name = f"{_MARKERS}/{sweep_row.id}"
        default_storage.save(name, ContentFile(_identity().encode()))
        for marker in older:
            default_storage.delete(f"{_MARKERS}/{marker}")


def _content(marker: str) -> str:
    try:
        with default_storage.open(f"{_MARKERS}/{marker}") as file:
            return bytes(file.read()).decode()
    except FileNotFoundError:
        return ""


def _identity() -> str:
    """Return what changes if the database is restored, copied, or promoted from a standby."""
    return "/".join(map(str, database_identity()))
