"""Cut pages out of a file: a PDF for a PDF's pages, JPEGs for images. Runs in the child only.

A slice contains nothing of another page: no shared resource, form field, link, thumbnail, structure
or metadata refers to the rest of the file.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pikepdf

from . import refusals

#: Bytes of the largest slice; base64 makes a slice a third longer in transit.
MAX_SLICE_BYTES = 64 * 1024 * 1024
#: Resolution of image files, and of PDF pages that pikepdf cannot extract.
DPI = 200
QUALITY = 90
_PAGE_KEYS = {
    "/Type",
    "/Contents",
    "/Resources",
    "/MediaBox",
    "/CropBox",
    "/Rotate",
    "/UserUnit",
    "/Group",
    "/Annots",
}
_ANNOTATION_KEYS = {"/Type", "/Subtype", "/Rect", "/AP", "/AS", "/F"}
_NOT_SHOWN = {"/Link", "/Popup", "/FileAttachment", "/Screen", "/Movie", "/Sound", "/RichMedia"}


def pdf_slice(file: Any, path: Path, numbers: Sequence[int]) -> bytes:
    """Return a PDF of these pages (1-based), in this order.

    If pikepdf cannot take the file apart, PDFium draws the pages as images instead.
    """
    try:
        content = _cut(path, numbers, file.page_count)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a hostile file raises anything
        content = _drawn(file, numbers)
    return _checked(content)


def image_slice(file: Any, number: int) -> bytes:
    """Return page `number` (1-based) of an image file as JPEG, upright, without its metadata."""
    buffer = io.BytesIO()
    file.render(number, DPI).save(buffer, "JPEG", quality=QUALITY, subsampling=0)
    return _checked(buffer.getvalue())


def _checked(content: bytes) -> bytes:
    if len(content) > MAX_SLICE_BYTES:
        raise refusals.too_many_bytes(len(content), MAX_SLICE_BYTES)
    return content


def _cut(path: Path, numbers: Sequence[int], count: int) -> bytes:
    with pikepdf.open(path) as source, pikepdf.new() as cut:
        if len(source.pages) != count:
            # PDFium and pikepdf disagree on the pages. The record knows only PDFium's page numbers.
            raise ValueError
        for number in numbers:
            page = source.pages[number - 1]
            _strip(page.obj)
            cut.pages.append(page)
        layers = source.Root.get("/OCProperties")
        if layers is not None:
            # Without the layer settings, layers that are switched off would show.
            cut.Root["/OCProperties"] = cut.copy_foreign(source.make_indirect(layers))
        cut.remove_unreferenced_resources()
        buffer = io.BytesIO()
        cut.save(
            buffer,
            deterministic_id=True,
            object_stream_mode=pikepdf.ObjectStreamMode.generate,
        )
    return buffer.getvalue()


def _strip(page: pikepdf.Object) -> None:
    """Remove everything from a page that is invisible or refers to another page."""
    for key in set(page.keys()) - _PAGE_KEYS - {"/Parent"}:
        del page[key]
    shown = pikepdf.Array()
    for note in page.get("/Annots", pikepdf.Array()):
        if not isinstance(note, pikepdf.Dictionary):
            continue
        if "/Subtype" not in note or "/AP" not in note or note["/Subtype"] in _NOT_SHOWN:
            continue
        kept = pikepdf.Dictionary({k: v for k, v in note.items() if k in _ANNOTATION_KEYS})
        kept["/AP"] = pikepdf.Dictionary({k: v for k, v in note["/AP"].items() if k == "/N"})
        if kept["/Subtype"] == "/Widget":
            # A viewer may leave out a field without its form, but always shows a stamp.
            kept["/Subtype"] = pikepdf.Name.Stamp
        shown.append(kept)
    if "/Annots" in page:
        page["/Annots"] = shown


def _drawn(file: Any, numbers: Sequence[int]) -> bytes:
    images = [file.render(number, DPI).convert("L") for number in numbers]
    buffer = io.BytesIO()
    first, *others = images
    first.save(buffer, "PDF", resolution=DPI, save_all=True, append_images=others, quality=QUALITY)
    return buffer.getvalue()
