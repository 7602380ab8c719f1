"""The reader's child process; one process serves one request about one file.

Started as `python -m pipeline.documents.reader.child`. The child reads one JSON request from
standard input and writes the messages of `ipc.py`. It limits its own memory and time, and isolates
itself, before it opens the file. It dies with its parent.
"""

from __future__ import annotations

import base64
import ctypes
import gc
import io
import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import ipc, isolation, refusals
from .file_type import sniff, unsupported
from .model_phrases import with_addresses
from .types import TEXT_TYPES, InputRefused, MediaType, PageRead, ReaderLimits

_GC_ALLOCATIONS = 10_000
"""New objects between two runs of the garbage collector: a page holds many objects, few cycles."""
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Answer the request on standard input, then exit."""
    gc.set_threshold(_GC_ALLOCATIONS)
    request = json.loads(sys.stdin.buffer.readline())
    limits = ReaderLimits(**request["limits"])
    out = _private_output()
    _die_with_parent(int(request["parent"]))
    _bound(limits)
    try:
        for kind, body in _answers(request, limits):
            _write(out, ipc.encode(kind, body))
    except InputRefused as refusal:
        _write(out, ipc.encode("refused", ipc.pack_refusal(refusal)))
    except MemoryError:
        too_much = refusals.too_much_memory(0, limits.memory_bytes)
        _write(out, ipc.encode("refused", ipc.pack_refusal(too_much)))
    except Exception as error:  # noqa: BLE001 - our own fault; its message could quote the input
        _write(out, ipc.encode("fault", type(error).__name__))
    # Exit without clean-up: native libraries crash while they tear down a half-read hostile
    # document.
    os._exit(0)


def _answers(request: Mapping[str, Any], limits: ReaderLimits) -> Any:
    path = Path(request["path"])
    _allow_seconds(limits.seconds_to_open)
    file, media_type = _open(path, limits)
    yield "opened", {"media_type": media_type, "page_count": file.page_count}
    if request["verb"] == "read":
        from .ocr import Ocr

        ocr = Ocr(limits.dpi)
        for number in range(request["first"], min(request["last"], file.page_count) + 1):
            _allow_seconds(limits.seconds_per_page)
            yield "page", ipc.pack_page(_read(file, number, ocr, limits))
    if request["verb"] == "render":
        _allow_seconds(limits.seconds_per_page)
        yield "png", _render(file, request["first"], request["dpi"], limits)
    if request["verb"] == "slice":
        for numbers in _portions(request["pages"], file.page_count, media_type):
            _allow_seconds(limits.seconds_per_page)
            yield "slice", _slice(file, path, numbers, media_type)
    yield "done", None


def _portions(pages: list[int], count: int, media_type: MediaType) -> list[list[int]]:
    """Group the pages that one slice holds: all pages of a PDF, or each page of an image file."""
    for number in pages:
        if not 1 <= number <= count:
            raise refusals.page_missing(number, count)
    return [pages] if media_type is MediaType.PDF else [[number] for number in pages]


def _slice(file: Any, path: Path, numbers: list[int], media_type: MediaType) -> list[str]:
    from .page_slices import image_slice, pdf_slice

    try:
        if media_type is MediaType.PDF:
            kind, content = MediaType.PDF, pdf_slice(file, path, numbers)
        else:
            kind, content = MediaType.JPEG, image_slice(file, numbers[0])
    except InputRefused:
        raise
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a hostile page raises anything
        raise refusals.page_damaged(numbers[0]) from None
    return [kind.value, base64.b64encode(content).decode()]


def _open(path: Path, limits: ReaderLimits) -> tuple[Any, MediaType]:
    size = path.stat().st_size
    if size == 0:
        raise refusals.empty()
    if size > limits.max_bytes:
        raise refusals.too_many_bytes(size, limits.max_bytes)
    media_type = sniff(path)
    if media_type is None:
        raise unsupported(path)
    if media_type is MediaType.PDF:
        from .pdf import PdfFile

        _isolate(path)
        return PdfFile(path, limits), media_type
    if media_type in TEXT_TYPES:
        from .texts.text_file import TypedDocument

        _isolate(path)
        return TypedDocument(path, media_type, limits), media_type
    from .images import ImageFileReader

    _isolate(path)
    return ImageFileReader(path, media_type, limits), media_type


def _read(file: Any, number: int, ocr: Any, limits: ReaderLimits) -> PageRead:
    """Return one page. An unreadable page reports its damage and does not stop the other pages."""
    from .ocr import OcrUnavailableError

    try:
        page: PageRead = with_addresses(file.read(number, ocr))
    except (InputRefused, OcrUnavailableError, ImportError):
        raise
    except MemoryError:
        raise refusals.too_much_memory(number, limits.memory_bytes) from None
    except Exception as error:  # noqa: BLE001 - a hostile page raises anything; its name is no PHI
        return PageRead(
            number=number,
            text="",
            source="damaged",
            width=0,
            height=0,
            damage=f"The page cannot be decoded ({type(error).__name__}).",
        )
    return page


def _render(file: Any, number: int, dpi: int, limits: ReaderLimits) -> str:
    if not 1 <= number <= file.page_count:
        raise refusals.page_missing(number, file.page_count)
    buffer = io.BytesIO()
    try:
        file.render(number, dpi).save(buffer, "PNG", compress_level=3)
    except InputRefused:
        raise
    except MemoryError:
        raise refusals.too_much_memory(number, limits.memory_bytes) from None
    except Exception:  # noqa: BLE001 - a hostile page raises anything
        raise refusals.page_damaged(number) from None
    return base64.b64encode(buffer.getvalue()).decode()


def _private_output() -> int:
    """Return the descriptor to the parent, and redirect 1 and 2: native libraries print to them."""
    out = os.dup(1)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    os.close(silent)
    return out


def _write(out: int, message: bytes) -> None:
    view = memoryview(message)
    while view:
        view = view[os.write(out, view) :]


def _die_with_parent(parent: int) -> None:
    """Ask for SIGKILL when the parent dies; exit at once if the parent is already dead."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _bound(limits: ReaderLimits) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump is a copy of the patient's pages
    with suppress(ValueError, OSError):  # macOS refuses a limit on address space
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))


def _isolate(path: Path) -> None:
    """Forbid this process network, other processes, and every file but `path`.

    Imports before this call may write bytecode.
    """
    parent = os.getppid()
    isolation.enter(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    # A change of the user clears the request to die with the parent.
    _die_with_parent(parent)


def _allow_seconds(seconds: float) -> None:
    """Let SIGXCPU end this process after `seconds` more of processor time."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    allowed = int(usage.ru_utime + usage.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, hard))


if __name__ == "__main__":
    main()
