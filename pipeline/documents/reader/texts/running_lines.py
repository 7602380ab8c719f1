"""Running headers and footers: which of them stand on a page, with the number of the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .blocks import Block, Paragraph, TypedTable, items_of
from .lines import Framed, Item

PAGE_NUMBER, PAGE_COUNT = "\ue000", "\ue001"
"""Stand for the number of the page and the number of pages."""
_ORDER = ("", "r", "l")


def framed(frames: Mapping[str, Sequence[Block]], *, has_first_page: bool) -> Framed:
    """Return the running lines of a section.

    The keys are `header` or `footer` and `f` (first page), `l` (even pages), `r` (odd pages) or
    nothing (all pages).
    """

    def frame(number: int, count: int, is_first: bool) -> tuple[Sequence[Item], Sequence[Item]]:
        def chosen(kind: str) -> list[Item]:
            side = "r" if number % 2 else "l"
            kinds = ["f"] if has_first_page and is_first else [side, *_ORDER]
            blocks = next((frames[kind + key] for key in kinds if kind + key in frames), ())
            return list(items_of(_numbered(blocks, number, count)))

        return chosen("header"), chosen("footer")

    return Framed(frame=frame)


def _numbered(blocks: Iterable[Block], number: int, count: int) -> Iterable[Block]:
    for block in blocks:
        if isinstance(block, Paragraph):
            yield replace(
                block,
                runs=[
                    replace(
                        run,
                        text=run.text.replace(PAGE_NUMBER, str(number)).replace(
                            PAGE_COUNT, str(count)
                        ),
                    )
                    for run in block.runs
                ],
            )
        elif isinstance(block, TypedTable):
            yield TypedTable(
                rows=[
                    replace(
                        row,
                        cells=[
                            replace(cell, blocks=list(_numbered(cell.blocks, number, count)))
                            for cell in row.cells
                        ],
                    )
                    for row in block.rows
                ]
            )
        else:
            yield block
