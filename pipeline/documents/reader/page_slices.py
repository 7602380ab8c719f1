"""Some pages of a file, cut out as they are: a PDF of a PDF's pages, JPEGs of images.

Imports pikepdf and Pillow; runs in the child only. What is cut holds nothing of another page:
no shared resource, form field, link, thumbnail, structure or metadata leads back to the file.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pikepdf

from . import refusals

#: Bytes of a slice above which it is not handed on; base64 makes it a third longer on the wire.
MAX_SLICE_BYTES = 64 * 1024 * 1024
#: Resolution of image files, and of PDF pages that pikepdf cannot take out.
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

    Pages of a file that pikepdf cannot take apart are drawn by PDFium instead.
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
            # PDFium sees other pages than pikepdf; only PDFium's numbers are known to the record.
            raise ValueError
        for number in numbers:
            page = source.pages[number - 1]
            _strip(page.obj)
            cut.pages.append(page)
        layers = source.Root.get("/OCProperties")
        if layers is not None:
            # Without it, layers that are switched off would show.
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
    """Take from a page all that does not show, or leads to another."""
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
            # Without its form a viewer may leave a field out; a stamp is shown as it stands.
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
