"""The drawn marks of a PDF page: lines, frames, and check boxes. Runs in the child only."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as pdf

from .placed_words import CheckBox, Marks, Rule

#: Points of the paths of a page above which the drawing is a picture, not a form.
MAX_POINTS = 20_000
#: Depth of forms inside forms.
DEEPEST = 4
#: Thickness in points up to which a filled rectangle is a line.
THIN = 2.0
#: Sides in points of a check box, and the greatest ratio of its sides.
BOX_LEAST, BOX_MOST, BOX_RATIO = 5.0, 22.0, 1.3
#: Single short lines above which no squares are sought among the lines.
MAX_SIDES = 400
#: Squares of a page above which they are a chart, not check boxes.
MOST_BOXES = 400
#: Share of a check box's side that a tick spans at least.
TICK_SPAN = 0.3

Matrix = tuple[float, float, float, float, float, float]
SAME: Matrix = (1, 0, 0, 1, 0, 0)


class Shape(NamedTuple):
    """One part of a path, as the corners of its lines and the control points of its curves."""

    points: tuple[tuple[float, float], ...]
    is_closed: bool
    is_curved: bool
    is_filled: bool
    is_stroked: bool
    is_light: bool

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Return left, top, right, bottom."""
        xs, ys = [x for x, _ in self.points], [y for _, y in self.points]
        return min(xs), min(ys), max(xs), max(ys)


def shapes_of(page: pdfium.PdfPage, to_points: Matrix = SAME) -> list[Shape]:
    """Return the parts of all paths of a page, or none if the page is drawn like a picture.

    `to_points` maps the page's own coordinates to points of the displayed page.
    """
    found: list[Shape] = []
    budget = [MAX_POINTS]
    count = pdf.FPDFPage_CountObjects(page)
    for index in range(count):
        _collect(pdf.FPDFPage_GetObject(page, index), to_points, DEEPEST, found, budget)
        if budget[0] <= 0:
            return []
    return found


def _collect(
    item: ctypes.c_void_p, matrix: Matrix, depth: int, found: list[Shape], budget: list[int]
) -> None:
    kind = pdf.FPDFPageObj_GetType(item)
    if kind == pdf.FPDF_PAGEOBJ_FORM and depth:
        inner = _times(_matrix(item), matrix)
        for index in range(pdf.FPDFFormObj_CountObjects(item)):
            if budget[0] <= 0:
                return
            _collect(pdf.FPDFFormObj_GetObject(item, index), inner, depth - 1, found, budget)
    elif kind == pdf.FPDF_PAGEOBJ_PATH:
        found.extend(_shapes(item, _times(_matrix(item), matrix), budget))


def _shapes(item: ctypes.c_void_p, matrix: Matrix, budget: list[int]) -> Iterator[Shape]:
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdf.FPDFPath_GetDrawMode(item, fill, stroke)
    if not (fill.value or stroke.value):
        return
    light = _is_light(item, is_filled=bool(fill.value and not stroke.value))
    a, b, c, d, e, f = matrix
    x, y = ctypes.c_float(), ctypes.c_float()
    count = pdf.FPDFPath_CountSegments(item)
    budget[0] -= count + 1
    if budget[0] <= 0:
        return
    points: list[tuple[float, float]] = []
    closed = curved = False

    def shape() -> Shape:
        return Shape(
            points=tuple(points),
            is_closed=closed or bool(fill.value),
            is_curved=curved,
            is_filled=bool(fill.value),
            is_stroked=bool(stroke.value),
            is_light=light,
        )

    for index in range(count):
        segment = pdf.FPDFPath_GetPathSegment(item, index)
        kind = pdf.FPDFPathSegment_GetType(segment)
        if kind == pdf.FPDF_SEGMENT_MOVETO and points:
            if len(points) > 1:
                yield shape()
            points, closed, curved = [], False, False
        pdf.FPDFPathSegment_GetPoint(segment, x, y)
        points.append((a * x.value + c * y.value + e, b * x.value + d * y.value + f))
        curved = curved or kind == pdf.FPDF_SEGMENT_BEZIERTO
        closed = closed or bool(pdf.FPDFPathSegment_GetClose(segment))
    if len(points) > 1:
        yield shape()


def _matrix(item: ctypes.c_void_p) -> Matrix:
    m = pdf.FS_MATRIX()
    if not pdf.FPDFPageObj_GetMatrix(item, m):
        return SAME
    return m.a, m.b, m.c, m.d, m.e, m.f


def _times(one: Matrix, other: Matrix) -> Matrix:
    a, b, c, d, e, f = one
    a2, b2, c2, d2, e2, f2 = other
    return (
        a * a2 + b * c2,
        a * b2 + b * d2,
        c * a2 + d * c2,
        c * b2 + d * d2,
        e * a2 + f * c2 + e2,
        e * b2 + f * d2 + f2,
    )


def _is_light(item: ctypes.c_void_p, *, is_filled: bool) -> bool:
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    read = pdf.FPDFPageObj_GetFillColor if is_filled else pdf.FPDFPageObj_GetStrokeColor
    if not read(item, red, green, blue, alpha):
        return False
    return alpha.value < 16 or min(red.value, green.value, blue.value) >= 250


def marks_of(shapes: list[Shape], width: float, height: float) -> Marks:
    """Sort the shapes of a page of `width` × `height` points into lines, frames and check boxes.

    The marks are in points of the displayed page, with the origin at the top left.
    """
    rules: list[Rule] = []
    frames: list[Rule] = []
    for shape in shapes:
        left, top, right, bottom = shape.bounds
        if right - left > 0.9 * width and bottom - top > 0.8 * height:
            continue
        if min(right - left, bottom - top) <= THIN and max(right - left, bottom - top) > 3:
            if not shape.is_light:
                rules.append(Rule(left=left, top=top, right=right, bottom=bottom))
        elif _is_rectangle(shape):
            if not (shape.is_light and shape.is_filled):
                frames.append(Rule(left=left, top=top, right=right, bottom=bottom))
        elif not shape.is_curved and not shape.is_light:
            rules.extend(_straight_parts(shape))
    return Marks(
        rules=tuple(rules),
        frames=tuple(frames),
        check_boxes=tuple(_check_boxes(shapes, rules, width, height)),
    )


def _is_rectangle(shape: Shape) -> bool:
    if shape.is_curved or len(shape.points) not in (4, 5):
        return False
    left, top, right, bottom = shape.bounds
    near = 0.05 * min(right - left, bottom - top) + 0.3
    return all(
        min(abs(x - left), abs(x - right)) <= near and min(abs(y - top), abs(y - bottom)) <= near
        for x, y in shape.points
    )


def _straight_parts(shape: Shape) -> Iterator[Rule]:
    for (x, y), (x2, y2) in itertools.pairwise(shape.points):
        across, down = abs(x - x2), abs(y - y2)
        if max(across, down) > 3 and min(across, down) < 0.7:
            yield Rule(left=min(x, x2), top=min(y, y2), right=max(x, x2), bottom=max(y, y2))


def _check_boxes(
    shapes: list[Shape], rules: list[Rule], width: float, height: float
) -> Iterator[CheckBox]:
    """Yield the drawn squares. Yield the drawn circles too, if at least one circle is ticked."""
    outlines: list[tuple[tuple[float, float, float, float], bool, bool]] = []
    inner: list[Shape] = []
    for shape in shapes:
        size = _side(shape.bounds)
        if size is None:
            inner.append(shape)
            continue
        square = _is_rectangle(shape) and (shape.is_closed or len(shape.points) == 5)
        circle = shape.is_curved and shape.is_closed and len(shape.points) in range(12, 20)
        if (square or circle) and (shape.is_stroked or shape.is_light):
            outlines.append((shape.bounds, circle, False))
        inner.append(shape)
    outlines += [(bounds, False, False) for bounds in _squares_of_lines(rules)]
    if len(outlines) > MOST_BOXES:
        return
    kept: list[tuple[tuple[float, float, float, float], bool, bool]] = []
    for bounds, circle, _ in sorted(outlines, key=lambda one: -(one[0][2] - one[0][0])):
        if any(_same_square(bounds, other[0]) for other in kept):
            continue
        kept.append((bounds, circle, any(_ticks(shape, bounds) for shape in inner)))
    round_ones = any(circle and ticked for _, circle, ticked in kept)
    for bounds, circle, ticked in kept:
        if circle and not round_ones:
            continue
        left, top, right, bottom = bounds
        yield CheckBox(
            left=left,
            top=top,
            right=right,
            bottom=bottom,
            ticked=ticked,
            box=(left / width, top / height, right / width, bottom / height),
        )


def _side(bounds: tuple[float, float, float, float]) -> float | None:
    """Return the longer side if the bounds could be a check box's."""
    across, down = bounds[2] - bounds[0], bounds[3] - bounds[1]
    short, long = sorted((across, down))
    if not (short >= BOX_LEAST and long <= BOX_MOST and long <= BOX_RATIO * short):
        return None
    return long


def _same_square(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> bool:
    """Return whether `one` lies inside or on `other`."""
    return (
        one[0] >= other[0] - 2
        and one[1] >= other[1] - 2
        and one[2] <= other[2] + 2
        and one[3] <= other[3] + 2
    )


def _ticks(shape: Shape, square: tuple[float, float, float, float]) -> bool:
    """Return whether the shape is a cross, tick or blot inside the square."""
    left, top, right, bottom = shape.bounds
    side = square[2] - square[0]
    if (
        left < square[0] - 0.4 * side
        or right > square[2] + 0.6 * side
        or top < square[1] - 0.6 * side
        or bottom > square[3] + 0.4 * side
        or shape.is_light
    ):
        return False
    across = min(right, square[2]) - max(left, square[0])
    down = min(bottom, square[3]) - max(top, square[1])
    if across < TICK_SPAN * side or down < TICK_SPAN * side:
        return False
    if _is_rectangle(shape) or (shape.is_curved and shape.is_closed and not shape.is_filled):
        # The outline itself, a second outline, or a filled square in the middle.
        return shape.is_filled and right - left < 0.85 * side
    return True


def _squares_of_lines(rules: list[Rule]) -> Iterator[tuple[float, float, float, float]]:
    """Yield the squares whose sides are drawn as single lines."""
    small = [r for r in rules if BOX_LEAST <= max(r.right - r.left, r.bottom - r.top) <= BOX_MOST]
    if len(small) > MAX_SIDES:
        return
    level = [r for r in small if r.right - r.left > r.bottom - r.top]
    erect = {(round(r.left), round(r.top)) for r in small if r.bottom - r.top > r.right - r.left}
    near = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]

    def is_side(x: float, y: float) -> bool:
        return any((round(x) + dx, round(y) + dy) in erect for dx, dy in near)

    for upper in level:
        for lower in level:
            side = upper.right - upper.left
            if (
                abs(lower.top - upper.top - side) <= 0.3 * side
                and abs(lower.left - upper.left) < 1
                and abs(lower.right - upper.right) < 1
                and is_side(upper.left, upper.top)
                and is_side(upper.right, upper.top)
            ):
                yield upper.left, upper.top, upper.right, lower.bottom
