"""Sizes and places from which text of a DOCX or RTF file shows nothing. In twips: 1/20 point."""

from __future__ import annotations

LEAST_TWIPS = 40
"""A height or width below 2 points shows nothing, as a letter below 2 points does."""
LETTER = (12_240, 15_840)
"""Width and height of a letter page."""
MARGIN = 2_880
"""What an edge of a margin or column can lie inside the page: 2 inches."""
LEAST_SCALE = 10
"""Letters scaled to a smaller share of their width, in percent, are not read."""
MOST_PRESSED = -100
"""Letters that are pressed together by 5 points or more cover each other."""
MOST_MOVED = 400
"""Letters that are raised or lowered by 400 half-points or more are off their line."""
