"""Decide whether a page image shows only empty paper. Runs in the child only."""

from __future__ import annotations

from typing import cast

from PIL import Image

#: Grey levels (0–255) within which averaged empty paper varies.
PAPER = 12
#: Share of each side left out, because a scanner's lid throws a shadow there.
EDGE = 0.03


def is_uniform(image: Image.Image) -> bool:
    """Return whether `image` (mode L) shows no mark as large as a character."""
    width, height = image.size
    inner = image.crop(
        (
            int(width * EDGE),
            int(height * EDGE),
            max(int(width * EDGE) + 1, int(width * (1 - EDGE))),
            max(int(height * EDGE) + 1, int(height * (1 - EDGE))),
        )
    )
    # Averaged over a cell of 1/20 inch, a full stop of 10 pt type darkens its cell by 25 grey
    # levels.
    cell = max(1, max(inner.size) // 220)
    return spread(inner.reduce(cell)) < PAPER


def spread(image: Image.Image) -> int:
    """Return the grey levels (0–255) between the darkest and lightest pixel of a mode L image."""
    darkest, lightest = cast("tuple[int, int]", image.getextrema())
    return lightest - darkest
