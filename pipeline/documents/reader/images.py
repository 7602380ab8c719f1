"""Image files: count, measure and read their frames. Runs in the child only.

The pixel limits are checked by the header, before any decoding.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

from PIL import Image, ImageFile, ImageOps

from . import refusals
from .blank import is_uniform
from .block_reader import BlockReader
from .further_pictures import has_further_pictures
from .image_sizes import largest_stated
from .ink_reading import FOR_INK, read_scan, with_ink
from .ocr import Ocr, page_from_image
from .types import (
    FURTHER_PICTURES,
    PARTLY_DAMAGED,
    RENDERED_SMALLER,
    MediaType,
    PageRead,
    ReaderLimits,
)

#: Pillow's warning is off, because this module checks the pixel limits before decoding.
Image.MAX_IMAGE_PIXELS = None

#: A stored frame may exceed the limit of pixels by this factor if it fits a third of the memory.
#: The frame is then reduced.
STORED_FACTOR = 4
#: Resolutions across and down that differ by more belong to a fax; the page is stretched.
SQUARE = 1.2
_FORMATS = {
    MediaType.TIFF: "TIFF",
    MediaType.PNG: "PNG",
    MediaType.JPEG: "JPEG",
    MediaType.WEBP: "WEBP",
    MediaType.BMP: "BMP",
    MediaType.HEIC: "HEIF",
}
#: Types whose files can have several images; each image is a page.
_SEVERAL = frozenset({MediaType.TIFF, MediaType.WEBP, MediaType.HEIC, MediaType.PNG})
_TRUNCATED = "truncated"


class ImageFileReader:
    """An open image file. Each image of a TIFF, HEIC, WebP or PNG is a page; others have one."""

    def __init__(self, path: Path, media_type: MediaType, limits: ReaderLimits) -> None:
        self._limits = limits
        if largest_stated(path, media_type) > STORED_FACTOR * limits.max_pixels_per_page:
            raise refusals.too_many_pixels(1, limits.max_pixels_per_page)
        if media_type is MediaType.HEIC:
            _know_heic()
        try:
            self._image = Image.open(path, formats=[_FORMATS[media_type]])
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - a damaged header raises anything
            raise refusals.broken() from None
        self._further = media_type is MediaType.JPEG and has_further_pictures(self._image, path)
        self._broken_off = False
        self.page_count = self._count() if media_type in _SEVERAL else 1

    def _count(self) -> int:
        count = 0
        while True:
            try:
                self._image.seek(count)
            except EOFError:
                break
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - a broken chain of frames raises anything
                self._broken_off = count > 0
                break
            count += 1
            if count > self._limits.max_pages:
                raise refusals.too_many_pages(count, self._limits.max_pages)
        if count == 0:
            raise refusals.broken()
        # The lost rest counts as one page, so that the file is not taken for complete.
        return count + self._broken_off

    def read(self, number: int, ocr: Ocr) -> PageRead:
        """Return page `number` (1-based)."""
        frame, warnings = self._frame(number)
        grey = _grey(frame)
        width, height = grey.size
        if is_uniform(grey):
            # A decoder leaves a missing part uniform too, so a damaged frame is not a blank page.
            if PARTLY_DAMAGED in warnings:
                raise ValueError(_TRUNCATED)
            return page_from_image(
                number, grey, None, width=width, height=height, warnings=warnings
            )
        until = time.process_time() + FOR_INK * self._limits.seconds_per_page
        reading, ink = read_scan(grey, BlockReader(ocr), until=until)
        page = page_from_image(number, grey, reading, width=width, height=height, warnings=warnings)
        return with_ink(page, ink)

    def render(self, number: int, dpi: int) -> Image.Image:
        """Return page `number` (1-based) in colour, sized like an A4 page scanned at `dpi`."""
        frame, _ = self._frame(number)
        colour = _on_white(frame).convert("RGB")
        factor = max(colour.size) / (11.7 * dpi)
        if factor > 1:
            size = (max(1, round(colour.width / factor)), max(1, round(colour.height / factor)))
            colour = colour.resize(size, Image.Resampling.BOX)
        return colour

    def _frame(self, number: int) -> tuple[Image.Image, list[str]]:
        """Return an upright frame with square pixels, within the pixel limit."""
        self._image.seek(number - 1)
        width, height = self._image.size
        pixels, cap = width * height, self._limits.max_pixels_per_page
        stored = pixels * max(1, len(self._image.getbands()))
        if pixels > STORED_FACTOR * cap or stored > self._limits.memory_bytes // 3:
            raise refusals.too_many_pixels(number, cap)
        warnings = [FURTHER_PICTURES] if self._further else []
        if pixels > cap:
            self._image.draft(None, (width // 2, height // 2))
        try:
            self._image.load()
            frame = self._image.copy()
        except (OSError, SyntaxError, ValueError, TypeError):
            frame = self._partial(number)
            warnings.append(PARTLY_DAMAGED)
        if pixels > cap:
            warnings.append(RENDERED_SMALLER)
            frame = frame.reduce(int((frame.width * frame.height / cap) ** 0.5) + 1)
        across, down = _resolution(self._image)
        frame = ImageOps.exif_transpose(frame)
        if across > SQUARE * down:
            frame = frame.resize((frame.width, round(frame.height * min(4.0, across / down))))
        elif down > SQUARE * across:
            frame = frame.resize((round(frame.width * min(4.0, down / across)), frame.height))
        return frame, warnings

    def _partial(self, number: int) -> Image.Image:
        """Return the decodable part of a truncated frame."""
        ImageFile.LOAD_TRUNCATED_IMAGES = True
        try:
            self._image.seek(number - 1)
            self._image.load()
            return self._image.copy()
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = False


def _know_heic() -> None:
    """Let Pillow open HEIC files; only a HEIC file costs the time and memory of the library."""
    import pi_heif

    pi_heif.register_heif_opener(decode_threads=1, thumbnails=False, depth_images=False)


def _resolution(image: Image.Image) -> tuple[float, float]:
    """Return dots per inch across and down, or (1, 1) if the file states none."""
    try:
        across, down = (float(value) for value in image.info["dpi"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return 1.0, 1.0
    return (across, down) if across > 0 and down > 0 else (1.0, 1.0)


def _on_white(frame: Image.Image) -> Image.Image:
    if frame.mode in {"RGBA", "LA", "PA"} or "transparency" in frame.info:
        coloured = frame.convert("RGBA")
        paper = Image.new("RGBA", coloured.size, "white")
        return Image.alpha_composite(paper, coloured)
    if frame.mode.startswith("I") or frame.mode == "F":
        return _in_256_levels(frame)
    return frame


def _in_256_levels(frame: Image.Image) -> Image.Image:
    """Return an image of deep levels in 256 levels.

    No file says which level is white: 4,095 of 12 bits, 65,535 of 16 bits, or 1.0. So the lightest
    level is white, if the levels are not those of 8 bits already.
    """
    deep = frame.convert("F")
    low, high = cast("tuple[float, float]", deep.getextrema())
    low = min(low, 0.0)
    if low == 0 and 128 <= high <= 255:
        return deep.convert("L")
    scale = 255 / (high - low) if high > low else 0.0
    return deep.point(lambda level: level * scale - low * scale).convert("L")


def _grey(frame: Image.Image) -> Image.Image:
    return _on_white(frame).convert("L")
