"""Pages cut out of a file are unchanged, and contain nothing of other pages."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

import pikepdf
import pytest
from PIL import Image

from pipeline.documents.reader import InputRefused, MediaType, ReaderLimits, read_pages, slice_pages
from tests.support import hostile_files
from tests.support.hostile_files import HOSTILE, Hostile

SECRET = "Zebedee"


def write(folder: Path, content: bytes, name: str = "record") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def texts(path: Path, first: int = 1, last: int = 99) -> list[str]:
    return [page.text for page in read_pages(path, first, last)]


def everything(content: bytes) -> bytes:
    """Return the whole content of a PDF, with its streams unpacked."""
    with pikepdf.open(io.BytesIO(content)) as file:
        buffer = io.BytesIO()
        file.save(
            buffer,
            stream_decode_level=pikepdf.StreamDecodeLevel.all,
            compress_streams=False,
            object_stream_mode=pikepdf.ObjectStreamMode.disable,
        )
    return buffer.getvalue()


def entangled() -> bytes:
    """Return two pages; the second names `SECRET`, and the first refers to it in every way."""
    with pikepdf.new() as file:
        for number in (1, 2):
            file.add_blank_page(page_size=(300, 300))
            file.pages[-1].obj["/Contents"] = file.make_stream(
                f"BT /F1 12 Tf 20 200 Td (Page {number}) Tj ET /X{number} Do".encode()
            )
        first, second = (page.obj for page in file.pages)
        forms = {
            f"/X{number}": file.make_stream(
                f"BT /F1 12 Tf 20 100 Td (Form {text}) Tj ET".encode(),
                Type=pikepdf.Name.XObject,
                Subtype=pikepdf.Name.Form,
                BBox=[0, 0, 300, 300],
                Resources=pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=_helvetica(file))),
            )
            for number, text in ((1, "one"), (2, SECRET))
        }
        shared = file.make_indirect(
            pikepdf.Dictionary(
                Font=pikepdf.Dictionary(F1=_helvetica(file)), XObject=pikepdf.Dictionary(forms)
            )
        )
        first["/Resources"] = second["/Resources"] = shared
        field = file.make_indirect(
            pikepdf.Dictionary(FT=pikepdf.Name.Tx, T="name", V=pikepdf.String(SECRET))
        )
        widget = pikepdf.Dictionary(
            Subtype=pikepdf.Name.Widget,
            Rect=[20, 20, 100, 40],
            Parent=field,
            AP=pikepdf.Dictionary(
                N=file.make_stream(
                    b"BT /F1 12 Tf 0 5 Td (Filled) Tj ET",
                    Subtype=pikepdf.Name.Form,
                    BBox=[0, 0, 80, 20],
                    Resources=pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=_helvetica(file))),
                )
            ),
        )
        field["/Kids"] = pikepdf.Array([file.make_indirect(widget)])
        file.Root["/AcroForm"] = pikepdf.Dictionary(Fields=[field])
        link = pikepdf.Dictionary(
            Subtype=pikepdf.Name.Link,
            Rect=[0, 0, 10, 10],
            Contents=SECRET,
            Dest=[second, pikepdf.Name.Fit],
        )
        first["/Annots"] = pikepdf.Array([field["/Kids"][0], link])
        first["/PieceInfo"] = pikepdf.Dictionary(Private=pikepdf.String(SECRET))
        first["/Next"] = second
        file.docinfo["/Title"] = SECRET
        buffer = io.BytesIO()
        file.save(buffer)
    return buffer.getvalue()


def _helvetica(file: pikepdf.Pdf) -> pikepdf.Object:
    return file.make_indirect(
        pikepdf.Dictionary(
            Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica
        )
    )


def test_a_slice_reads_as_its_pages_in_the_requested_order(tmp_path: Path) -> None:
    path = write(tmp_path, hostile_files.note_pdf(6))
    whole = texts(path)

    (cut,) = slice_pages(path, [5, 2])

    assert cut.media_type is MediaType.PDF
    assert texts(write(tmp_path, cut.content, "cut")) == [whole[4], whole[1]]


def test_nothing_of_another_page_is_in_a_slice(tmp_path: Path) -> None:
    path = write(tmp_path, entangled())

    (cut,) = slice_pages(path, [1])

    held = everything(cut.content)
    assert texts(write(tmp_path, cut.content, "cut")) == ["Page 1\nForm one\nFilled"]
    assert SECRET.encode() not in held
    assert pikepdf.open(io.BytesIO(cut.content)).docinfo.get("/Title") is None


def test_the_same_pages_are_the_same_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, hostile_files.note_pdf(3))

    assert slice_pages(path, [1, 3]) == slice_pages(path, [1, 3])


def test_each_frame_of_a_tiff_is_a_jpeg_without_its_tags(tmp_path: Path) -> None:
    frames = [hostile_files.scan(), hostile_files.scan(["Second frame of the fax"])]
    buffer = io.BytesIO()
    frames[0].save(
        buffer, "TIFF", save_all=True, append_images=frames[1:], description=SECRET, dpi=(200, 200)
    )
    path = write(tmp_path, buffer.getvalue())

    second, first = slice_pages(path, [2, 1])

    assert {second.media_type, first.media_type} == {MediaType.JPEG}
    assert SECRET.encode() not in second.content + first.content
    assert Image.open(io.BytesIO(second.content)).info.get("exif") is None
    assert "Second frame" in texts(write(tmp_path, second.content, "cut"))[0]


@pytest.mark.parametrize("pages", [[0], [4], [1, 4]])
def test_a_page_that_the_file_has_not_is_refused(tmp_path: Path, pages: list[int]) -> None:
    path = write(tmp_path, hostile_files.note_pdf(3))

    with pytest.raises(InputRefused) as refused:
        slice_pages(path, pages)

    assert refused.value.code == "INPUT_INVALID"


def test_no_page_is_no_slice(tmp_path: Path) -> None:
    assert slice_pages(write(tmp_path, hostile_files.note_pdf()), []) == ()


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.name)
def test_a_hostile_file_gives_pages_or_a_refusal(tmp_path: Path, case: Hostile) -> None:
    path = write(tmp_path, case.build())

    with suppress(InputRefused):
        (part,) = slice_pages(path, [1], ReaderLimits(seconds_per_page=2.0))
        assert part.content
