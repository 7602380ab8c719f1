"""Frozen values that pass between the layers.

Pages are 1-based and page ranges are inclusive. Character offsets are 0-based within the text of
one page and exclusive at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pipeline.core.states import Step


@dataclass(frozen=True, order=True)
class Span:
    """A run of characters on one page: `text[start:end]` of page `page`."""

    page: int
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.page < 1 or not 0 <= self.start <= self.end:
            raise ValueError(f"not a span: page {self.page}, {self.start}..{self.end}")

    def __len__(self) -> int:
        return self.end - self.start

    def overlap(self, other: Span) -> int:
        """Return the number of characters that both spans share."""
        if self.page != other.page:
            return 0
        return max(0, min(self.end, other.end) - max(self.start, other.start))


@dataclass(frozen=True, kw_only=True)
class ProviderModel:
    """The provider and the model that a call goes to, by the names in `provider_calls`."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider} {self.model}"


@dataclass(frozen=True, kw_only=True)
class Due:
    """A job that a worker can claim now; the caller enqueues a wake-up for it."""

    job_id: UUID
    step: Step
    dispatch_no: int
    is_sent_again: bool = False
    """Whether a wake-up with this dispatch number was sent before."""


@dataclass(frozen=True, kw_only=True)
class PageText:
    """The text of one page as it was read; the offsets of every span refer to this text."""

    number: int
    text: str
    is_blank: bool = False
    ocr_confidence: float | None = None
    """Mean word confidence, 0–100; None where the text did not come from OCR."""
    suspects: tuple[tuple[str, int, int], ...] = ()
    """Parts of the text in which a person checks every entity: flag, start, end."""

    @property
    def whole(self) -> Span:
        """The span of the whole page."""
        return Span(self.number, 0, len(self.text))


@dataclass(frozen=True, kw_only=True)
class PageSlice:
    """Part of a page as it is shown to the provider."""

    page: int
    start: int
    text: str
    context: bool = False
    """True for text that is shown for understanding only; no finding is reported from it."""
    attached: int = 0
    """The page of the attachments that shows this text, 1-based over all of them; 0 for none."""

    @property
    def span(self) -> Span:
        """The position of this text on its page."""
        return Span(self.page, self.start, self.start + len(self.text))


def slices(spans: Sequence[Span], pages: Mapping[int, PageText]) -> tuple[PageSlice, ...]:
    """Cut the text of `spans` out of `pages`, in the order of the spans."""
    return tuple(
        PageSlice(page=s.page, start=s.start, text=pages[s.page].text[s.start : s.end])
        for s in spans
    )


@dataclass(frozen=True, kw_only=True)
class WorkSettings:
    """The settings under which a process works on a record."""

    provider: str
    model: str
    input_mode: str
    """`text` or `pdf`."""
    job_max_retries: int
    retry_delay_s: float
    more: Mapping[str, Any]
    """Limits and sizes of the passes, by name."""

    def as_json(self) -> dict[str, Any]:
        """Return the settings in the form in which the session stores them."""
        return {
            "provider": self.provider,
            "model": self.model,
            "input_mode": self.input_mode,
            "job_max_retries": self.job_max_retries,
            "retry_delay_s": self.retry_delay_s,
            **self.more,
        }
