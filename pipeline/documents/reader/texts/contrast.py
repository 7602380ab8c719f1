"""Whether a person sees text of one colour on another."""

from __future__ import annotations

#: Text of a lower ratio to its ground is not seen (WCAG 2.2 asks for 4.5).
LEAST_RATIO = 1.5


def is_unseen(colour: str, ground: str) -> bool:
    """Return whether text cannot be seen; colours are `RRGGBB`, empty for black on white."""
    one, other = _luminance(colour or "000000"), _luminance(ground or "FFFFFF")
    return (max(one, other) + 0.05) / (min(one, other) + 0.05) < LEAST_RATIO


def _luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2.2."""
    try:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    except ValueError:
        return 0.0
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
