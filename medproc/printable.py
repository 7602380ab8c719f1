"""The one function that makes a text safe to print, and the formatter of log lines that uses it.

Data can contain characters that control a terminal: ESC sequences move the cursor or retitle the
window, and bidirectional marks turn a line around. Every command, and the log, escapes them.
"""

from __future__ import annotations

import logging
import unicodedata

_KEPT = "\n\t"
_CONTROLS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format, surrogate, private and unassigned characters, and Unicode's own line ends."""


def printable(text: str) -> str:
    r"""Return the text with `\x1b` or `\u202e` in place of each character that is not printable.

    Line feeds and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(each if _is_plain(each) else _escape(each) for each in text)


def in_one_line(text: str) -> str:
    """Return the printable text with its line feeds and tabs escaped too."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


class PlainFormatter(logging.Formatter):
    """Escapes the characters of a log line that could control a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with control characters escaped."""
        return printable(super().format(record))


def _is_plain(character: str) -> bool:
    return character in _KEPT or unicodedata.category(character) not in _CONTROLS


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
