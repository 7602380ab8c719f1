"""Further pictures in a JPEG file, as CIPA DC-007 stores them. Runs in the child only.

The camera of a phone adds previews and gain maps (for bright screens) to a photo. Both show nothing
that the photo does not show. Every other picture can be a page of its own, and is reported.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from PIL.MpoImagePlugin import MpoImageFile

#: The name of the index of pictures in `Image.info`.
_INDEX = "mp"
_ENTRIES = 0xB002
_PREVIEW = "Large Thumbnail"
#: A gain map names its kind in its own header: Adobe and Ultra HDR of Android, ISO 21496-1, Apple.
_GAIN_MAP = (
    b"http://ns.adobe.com/hdr-gain-map/1.0/",
    b"urn:iso:std:iso:ts:21496:-1",
    b"aux:hdrgainmap",
)
#: Bytes of a picture in which its header ends.
_HEADER = 128 * 1024


def has_further_pictures(image: Image.Image, path: Path) -> bool:
    """Return whether an open JPEG file has a picture that can be another page.

    An index that cannot be read counts as such a picture.
    """
    if _INDEX not in image.info or not isinstance(image, JpegImageFile):
        return False
    if not isinstance(image, MpoImageFile):
        # Pillow reads a photo with a gain map, and one with a broken index, as a plain JPEG.
        return not _is_gain_map(b"".join(content for _, content in image.applist))
    index: Any = image.mpinfo
    entries = index[_ENTRIES]
    with path.open("rb") as file:
        for number in range(1, image.n_frames):
            if str(entries[number]["Attribute"]["MPType"]).startswith(_PREVIEW):
                continue
            try:
                image.seek(number)
            except (EOFError, OSError, SyntaxError, ValueError):
                return True
            file.seek(image.offset)
            if not _is_gain_map(file.read(_HEADER)):
                return True
    return False


def _is_gain_map(header: bytes) -> bool:
    return any(name in header for name in _GAIN_MAP)
