"""The real child process reads hostile files: each ends with its error, and harms nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from pipeline.documents.reader import (
    HIDDEN_TEXT,
    REPAIRED,
    InputRefused,
    MediaType,
    PageRead,
    ReaderError,
    ReaderLimits,
    probe,
    read_pages,
    watchdog,
)
from tests.support import hostile_files

#: A bomb must exceed any limit; a small limit keeps the tests short.
LIMITS = ReaderLimits(seconds_per_page=8.0)


def write(folder: Path, content: bytes, name: str = "record") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def read(path: Path, limits: ReaderLimits = LIMITS) -> list[PageRead]:
    return list(read_pages(path, 1, 50, limits))


def children() -> list[str]:
    """Return the ids of the living reader processes that this process started."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    found = [pid for task in tasks.iterdir() for pid in (task / "children").read_text().split()]
    return [pid for pid in found if b"pipeline.documents.reader.child" in command_line(pid)]


def command_line(pid: str) -> bytes:
    """Return the command line of a process, or nothing for an ended process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@pytest.mark.parametrize("case", hostile_files.HOSTILE, ids=lambda case: case.name)
def test_a_hostile_file_ends_as_named(tmp_path: Path, case: hostile_files.Hostile) -> None:
    path = write(tmp_path, case.build(), case.name)

    if case.ends == "read":
        assert read(path)
    else:
        with pytest.raises(InputRefused) as refused:
            read(path)
        assert refused.value.code == case.ends
        assert case.name not in str(refused.value)
    assert not children()


def test_the_worker_reads_on_after_a_bomb(tmp_path: Path) -> None:
    bomb = next(case for case in hostile_files.HOSTILE if case.name == "form_bomb.pdf")
    with pytest.raises(InputRefused):
        read(write(tmp_path, bomb.build(), "bomb"))

    (page,) = read(write(tmp_path, hostile_files.note_pdf()))

    assert page.text.startswith(hostile_files.NOTE[0])


@pytest.mark.parametrize("how", ["white", "off", "under", "mode", "tiny"])
def test_text_that_paper_would_not_show_is_left_out_and_flagged(tmp_path: Path, how: str) -> None:
    (page,) = read(write(tmp_path, hostile_files.hidden_text(how)))

    assert page.text == "\n".join(hostile_files.NOTE)
    assert page.warnings == (HIDDEN_TEXT,)


def test_a_damaged_page_leaves_its_neighbours_readable(tmp_path: Path) -> None:
    pages = read(write(tmp_path, hostile_files.one_damaged_page()))

    assert [page.source for page in pages] == ["text_layer", "damaged", "text_layer"]
    assert pages[1].damage is not None
    assert not pages[1].is_blank


def test_a_page_whose_content_is_cut_off_is_damaged_and_never_blank(tmp_path: Path) -> None:
    pages = read(write(tmp_path, hostile_files.truncated_pdf(10, 0.65)))

    assert [page.number for page in pages] == list(range(1, 11))
    assert {page.source for page in pages} == {"text_layer", "damaged"}
    assert all(REPAIRED in page.warnings for page in pages if page.damage is None)


def test_the_lost_rest_of_a_tiff_is_a_damaged_page(tmp_path: Path) -> None:
    truncated = next(case for case in hostile_files.HOSTILE if case.name == "truncated.tiff")

    pages = read(write(tmp_path, truncated.build()))

    assert pages[0].source == "ocr"
    assert pages[-1].damage is not None


def test_a_blank_page_is_known_as_blank(tmp_path: Path) -> None:
    blank = next(case for case in hostile_files.HOSTILE if case.name == "blank.pdf")

    (page,) = read(write(tmp_path, blank.build()))

    assert (page.source, page.is_blank, page.text) == ("blank", True, "")


def test_a_page_count_above_the_cap_is_refused_before_any_page_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, hostile_files.note_pdf(4))

    with pytest.raises(InputRefused, match="4 pages; the limit is 3"):
        probe(path, ReaderLimits(max_pages=3))


def test_a_file_above_the_byte_limit_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, hostile_files.note_pdf())

    with pytest.raises(InputRefused) as refused:
        probe(path, ReaderLimits(max_bytes=10))
    assert refused.value.code == "INPUT_TOO_LARGE"


def test_a_lying_page_count_is_counted(tmp_path: Path) -> None:
    lies = next(case for case in hostile_files.HOSTILE if case.name == "count_lies.pdf")

    found = probe(write(tmp_path, lies.build()), LIMITS)

    assert (found.media_type, found.page_count) == (MediaType.PDF, 1)


def test_an_abandoned_iterator_leaves_no_child(tmp_path: Path) -> None:
    pages = read_pages(write(tmp_path, hostile_files.note_pdf(5)), 1, 5, LIMITS)
    next(pages)

    pages.close()  # type: ignore[attr-defined]

    assert not children()


def test_a_child_killed_from_outside_is_replaced_once_and_no_page_is_lost(tmp_path: Path) -> None:
    pages = read_pages(write(tmp_path, hostile_files.note_pdf(400)), 1, 400, LIMITS)
    numbers = [next(pages).number]

    os.kill(int(children()[0]), signal.SIGKILL)
    numbers += [page.number for page in pages]

    assert numbers == list(range(1, 401))


def test_a_child_that_hangs_is_killed_at_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "_PATIENCE", 1)
    path = write(tmp_path, hostile_files.note_pdf(2000))
    pages = read_pages(path, 1, 2000, ReaderLimits(seconds_per_page=2.0))
    next(pages)

    os.kill(int(children()[0]), signal.SIGSTOP)
    with pytest.raises(InputRefused, match="takes more than 2 s") as refused:
        list(pages)

    assert refused.value.code == "INPUT_TOO_LARGE"
    assert not children()


def test_a_child_that_a_crowded_host_starves_is_given_more_time(tmp_path: Path) -> None:
    pages = read_pages(
        write(tmp_path, hostile_files.note_pdf(400)), 1, 400, ReaderLimits(seconds_per_page=1.0)
    )
    numbers = [next(pages).number]
    child = int(children()[0])

    os.kill(child, signal.SIGSTOP)
    wake = threading.Timer(1.5, os.kill, (child, signal.SIGCONT))
    wake.start()
    numbers += [page.number for page in pages]

    wake.join()
    assert numbers == list(range(1, 401))


def test_a_missing_file_is_our_fault_and_not_the_records(tmp_path: Path) -> None:
    with pytest.raises(ReaderError) as fault:
        probe(tmp_path / "WHITE_Brian.pdf")

    assert "WHITE" not in str(fault.value)


def test_the_child_gets_no_key_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "secret-of-the-worker")
    pages = read_pages(write(tmp_path, hostile_files.note_pdf(400)), 1, 400, LIMITS)
    next(pages)

    environment = Path(f"/proc/{children()[0]}/environ").read_bytes()

    pages.close()  # type: ignore[attr-defined]
    assert environment
    assert b"secret-of-the-worker" not in environment


def test_the_child_dies_with_its_parent(tmp_path: Path) -> None:
    path = write(tmp_path, hostile_files.note_pdf(2000))
    script = textwrap.dedent(
        """
        import sys, os
        from pathlib import Path
        from pipeline.documents.reader import read_pages
        pages = read_pages(sys.argv[1], 1, 2000)
        next(pages)
        print(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text(), flush=True)
        sys.stdin.read()
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as parent:
        assert parent.stdout is not None
        child = Path(f"/proc/{int(parent.stdout.readline())}")

        parent.kill()

    deadline = time.monotonic() + 60
    while _runs(child):
        assert time.monotonic() < deadline
        os.sched_yield()


def _runs(process: Path) -> bool:
    """Return whether the process runs, and is neither gone nor a zombie."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
