"""Whether a person sees text of one colour on another."""

from __future__ import annotations

#: Text of a lower ratio to its ground is not seen (WCAG 2.2 asks for 4.5).
LEAST_RATIO = 1.5
Colour = tuple[float, float, float]


def is_unseen(colour: str, ground: str) -> bool:
    """Return whether text cannot be seen; colours are `RRGGBB`, empty for black on white."""
    return ratio(_levels(colour or "000000"), _levels(ground or "FFFFFF")) < LEAST_RATIO


def ratio(one: Colour, other: Colour) -> float:
    """Return the contrast ratio of WCAG 2.2 (1–21); a colour is red, green and blue (0–255)."""
    lights = luminance(one), luminance(other)
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def luminance(colour: Colour) -> float:
    """Return the relative luminance (0–1) of WCAG 2.2."""
    parts = [level / 255 for level in colour]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _levels(colour: str) -> Colour:
    try:
        red, green, blue = (int(colour[i : i + 2], 16) for i in (0, 2, 4))
    except ValueError:
        return (0, 0, 0)
    return red, green, blue
