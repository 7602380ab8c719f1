"""The table of printed units, in memory.

The file `printed_units.txt` names its source. A spelling means one code in each context.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "printed_units.txt"
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


@dataclass(frozen=True, slots=True)
class Spellings:
    """The spellings of one section: in their own case, and in any case."""

    exact: dict[str, str] = field(default_factory=dict)
    folded: dict[str, str] = field(default_factory=dict)

    def get(self, spelling: str) -> str | None:
        """Return the code of a spelling without blanks."""
        return self.exact.get(spelling) or self.folded.get(spelling.casefold())

    def add(self, spelling: str, code: str) -> None:
        is_exact = spelling.startswith("=")
        rows, key = (self.exact, spelling[1:]) if is_exact else (self.folded, spelling.casefold())
        if rows.setdefault(key, code) != code:
            raise ValueError(f"two codes for the printed unit {key}")


def plain(printed: str) -> str:
    """Return a printed unit without blanks, with one sign for micro, times, and raised figures."""
    text = printed.replace("µ", "u").replace("μ", "u").replace("×", "x").replace("º", "°")
    text = re.sub(r"(?<=10)([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", r"^\1", text).translate(_RAISED)
    text = re.sub(r"(?i)(?<![a-z])per(?![a-z])", "/", text)
    return re.sub(r"\s+", "", text).replace("∕", "/").replace("⁄", "/")


@cache
def sections() -> dict[str, Spellings]:
    """Return the spellings of each section, such as `whole lab`."""
    found: dict[str, Spellings] = {}
    current = Spellings()
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.rstrip().endswith("]") and ";" not in line:
            current = found.setdefault(line.strip()[1:-1], Spellings())
        elif line.strip() and not line.startswith("#"):
            code, _, spellings = line.partition(";")
            for spelling in spellings.split("|"):
                current.add(plain(spelling), code.strip())
    return found


def codes() -> frozenset[str]:
    """Return every code of the table."""
    return frozenset(
        code
        for section in sections().values()
        for rows in (section.exact, section.folded)
        for code in rows.values()
    )
