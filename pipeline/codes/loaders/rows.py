"""What a reader yields, and what a reader promises about its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipeline.models.codes import SystemKey


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeRow:
    """One code of a system. The loader also stores `display` as a term."""

    code: str
    display: str
    parent: str | None = None
    billable: bool | None = None
    kind: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class TermRow:
    """One further name of a code, which can precede or follow the code's own row."""

    code: str
    text: str
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PropertyRow:
    """A further value in one list of the code's properties, which can precede the code's row."""

    code: str
    name: str
    value: str


Row = CodeRow | TermRow | PropertyRow


class CodeSource(Protocol):
    """One place that the codes of a system come from."""

    @property
    def key(self) -> SystemKey:
        """The system of the codes."""

    @property
    def name(self) -> str:
        """The package with its version, or the name of the file."""

    @property
    def licence(self) -> str:
        """The licence of the codes, in a few words."""

    @property
    def revision(self) -> int:
        """The revision of the reader; a reader that yields other rows has a higher revision."""

    @property
    def has_second_displays(self) -> bool:
        """Whether a code can have a second display, which is a further name; else an error."""

    def version(self) -> str:
        """Return the version that the source states."""

    def digest(self) -> str:
        """Return the SHA-256 of the source's bytes, in hexadecimal."""

    def rows(self) -> Iterator[Row]:
        """Yield the rows in constant memory; raise CodesError for the first wrong row."""
