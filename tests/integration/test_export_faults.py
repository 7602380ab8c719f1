"""A kill or a full disk at any step of an export leaves the old export complete.

The child is a real process that dies by SIGKILL. The full disk is a limit of the kernel
(RLIMIT_FSIZE), and an error of the operating system at each of its calls.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from arro3.io import read_parquet

from pipeline.core.errors import ErrorCode, PipelineError
from pipeline.exports.files.publish import MANIFEST, Pair, Publication, SingleFile, publish
from pipeline.exports.files.targets import target_of
from pipeline.exports.formats import TEXT_FORMATS, Format
from pipeline.exports.rows import EntityRow
from tests.support.export_rows import RECORD, MemorySource, a_record, an_entity

CALLS = ("open", "fsync", "replace", "unlink")
"""The calls of `os` that change a folder or its files; each is a step."""
ROWS = 5
MOST_STEPS = 80
OLD = UUID(int=100)
FULL, HEEDLESS = 28, 3
"""Exit codes: the disk is full; the export succeeded in spite of the fault."""


class StepSource(MemorySource):
    """A source that takes a step with each row."""

    step: Callable[[], None] = staticmethod(lambda: None)

    def entities(self) -> Iterator[EntityRow]:
        """Yield the entities, with a step before each."""
        for each in super().entities():
            self.step()
            yield each


def export(form: Format, folder: Path, generation: UUID, step: Callable[[], None]) -> None:
    record = a_record(generation=generation)
    source = StepSource(record, [an_entity(n) for n in range(ROWS)])
    source.step = step
    suffix = TEXT_FORMATS[form].suffix if form in TEXT_FORMATS else MANIFEST
    target = target_of(folder, record.id, suffix, is_pair=form is Format.PAIR)
    publication: Publication = (
        SingleFile(target, TEXT_FORMATS[form]) if form in TEXT_FORMATS else Pair(target)
    )
    publish(publication, record.id, generation, nullcontext(source), lambda _record, _size: step())


def generation_of(form: Format, folder: Path) -> UUID:
    """Return the generation of the export in the folder, which must be whole and of one piece."""
    if form is not Format.PAIR:
        path = folder / f"{RECORD.id}{TEXT_FORMATS[form].suffix}"
        text = path.read_bytes().decode("utf-8")
        assert text.endswith(("]}\n", "</html>\n", "\r\n"))
        (found,) = {each for each in (OLD, *_NEW) if str(each) in text}
        return found
    manifest = json.loads((folder / f"{RECORD.id}{MANIFEST}").read_text("utf-8"))
    text = json.loads((folder / manifest["json"]).read_text("utf-8"))
    table = read_parquet(folder / manifest["parquet"]).read_all()
    assert len(text["entities"]) == table.num_rows == ROWS
    assert {manifest["generation"]} == {text["generation"], *table["generation"].to_pylist()}
    return UUID(manifest["generation"])


_NEW: list[UUID] = []


def in_child(work: Callable[[], None]) -> int:
    """Run work in a forked child; return its wait status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # The child only exports.
        child = os.fork()
    if child == 0:
        try:
            work()
        except PipelineError as error:
            os._exit(FULL if error.code is ErrorCode.STORAGE_FULL else 2)
        except BaseException:  # noqa: BLE001 - a child must never return into the suite
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


class PlannedFault:
    """Does something at the n-th step of this process, which counts the calls of `os` too."""

    def __init__(self, at: int, fault: Callable[[], None]) -> None:
        self._left, self._fault = at, fault
        for name in CALLS:
            setattr(os, name, self._counted(getattr(os, name)))

    def __call__(self) -> None:
        """Take a step."""
        self._left -= 1
        if self._left == 0:
            self._fault()

    @property
    def has_happened(self) -> bool:
        """Whether the step was reached."""
        return self._left <= 0

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            self()
            return call(*args, **options)

        return counted


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def no_room() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(params=[Format.PAIR, Format.CSV, Format.FHIR])
def form(request: pytest.FixtureRequest) -> Format:
    found: Format = request.param
    return found


@pytest.fixture
def folder(form: Format, tmp_path: Path) -> Path:
    """Return a folder with an old export."""
    export(form, tmp_path, OLD, lambda: None)
    return tmp_path


@pytest.mark.parametrize("fault", [die, no_room])
def test_a_fault_at_any_step_leaves_a_whole_export_and_the_next_tidies_up(
    form: Format, folder: Path, fault: Callable[[], None]
) -> None:
    ended: list[int] = []
    visible: list[bool] = []
    before = OLD
    while not ended or ended[-1] != 0:
        new = uuid4()
        _NEW.append(new)

        status = in_child(_export_with_fault(form, folder, new, len(ended) + 1, fault))

        now = generation_of(form, folder)
        assert now in (before, new)
        ended.append(status)
        visible.append(now == new)
        before = now
        assert len(ended) < MOST_STEPS
    export(form, folder, OLD, lambda: None)
    files = sorted(path.name for path in folder.iterdir())
    assert len(files) == (3 if form is Format.PAIR else 1), files
    # A file that cannot be deleted is left to the next export.
    expected = {signal.SIGKILL} if fault is die else {FULL << 8, HEEDLESS << 8}
    assert set(ended[:-1]) <= expected
    # All rows and most calls come before the export is visible.
    assert not any(visible[: ROWS + 3])
    assert len(ended) > ROWS + 5


def _export_with_fault(
    form: Format, folder: Path, new: UUID, at: int, fault: Callable[[], None]
) -> Callable[[], None]:
    def work() -> None:
        planned = PlannedFault(at, fault)
        export(form, folder, new, planned)
        if planned.has_happened:
            os._exit(HEEDLESS)

    return work


@pytest.mark.parametrize("most", [0, 1, 200, 3_000, 9_000])
def test_a_full_disk_is_named_and_leaves_the_old_export(
    form: Format, folder: Path, most: int
) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        export(form, folder, uuid4(), lambda: None)

    files = sorted(folder.iterdir())
    sizes = max(path.stat().st_size for path in files)
    status = in_child(limited)

    if sizes > most:
        assert os.waitstatus_to_exitcode(status) == FULL
        assert generation_of(form, folder) == OLD
        assert sorted(folder.iterdir()) == files


def test_a_failing_audit_makes_nothing_visible(form: Format, folder: Path) -> None:
    files = sorted(folder.iterdir())

    def refuse() -> None:
        raise ConnectionError

    def last(counted: list[int] = [0]) -> None:  # noqa: B006 - the count of this test
        counted[0] += 1
        if counted[0] > steps:
            refuse()

    steps = {Format.PAIR: 2 * ROWS, Format.FHIR: 2 * ROWS}.get(form, ROWS)
    with pytest.raises(ConnectionError):
        export(form, folder, uuid4(), last)

    assert generation_of(form, folder) == OLD
    assert sorted(folder.iterdir()) == files


def test_a_living_export_keeps_its_drafts_from_another(form: Format, folder: Path) -> None:
    other = uuid4()
    _NEW.append(other)
    started: list[bool] = []

    def export_another() -> None:
        if not started:
            started.append(True)
            export(form, folder, other, lambda: None)

    new = uuid4()
    _NEW.append(new)
    export(form, folder, new, export_another)

    assert generation_of(form, folder) == new
    assert len(list(folder.iterdir())) == (3 if form is Format.PAIR else 1)
