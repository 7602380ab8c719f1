"""The ink check of pages with a text layer, beside the reading of the same pages without the check.

Run `python -m bench.ink [FILE.pdf …]`; without files, the project's samples. Every page is timed
both ways in one run, in processor time. Exits 1 if the median of the check exceeds 60 ms, or if a
page of the samples has ink that OCR would read.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pypdfium2 as pdfium
from PIL import Image

from medproc.env import PROJECT_ROOT
from pipeline.documents.reader.check_glyphs import as_boxes
from pipeline.documents.reader.hidden_annotations import flatten
from pipeline.documents.reader.ink import LOOK_DPI, patches, strokes
from pipeline.documents.reader.page_layout import lay_out
from pipeline.documents.reader.page_objects import PageObjects
from pipeline.documents.reader.raised import settle
from pipeline.documents.reader.text_ink import TextInk
from pipeline.documents.reader.text_layer import Layer, read_layer
from pipeline.documents.reader.text_rows import placed

BOUND_MS = 60.0
SAMPLES = ("lab_5p_8enc", "long_72p", "traps_10p", "visits_20p_4enc")


@dataclass(frozen=True, kw_only=True)
class InkTimes:
    """Milliseconds of processor time for one page: read without the check, and the check alone."""

    page: str
    words: int
    reading_ms: float
    check_ms: float
    is_unexplained: bool


def main(files: list[str]) -> int:
    """Measure every page with a text layer, print a table, and return the exit code."""
    paths = [Path(file) for file in files] or [
        PROJECT_ROOT / "samples" / f"{name}.pdf" for name in SAMPLES
    ]
    pages = [page for path in paths for page in _measure(path)]
    for title, values in (
        ("reading without the check", [page.reading_ms for page in pages]),
        ("ink check alone", [page.check_ms for page in pages]),
    ):
        values.sort()
        print(
            f"{title:26} median {statistics.median(values):6.1f} ms"
            f"   p95 {values[int(0.95 * (len(values) - 1))]:6.1f} ms   max {values[-1]:6.1f} ms"
        )
    unexplained = [page.page for page in pages if page.is_unexplained]
    print(
        f"{len(pages)} pages, {sum(page.words for page in pages):,} words; unexplained ink on"
        f" {len(unexplained)} pages {' '.join(unexplained)}"
    )
    slow = statistics.median(page.check_ms for page in pages) > BOUND_MS
    return int(slow or (bool(unexplained) and not files))


def _measure(path: Path) -> Iterator[InkTimes]:
    document = pdfium.PdfDocument(path)
    for index in range(len(document)):
        flat = flatten(document, index)
        start = time.process_time()
        look = _look(flat.page)
        layer = read_layer(flat.page, index + 1, look, flat.noted)
        width, height = flat.page.get_size()
        lines = [[placed(token, width, height, 0) for token in line] for line in layer.lines]
        lay_out(as_boxes(settle([word for line in lines for word in line])), layer.marks)
        read = time.process_time()
        unexplained = _check(flat.page, look, layer)
        checked = time.process_time()
        if layer.lines:
            yield InkTimes(
                page=f"{path.stem}:{index + 1}",
                words=sum(map(len, layer.lines)),
                reading_ms=1000 * (read - start),
                check_ms=1000 * (checked - read),
                is_unexplained=unexplained,
            )


def _check(page: pdfium.PdfPage, look: Image.Image, layer: Layer) -> bool:
    """Do the work of the check; return whether ink is left that could be words."""
    objects = PageObjects(page)
    with objects.hidden_text():
        bare = _look(page)
    ink = TextInk(look, bare)
    boxes = [(t.x0, t.y0, t.x1, t.y1) for line in layer.lines for t in line]
    for line in layer.lines:
        for token in line:
            ink.shows(token.text, (token.x0, token.y0, token.x1, token.y1))
    return bool(patches(strokes(bare).also(ink.outside(boxes))))


def _look(page: pdfium.PdfPage) -> Image.Image:
    image: Image.Image = page.render(scale=LOOK_DPI / 72, grayscale=True).to_pil()
    return image.convert("L")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
