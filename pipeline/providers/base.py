"""The border to whoever reads the pages: one request, one reply, one tree of errors.

May import `errors`, `types` and `schemas`. Nothing above this layer knows which provider answers;
a provider knows nothing of rows, retries or rates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import BaseModel

from pipeline.core.errors import CallDetails


@dataclass(kw_only=True, eq=False)
class Attachment:
    """Pages that go beside the prompt, as a document or an image."""

    media_type: str
    content: bytes = field(repr=False)
    """PHI; empty once it was released."""
    on_release: Callable[[], object] = field(default=lambda: None, repr=False)

    def release(self) -> None:
        """Let the bytes go; the provider does so when the call has ended."""
        self.content = b""
        self.on_release()


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call, fully rendered."""

    item_token: str
    """Random per batch; the reply must echo it."""
    prompt: str = field(repr=False)
    """Instructions and pages as text (see `prompts`); PHI."""
    schema: type[BaseModel]
    max_output_tokens: int
    deadline_s: float
    """Wall clock, scaled; the caller writes the call off at this age."""
    prompt_version: str
    estimated_input_tokens: int
    attachments: tuple[Attachment, ...] = field(default=(), repr=False)
    """In the order in which the prompt counts their pages. A request with any is made for one call:
    `generate` releases them."""
    on_send: Callable[[], object] = field(default=lambda: None, repr=False, compare=False)
    """Called when the request goes out, in its call thread; a provider without a wire does not."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A reply that has been parsed, validated and matched to its request."""

    output: BaseModel = field(repr=False)
    details: CallDetails


class Provider(Protocol):
    """Answers requests; called by call threads, several at once."""

    name: str
    """`local` or `gemini`; goes into `provider_calls`."""
    model: str
    max_calls: int | None
    """How many calls at once it gains from; None: as many as it is given."""

    def generate(self, request: Request) -> Reply:
        """Answer one request, or raise `CallError` with a code of the taxonomy."""
        ...

    def close(self) -> None:
        """Give up connections; the provider is not used afterwards."""
        ...
