"""A record that does not fit on the disk is refused, and leaves nothing behind."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from pipeline.core.errors import ErrorCode, PipelineError
from pipeline.models import Job, ShellFile
from tests.support import records
from tests.support.short_records import short_record

ROOM = 512
"""The maximum size of a file, in bytes; the record is larger."""


@contextmanager
def no_room() -> Iterator[None]:
    """Stop this process from writing to any file, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def stored() -> set[Path]:
    return set((Path(settings.MEDPROC_DATA_DIR) / "files").rglob("*"))


@pytest.mark.django_db
def test_a_record_for_which_the_disk_has_no_room_leaves_nothing_and_is_taken_afterwards(
    tmp_path: Path,
) -> None:
    record = short_record(tmp_path / "record.pdf", 2)
    (Path(settings.MEDPROC_DATA_DIR) / "files" / "records").mkdir(parents=True, exist_ok=True)
    before = stored()

    with no_room(), pytest.raises(PipelineError) as refused:
        records.submit(record)

    assert refused.value.code is ErrorCode.STORAGE_FULL
    assert stored() == before
    assert not ShellFile.objects.exists()
    received = records.submit(record)
    assert Job.objects.get(id=received.job_id).status == "pending"
