"""The first characters that a pattern can match, read from the pattern itself.

A scan tries a pattern only where the text begins with such characters. The answer may name too
many beginnings, never too few. The module reads the syntax that our cues use: groups, classes,
escapes, lookarounds, anchors and counts.
"""

from __future__ import annotations

import re

ANY = "*"
"""A mark for any character in a beginning."""
_EMPTY = frozenset([""])
_COUNT = re.compile(r"(?:[?*+]|\{(\d*)(?:,\d*)?\})[?+]?")
_OPENING = re.compile(r"\((?:\?(?:[Pp]<\w+>|<?[=!]|-?[a-z]*:))?")


def alternatives(pattern: str) -> list[str]:
    """Split a pattern at the bars that are outside of all groups and classes."""
    parts, at, begin, depth = [], 0, 0, 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
        elif sign == "[":
            at = _class_end(pattern, at) - 1
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
        elif sign == "|" and depth == 0:
            parts.append(pattern[begin:at])
            begin = at + 1
        at += 1
    return [*parts, pattern[begin:]]


def beginnings(pattern: str, size: int = 2) -> frozenset[str]:
    """Return the beginnings of all matches in lower case, with `size` characters at most.

    A shorter beginning is a whole match.
    """
    return _BeginningReader(pattern.lower(), size).alternation()


def _class_end(pattern: str, at: int) -> int:
    at += 2 if pattern[at + 1] != "^" else 3
    while pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


class _BeginningReader:
    """Reads one pattern from left to right."""

    def __init__(self, pattern: str, size: int) -> None:
        self._pattern, self._at = pattern, 0
        self._size = size

    def alternation(self) -> frozenset[str]:
        found = self._sequence()
        while self._pattern[self._at : self._at + 1] == "|":
            self._at += 1
            found |= self._sequence()
        return found

    def _sequence(self) -> frozenset[str]:
        found = _EMPTY
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            part = self._part()
            count = _COUNT.match(self._pattern, self._at)
            if count is not None:
                self._at = count.end()
                if count.group()[0] != "?":
                    part = self._repeated(part)
                if count.group()[0] in "?*" or count[1] in ("", "0"):
                    part = part | _EMPTY
            found = self._joined(found, part)
        return found

    def _joined(self, left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
        size = self._size
        return frozenset((a + b)[:size] for a in left for b in (right if len(a) < size else _EMPTY))

    def _repeated(self, part: frozenset[str]) -> frozenset[str]:
        found = part
        for _ in range(self._size - 1):
            found = found | self._joined(found, part)
        return found

    def _part(self) -> frozenset[str]:
        sign = self._pattern[self._at]
        if sign == "(":
            return self._group()
        begin = self._at
        if sign == "[":
            self._at = _class_end(self._pattern, begin)
            return self._class(self._pattern[begin + 1 : self._at - 1])
        if sign == "\\":
            self._at += 2
            escaped = self._pattern[begin + 1]
            if escaped == "b":
                return _EMPTY
            return frozenset(ANY if escaped.isalnum() else escaped)
        self._at += 1
        if sign in "^$":
            return _EMPTY
        return frozenset(ANY if sign == "." else sign)

    def _group(self) -> frozenset[str]:
        opening = _OPENING.match(self._pattern, self._at)
        self._at = opening.end() if opening else self._at + 1
        found = self.alternation()
        self._at += 1
        # A lookaround consumes no text.
        return _EMPTY if opening and opening.group().endswith(("=", "!")) else found

    def _class(self, members: str) -> frozenset[str]:
        if members[0] == "^" or "\\" in members or "-" in members[1:-1]:
            return frozenset(ANY)
        return frozenset(members)
