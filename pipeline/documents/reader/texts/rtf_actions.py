"""What the control words of RTF do to the look of text, to paragraphs, and to tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..types import ATTACHMENTS, TRACKED_CHANGES
from .blocks import Run
from .rtf_tables import RowLook
from .rtf_words import RtfLook
from .running_lines import PAGE_NUMBER
from .unseen_limits import LEAST_SCALE, LEAST_TWIPS, LETTER, MOST_MOVED, MOST_PRESSED

if TYPE_CHECKING:
    from .rtf import RtfReader

Action = Callable[["RtfReader", "int | None"], None]


# mypy cannot check a field that a string names. `replace` refuses an unknown name when a test
# uses the control word.
def _sets(**changes: object) -> Action:
    def act(rtf: RtfReader, _: int | None) -> None:
        rtf.look = replace(rtf.look, **changes)  # type: ignore[arg-type]

    return act


def _switches(name: str) -> Action:
    def act(rtf: RtfReader, number: int | None) -> None:
        rtf.look = replace(rtf.look, **{name: number != 0})  # type: ignore[arg-type]

    return act


def _counts(name: str, default: int) -> Action:
    def act(rtf: RtfReader, number: int | None) -> None:
        rtf.look = replace(rtf.look, **{name: default if number is None else number})  # type: ignore[arg-type]

    return act


def _shifts(direction: int) -> Action:
    def act(rtf: RtfReader, number: int | None) -> None:
        rtf.look = replace(rtf.look, shift=direction if number != 0 else 0)

    return act


def _plain(rtf: RtfReader, _: int | None) -> None:
    kept = rtf.look
    rtf.look = RtfLook(
        destination=kept.destination, in_table=kept.in_table, depth=kept.depth,
        skips_unicode=kept.skips_unicode, font=rtf.default_font, ground=kept.ground,
        opened=kept.opened, is_frame=kept.is_frame, is_clipped=kept.is_clipped,
        is_aside=kept.is_aside, has_hidden_paragraph=kept.has_hidden_paragraph,
        is_in_unseen_shape=kept.is_in_unseen_shape,
    )  # fmt: skip


def _squeezes(is_unread: Callable[[int], bool]) -> Action:
    def act(rtf: RtfReader, number: int | None) -> None:
        rtf.look = replace(rtf.look, is_squeezed=is_unread(number or 0))

    return act


def _line_height(rtf: RtfReader, number: int | None) -> None:
    # A negative height is exact (RTF 1.9.1, `\\sl`).
    rtf.look = replace(rtf.look, is_clipped=-LEAST_TWIPS < (number or 0) < 0)


def _row_height(rtf: RtfReader, number: int | None) -> None:
    rtf.row.is_flat = -LEAST_TWIPS < (number or 0) < 0


def _place(most: int) -> Action:
    def act(rtf: RtfReader, number: int | None) -> None:
        is_aside = not -most < (number or 0) < most
        rtf.look = replace(rtf.look, is_aside=rtf.look.is_aside or is_aside)

    return act


def _shape_edge(side: str) -> Action:
    def act(rtf: RtfReader, number: int | None) -> None:
        rtf.shape[side] = number or 0

    return act


def _moves(direction: int) -> Action:
    def act(rtf: RtfReader, number: int | None) -> None:
        by = 6 if number is None else number
        is_far = by >= MOST_MOVED
        rtf.look = replace(rtf.look, shift=direction if by else 0, is_squeezed=is_far)

    return act


def _style(word: str, looks: Callable[[RtfLook, bool], RtfLook]) -> Action:
    """Name the style that a sheet defines, or hide text if its style is hidden.

    `looks(look, is_hidden)` is the look of text in a style.
    """

    def act(rtf: RtfReader, number: int | None) -> None:
        key = (word, number or 0)
        if rtf.look.destination == "stylesheet":
            rtf.style = key
        else:
            rtf.look = looks(rtf.look, key in rtf.hidden_styles)

    return act


def _of_paragraph(look: RtfLook, is_hidden: bool) -> RtfLook:
    return replace(look, has_hidden_paragraph=is_hidden)


def _of_letters(look: RtfLook, is_hidden: bool) -> RtfLook:
    return replace(look, has_hidden_letters=is_hidden)


def _hides(rtf: RtfReader, number: int | None) -> None:
    rtf.look = replace(rtf.look, is_hidden=number != 0)
    if number == 0:
        rtf.look = replace(rtf.look, has_hidden_paragraph=False, has_hidden_letters=False)


def _form(part: str) -> Action:
    def act(rtf: RtfReader, number: int | None) -> None:
        if rtf.look.destination == "fldinst":
            rtf.form[part] = number or 0

    return act


def _form_entry(rtf: RtfReader, _: int | None) -> None:
    rtf.entries.append(len(rtf.instruction))


def _cell_ground(rtf: RtfReader, number: int | None) -> None:
    rtf.row.next_ground = number or 0


def _cell_deleted(rtf: RtfReader, _: int | None) -> None:
    rtf.row.is_next_deleted = True


def _moved_from(rtf: RtfReader, number: int | None) -> None:
    rtf.look = replace(rtf.look, is_deleted=number != 0)


def _new_row(rtf: RtfReader, _: int | None) -> None:
    rtf.row = RowLook()


def _header_row(rtf: RtfReader, _: int | None) -> None:
    rtf.row.is_header = True


def _page_number(rtf: RtfReader, _: int | None) -> None:
    if rtf.look.is_frame:
        rtf.paragraph.runs.append(Run(text=PAGE_NUMBER))


def _new_section(rtf: RtfReader, _: int | None) -> None:
    rtf.has_first_page = False


def _first_page(rtf: RtfReader, _: int | None) -> None:
    rtf.has_first_page = True
    rtf.add_frame()


def _default_font(rtf: RtfReader, number: int | None) -> None:
    rtf.default_font = number or 0
    rtf.look = replace(rtf.look, font=rtf.default_font)


ACTIONS: dict[bytes, Action] = {
    b"par": lambda rtf, _: rtf.end_paragraph(),
    b"sect": lambda rtf, _: rtf.end_page(),
    b"page": lambda rtf, _: rtf.end_page(),
    b"cell": lambda rtf, _: rtf.end_cell(1),
    b"nestcell": lambda rtf, _: rtf.end_cell(max(2, rtf.look.depth)),
    b"row": lambda rtf, _: rtf.end_row(1),
    b"nestrow": lambda rtf, _: rtf.end_row(max(2, rtf.look.depth)),
    b"trowd": _new_row,
    b"trhdr": _header_row,
    b"cellx": lambda rtf, number: rtf.row.edge(number or 0),
    b"clvmrg": lambda rtf, _: rtf.row.join_next(),
    b"clmrg": lambda rtf, _: rtf.row.join_next(),
    b"pard": _sets(
        in_table=False,
        depth=1,
        ground=0,
        is_clipped=False,
        is_aside=False,
        has_hidden_paragraph=False,
    ),
    b"s": _style("s", _of_paragraph),
    b"cs": _style("cs", _of_letters),
    b"sl": _line_height,
    b"fftype": _form("type"),
    b"ffres": _form("state"),
    b"ffdefres": _form("default"),
    b"ffl": _form_entry,
    b"trrh": _row_height,
    b"clcbpat": _cell_ground,
    b"cldel": _cell_deleted,
    b"mvf": _moved_from,
    b"mvt": lambda rtf, _: rtf.add_warning(TRACKED_CHANGES),
    b"charscalex": _squeezes(lambda percent: 0 < percent < LEAST_SCALE),
    b"expnd": _squeezes(lambda quarters: quarters <= MOST_PRESSED / 5),
    b"expndtw": _squeezes(lambda twips: twips <= MOST_PRESSED),
    **{word: _place(LETTER[0]) for word in (b"li", b"lin", b"posx", b"posnegx")},
    **{word: _place(LETTER[1]) for word in (b"posy", b"posnegy")},
    **{
        b"shp" + side: _shape_edge(side.decode()) for side in (b"left", b"right", b"top", b"bottom")
    },
    b"intbl": _sets(in_table=True),
    b"itap": _counts("depth", 1),
    b"plain": _plain,
    b"v": _hides,
    b"webhidden": _switches("is_hidden"),
    b"deleted": _switches("is_deleted"),
    b"revised": lambda rtf, _: rtf.add_warning(TRACKED_CHANGES),
    b"strike": _switches("struck"),
    b"striked": _switches("struck"),
    b"super": _shifts(1),
    b"sub": _shifts(-1),
    b"up": _moves(1),
    b"dn": _moves(-1),
    b"nosupersub": _sets(shift=0),
    b"fs": _counts("half_points", 24),
    b"cf": _counts("colour", 0),
    b"cb": _counts("marked", 0),
    b"chcbpat": _counts("marked", 0),
    b"highlight": _counts("marked", 0),
    b"cbpat": _counts("ground", 0),
    b"uc": _counts("skips_unicode", 1),
    b"f": lambda rtf, number: rtf.set_font(number),
    b"fcharset": lambda rtf, number: rtf.set_charset(number),
    b"ansicpg": lambda rtf, number: rtf.set_code_page(number),
    b"red": lambda rtf, number: rtf.set_colour_part(b"red", number),
    b"green": lambda rtf, number: rtf.set_colour_part(b"green", number),
    b"blue": lambda rtf, number: rtf.set_colour_part(b"blue", number),
    b"chpgn": _page_number,
    b"sectd": _new_section,
    b"titlepg": _first_page,
    b"deff": _default_font,
    b"objemb": lambda rtf, _: rtf.add_warning(ATTACHMENTS),
}
