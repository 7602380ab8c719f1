"""The reader's plain values are right: media types, messages, refusals, blank paper."""

from __future__ import annotations

import ast
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

import medproc
import pipeline.documents.reader
from medproc import unprivileged
from pipeline.documents.reader import (
    InputRefused,
    MediaType,
    PageRead,
    ReaderLimits,
    Region,
    Suspect,
    Word,
    ipc,
    refusals,
    sniff,
)
from pipeline.documents.reader.blank import is_uniform
from tests.support import hostile_files


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"%PDF-1.4", MediaType.PDF),
        (b"\r\n" * 500 + b"%PDF-1.4", MediaType.PDF),
        (b"\r\n" * 600 + b"%PDF-1.4", None),
        (b"\x89PNG\r\n\x1a\n", MediaType.PNG),
        (b"\xff\xd8\xff\xe0", MediaType.JPEG),
        (b"II*\x00", MediaType.TIFF),
        (b"MM\x00*", MediaType.TIFF),
        (b"", None),
        (b"PK\x03\x04", None),
        (b"RIFF\x10\0\0\0WEBPVP8 ", MediaType.WEBP),
        (b"\0\0\0\x18ftypheic\0\0\0\0", MediaType.HEIC),
        (b"\0\0\0\x18ftypmp42\0\0\0\0", None),
        (b"BM" + bytes(4) + bytes(4) + bytes(4) + b"\x28\0\0\0", MediaType.BMP),
        (b"BMI 24 kg/m2, weight 70 kg", MediaType.TEXT),
        (b"\xef\xbb\xbfPatient", MediaType.TEXT),
        ("Patient".encode("utf-16"), MediaType.TEXT),
        ("Patient has pain".encode("utf-16-be"), MediaType.TEXT),
        (b"\x7fELF\2\1\1\0\0\0\0", None),
        (b"{\\rtf1\\ansi", MediaType.RTF),
        (b"PK\x03\x04" + b"word/document.xml", MediaType.DOCX),
        (b"PK\x03\x04" + b"xl/workbook.xml", None),
        (b"<?xml version='1.0'?><ClinicalDocument xmlns='urn:hl7-org:v3'>", MediaType.CCDA),
        (b"<?xml version='1.0'?><Bundle xmlns='http://hl7.org/fhir'>", None),
        (b"<!DOCTYPE html><html>", None),
        (b'{"resourceType": "Bundle"}', None),
        (b"MSH|^~\\&|LAB|", None),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", None),
    ],
)
def test_a_file_is_what_its_first_bytes_say(
    tmp_path: Path, head: bytes, expected: MediaType | None
) -> None:
    path = tmp_path / "named.png"
    path.write_bytes(head)

    assert sniff(path) is expected


def test_a_page_comes_over_the_wire_as_it_was() -> None:
    page = PageRead(
        number=3,
        text="Glucose 110",
        source="mixed",
        regions=(Region(kind="unread", x0=0.1, y0=0.5, x1=0.6, y1=0.9),),
        suspects=(Suspect(flag="hidden_text", start=7, end=8),),
        unread_share=0.2,
        width=612.0,
        height=792.0,
        rotation=90,
        words=(Word(start=8, end=11, x0=0.1, y0=0.2, x1=0.3, y1=0.4, confidence=30.0),),
        ocr_confidence=71.5,
        warnings=("rendered_smaller",),
    )

    kind, body = ipc.decode(ipc.encode("page", ipc.pack_page(page)))

    assert (kind, ipc.unpack_page(body)) == ("page", page)


def test_a_refusal_says_in_one_line_what_to_do() -> None:
    messages = [
        refusals.empty(),
        refusals.unknown_type(),
        refusals.broken(),
        refusals.dynamic_form(),
        refusals.portfolio(),
        refusals.encrypted(),
        refusals.too_many_bytes(2, 1),
        refusals.too_many_pages(2, 1),
        refusals.too_many_pixels(2, 1),
        refusals.too_slow(0, 10.0),
        refusals.too_much_memory(4, 800_000_000),
        refusals.page_crashed(4),
    ]

    for refusal in messages:
        assert isinstance(refusal, InputRefused)
        assert "\n" not in refusal.message
        assert refusal.message.endswith(".")
        assert ";" in refusal.message or "damaged" in refusal.message


def test_limits_cannot_be_changed_by_the_file_that_they_bind() -> None:
    with pytest.raises(FrozenInstanceError):
        ReaderLimits().max_pages = 1  # type: ignore[misc]


def test_paper_with_grain_and_a_shadow_at_its_edge_is_uniform() -> None:
    sheet = Image.effect_noise((850, 1100), 20).point(lambda level: 215 + level // 8)
    ImageDraw.Draw(sheet).rectangle((0, 0, 12, 1100), fill=40)

    assert is_uniform(sheet)


def test_one_typed_character_makes_a_page_not_blank() -> None:
    sheet = Image.new("L", (1700, 2200), 255)
    ImageDraw.Draw(sheet).text((800, 1100), "x", fill=0)

    assert not is_uniform(sheet)


def test_a_scan_is_not_uniform() -> None:
    assert not is_uniform(hostile_files.scan())


def test_every_export_of_the_reader_exists() -> None:
    assert all(
        hasattr(pipeline.documents.reader, name) for name in pipeline.documents.reader.__all__
    )


def _imported(*files: Path) -> set[tuple[int, str]]:
    """Return the level and the name of each module that the files import."""
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text()))]
    whole = {(0, n.name) for node in nodes if isinstance(node, ast.Import) for n in node.names}
    return whole | {
        (node.level, f"{node.module or ''}.{name.name}" if node.level == 0 else "")
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }


def test_the_reader_imports_neither_django_nor_the_rest_of_the_project() -> None:
    imported = _imported(*Path(pipeline.documents.reader.__file__).parent.glob("*.py"))

    foreign = {"django", "pipeline", "medproc", "observability"}
    found = {name for level, name in imported if level == 0 and name.split(".")[0] in foreign}
    # Every child that root starts leaves root by this module.
    assert found == {"medproc.unprivileged"}
    assert all(level <= 1 for level, _ in imported)


def test_what_the_reader_imports_of_the_project_imports_only_the_standard_library() -> None:
    imported = _imported(Path(unprivileged.__file__))

    assert {name.split(".")[0] for _, name in imported} <= sys.stdlib_module_names | {"__future__"}
    assert not Path(medproc.__file__).read_text().strip()
