"""Images of deep levels, and several images in one file: no word is lost without a warning."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from pipeline.documents.reader.texts.drawing import font_path
from tests.support.text_files import pages_of

WORDS = "Aspirin 81 mg daily"


def picture(words: str = WORDS) -> Image.Image:
    image = Image.new("L", (1200, 300), 255)
    font = ImageFont.truetype(font_path(), 40)
    ImageDraw.Draw(image).text((60, 100), words, fill=0, font=font)
    return image


def in_bytes(image: Image.Image, kind: str, *others: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **({"save_all": True, "append_images": others} if others else {}))
    return out.getvalue()


@pytest.mark.parametrize("white", [1.0, 255.0, 4095.0, 65535.0])
@pytest.mark.parametrize("mode", ["F", "I", "I;16"])
def test_the_lightest_level_is_white_whatever_the_depth(
    tmp_path: Path, mode: str, white: float
) -> None:
    deep = picture().convert("F").point(lambda level: level * (white / 255))
    image = deep if mode == "F" else deep.convert("I")
    image = image.convert("I;16") if mode == "I;16" else image

    (page,) = pages_of(tmp_path, in_bytes(image, "TIFF"))

    assert page.text == WORDS


def test_each_frame_of_an_animated_png_is_a_page(tmp_path: Path) -> None:
    raw = in_bytes(picture(), "PNG", picture("Warfarin 5 mg daily"))

    assert [page.text for page in pages_of(tmp_path, raw)] == [WORDS, "Warfarin 5 mg daily"]
