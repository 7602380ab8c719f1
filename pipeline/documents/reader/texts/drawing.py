"""The image of a page of text, for the console: each word at the place that its box says."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from ..placed_words import PageWord
from .typesetting import TypedPage

_FONT = "JetBrainsMono[wght].ttf"
_INK = "black"


def draw(sheet: TypedPage, dpi: int) -> Image.Image:
    """Return the page in colour at `dpi`."""
    scale = dpi / 72
    width, height = sheet.points
    image = Image.new("RGB", (round(width * scale), round(height * scale)), "white")
    pen = ImageDraw.Draw(image)
    for cells in sheet.words():
        for cell in cells:
            for word in cell:
                _write(pen, word, scale)
    return image


def _write(pen: ImageDraw.ImageDraw, word: PageWord, scale: float) -> None:
    font = _font(round(word.size * scale))
    at = (word.left * scale, word.baseline * scale)
    pen.text(at, word.text, fill=_INK, font=font, anchor="ls")
    if word.struck:
        middle = (word.baseline - 0.3 * word.size) * scale
        line = (word.left * scale, middle, word.right * scale, middle)
        pen.line(line, fill=_INK, width=max(1, round(scale)))


@lru_cache(maxsize=8)
def _font(pixels: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(font_path(), max(4, pixels))


def font_path() -> Path:
    """Return the file of the packaged type; the package itself is not imported."""
    found = importlib.util.find_spec("fontpkg_jetbrains_mono")
    if found is None or found.origin is None:
        raise ImportError(name="fontpkg_jetbrains_mono")
    return Path(found.origin).parent / "files" / _FONT
