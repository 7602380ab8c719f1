"""A file is on the disk, with its name, before the transaction that names it begins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.db import connection

from pipeline.models import ShellFile
from tests.support import records
from tests.support.short_records import short_record


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_the_bytes_and_the_name_of_a_file_are_forced_to_the_disk_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[tuple[str, bool]] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        fsync(descriptor)
        forced.append(
            (str(Path(f"/proc/self/fd/{descriptor}").readlink()), connection.in_atomic_block)
        )

    monkeypatch.setattr(os, "fsync", watched)
    records.submit(short_record(tmp_path / "a.pdf", 1))

    stored = Path(default_storage.path(ShellFile.objects.get().storage_key)).resolve()
    assert forced == [(str(stored), False), (str(stored.parent), False)]
