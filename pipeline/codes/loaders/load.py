"""Load one code system: the new codes replace the old codes in one transaction.

Readers keep the old codes until the commit, so a refused or killed load changes nothing. Loads of
one system wait for each other. Memory is bounded by the size of a batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from django.db import connection, transaction

from pipeline.codes.loaders import packages, sources
from pipeline.codes.loaders.batches import Batches
from pipeline.codes.loaders.refusals import CodesError, CodesErrorCode
from pipeline.codes.loaders.rows import CodeSource
from pipeline.codes.search import index
from pipeline.models import CodeSystem
from pipeline.models.codes import SystemKey

_LOCK = int.from_bytes(b"code", "big") >> 1
"""First key of the advisory lock of a load; the second key is the position of the system."""
_ORPHAN = """
SELECT child.code, child.parent FROM codes AS child
WHERE child.system_id = %(system)s AND child.parent IS NOT NULL AND NOT EXISTS (
  SELECT FROM codes AS parent WHERE parent.system_id = %(system)s AND parent.code = child.parent
)
LIMIT 1
"""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The result of a load."""

    system: SystemKey
    version: str
    source: str
    licence: str
    codes: int
    terms: int
    is_changed: bool
    """False if the same content was loaded before, so that the load changed nothing."""


def load(system: str, path: Path | None = None) -> Loaded:
    """Load a system from its package or, with `path`, from the user's own file or folder.

    Raises CodesError if the source cannot be loaded; nothing is changed then.
    """
    return load_source(sources.source_of(system, path))


def own_file(system: str) -> str | None:
    """Return the source of a loaded system if the codes come from the user's own file."""
    stored = CodeSystem.objects.filter(key=system).values_list("source", flat=True).first()
    if stored is None or sources.is_packaged(sources.source_of(system), stored):
        return None
    return stored


def ensure_loaded(
    systems: Collection[SystemKey], *, before: Callable[[SystemKey], None] | None = None
) -> list[Loaded]:
    """Load each system that is missing, or that an older package or reader loaded.

    Calls `before` with each system before its load, which can take minutes.

    Codes from the user's own file stay, and so do codes of a package that is no longer installed.
    Every loaded system whose search index is missing or old gets a new index. Without anything to
    do, the function runs one statement. Raises CodesError.
    """
    rows = list(CodeSystem.objects.values_list("key", "source", "index_revision"))
    stored = {key: source for key, source, _ in rows}
    outdated = []
    for system in systems:
        source = sources.source_of(system)
        if _is_outdated(source, stored.get(system)):
            outdated.append(source)
    say = before or (lambda _: None)
    loaded = []
    for source in outdated:
        say(source.key)
        loaded.append(load_source(source))
    replaced = {each.system for each in loaded}
    for key, _, revision in rows:
        if revision != index.REVISION and key not in replaced:
            say(SystemKey(key))
            _refill(SystemKey(key))
    return loaded


def _refill(system: SystemKey) -> None:
    """Fill the index of a loaded system, unless another process has done so."""
    with transaction.atomic():
        _lock(system)
        row = CodeSystem.objects.filter(key=system).first()
        if row is not None and row.index_revision != index.REVISION:
            index.fill(system)


def _lock(system: SystemKey) -> None:
    with connection.cursor() as cursor:
        # Two loads of one system at once would both delete the old codes and then collide.
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, %s)", [_LOCK, list(SystemKey).index(system)]
        )


def _is_outdated(source: CodeSource, stored: str | None) -> bool:
    if stored is None:
        return True
    is_known = packages.UNKNOWN not in source.name and sources.is_packaged(source, stored)
    return is_known and stored != _name(source)


def load_source(source: CodeSource) -> Loaded:
    """Replace the codes of the source's system; do nothing if the same content is loaded."""
    digest = _digest(source)
    version, name = source.version(), _name(source)
    with transaction.atomic():
        _lock(source.key)
        present = CodeSystem.objects.filter(key=source.key).first()
        if present and (present.digest, present.version, present.source) == (digest, version, name):
            if present.index_revision != index.REVISION:
                index.fill(source.key)
            return _result(present, is_changed=False)
        with connection.cursor() as cursor:
            # The database deletes codes and terms with their system. The ORM would read them first.
            cursor.execute("DELETE FROM code_systems WHERE key = %s", [source.key])
        row = CodeSystem.objects.create(
            key=source.key, version=version, source=name, licence=source.licence, digest=digest
        )
        batches = Batches(source.key, has_second_displays=source.has_second_displays)
        for each in source.rows():
            batches.add(each)
        row.code_count, row.term_count = batches.finish()
        _refuse_incomplete(source, row)
        if _digest(source) != digest:
            raise CodesError(
                f"{source.name} changed during the load. Load the file again.",
                code=CodesErrorCode.CODES_FILE_CHANGED,
            )
        row.save(update_fields=["code_count", "term_count"])
        index.fill(source.key)
    return _result(row, is_changed=True)


def _refuse_incomplete(source: CodeSource, row: CodeSystem) -> None:
    if not row.code_count:
        raise CodesError(f"{source.name} holds no code.", code=CodesErrorCode.CODES_EMPTY)
    with connection.cursor() as cursor:
        cursor.execute(_ORPHAN, {"system": source.key})
        orphan = cursor.fetchone()
    if orphan is not None:
        raise CodesError(
            f"{source.name}: the parent {orphan[1]} of code {orphan[0]} is missing.",
            code=CodesErrorCode.CODES_ROW,
        )


def _name(source: CodeSource) -> str:
    return f"{source.name}, reader {source.revision}"


def _digest(source: CodeSource) -> str:
    """Return the digest of the codes: the source's bytes and the reader determine the codes."""
    return hashlib.sha256(f"{source.revision}:{source.digest()}".encode()).hexdigest()


def _result(row: CodeSystem, *, is_changed: bool) -> Loaded:
    return Loaded(
        system=SystemKey(row.key),
        version=row.version,
        source=row.source,
        licence=row.licence,
        codes=row.code_count,
        terms=row.term_count,
        is_changed=is_changed,
    )
