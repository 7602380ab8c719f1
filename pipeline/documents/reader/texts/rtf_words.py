"""The control words of RTF 1.9.1 that carry text or its look, and the look of text."""

from __future__ import annotations

from dataclasses import dataclass

DEEPEST = 256
#: Share of a page (in square twips of a letter page) from which a picture counts as unread.
PAGE_TWIPS = 12_240 * 15_840
LEAST_PICTURE = 0.01

CODE_PAGES = {
    0: "", 1: "", 2: "symbol", 77: "mac-roman", 128: "cp932", 129: "cp949", 130: "johab",
    134: "cp936", 136: "cp950", 161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255",
    178: "cp1256",
    186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
"""`\\fcharset` → code page (RTF 1.9.1, section Font Table)."""
SETS = {b"ansi": "cp1252", b"mac": "mac-roman", b"pc": "cp437", b"pca": "cp850"}
SIGNS = {
    b"tab": "\t", b"line": "\n", b"lquote": "‘", b"rquote": "’", b"ldblquote": "“",
    b"rdblquote": "”", b"bullet": "•", b"endash": "–", b"emdash": "—", b"emspace": " ",
    b"enspace": " ", b"qmspace": " ",
}  # fmt: skip
SYMBOLS = {b"~": "\xa0", b"_": "-", b"{": "{", b"}": "}", b"\\": "\\", b"\t": "\t"}
SKIPPED = frozenset(
    b"info generator objdata nonshppict atnid atnauthor xe tc txe rxe"
    b" listtable listoverridetable revtbl filetbl bkmkstart bkmkend pntxta pntxtb nonesttables"
    b" template themedata datastore xmlnstbl colorschememapping latentstyles pgptbl rsidtbl"
    b" mmathPr shprslt ftnsep ftnsepc aftnsep aftnsepc ftncn aftncn private".split()
)
#: Destinations that `\\*` announces and that have text on the page or define a row.
READ = frozenset(b"shppict shptxt nesttableprops ud pn listtext shpinst do".split())
PICTURE_SIZE = frozenset({b"picwgoal", b"pichgoal"})
DESTINATIONS = frozenset(
    {b"fonttbl", b"colortbl", b"stylesheet", b"sp", b"footnote", b"shptxt", b"upr", b"fldinst"}
)
#: The text of a drawing of Word 6 → the text of a shape.
SAME = {b"dptxbxtext": b"shptxt"}
#: `\\fftype` of a check box, and the `\\ffres` of a field with its default.
CHECK_BOX, NO_STATE = 1, 25
#: A property of a shape: its name and its value.
PROPERTY = frozenset({b"sn", b"sv"})
MUTE = frozenset(
    {"skip", "picture", "upr", "fldinst", "fonttbl", "colortbl", "stylesheet", "sp", "sn", "sv"}
)
HEADERS = frozenset(b"header headerr headerf headerl footer footerr footerf footerl".split())
FLOWS = {"footnote", "shptxt"} | {word.decode() for word in HEADERS}
"""Destinations with paragraphs of their own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RtfLook:
    """The state that a group inherits and gives back."""

    font: int = 0
    is_hidden: bool = False
    #: The style of the paragraph, or of its letters, is hidden.
    has_hidden_paragraph: bool = False
    has_hidden_letters: bool = False
    is_deleted: bool = False
    #: Letters are pressed together, or moved off their line.
    is_squeezed: bool = False
    #: The paragraph has lines without height, or lies beside the page.
    is_clipped: bool = False
    is_aside: bool = False
    #: The shape around the text is hidden, has no size, or lies beside the page.
    is_in_unseen_shape: bool = False
    struck: bool = False
    shift: int = 0
    half_points: int = 24
    colour: int = 0
    ground: int = 0
    marked: int = 0
    skips_unicode: int = 1
    destination: str = ""
    in_table: bool = False
    depth: int = 1
    #: Counts the destinations, so that two of one kind inside each other differ.
    opened: int = 0
    is_frame: bool = False
