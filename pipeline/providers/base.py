"""The interface between the pipeline and a provider: one request, one reply, one tree of errors.

The code above this interface does not know which provider answers. A provider knows nothing of
database rows, retries or rate limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import BaseModel

from pipeline.core.errors import CallDetails


@dataclass(kw_only=True, eq=False)
class Attachment:
    """Pages that are sent beside the prompt, as a PDF document or an image."""

    media_type: str
    content: bytes = field(repr=False)
    """PHI; empty after `release`."""
    on_release: Callable[[], object] = field(default=lambda: None, repr=False)

    def release(self) -> None:
        """Drop the bytes. The provider calls this when the call has ended."""
        self.content = b""
        self.on_release()


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call, fully rendered."""

    item_token: str
    """A random token per batch; the reply must echo the token."""
    prompt: str = field(repr=False)
    """Instructions and pages as text (see `prompts`); PHI."""
    schema: type[BaseModel]
    max_output_tokens: int
    deadline_s: float
    """Seconds of wall clock, scaled by TIME_SCALE. The caller abandons the call at this age."""
    prompt_version: str
    estimated_input_tokens: int
    attachments: tuple[Attachment, ...] = field(default=(), repr=False)
    """In the order in which the prompt counts the attached pages. `generate` releases the
    attachments, so a request with attachments serves one call only."""
    encounter_id: str = ""
    """The encounter that the call asks about, in hexadecimal; empty if it asks about none. A reply
    need not name an encounter, but must not name another one."""
    on_send: Callable[[], object] = field(default=lambda: None, repr=False, compare=False)
    """Called in the call's thread before the request is sent. A provider without a network never
    calls it."""
    on_sent: Callable[[], object] = field(default=lambda: None, repr=False, compare=False)
    """Called in the call's thread once the request has left the process, with its body. A request
    that finds no connection never leaves."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A reply that has been parsed, validated and matched to its request."""

    output: BaseModel = field(repr=False)
    details: CallDetails


@dataclass(frozen=True, kw_only=True)
class EmbeddingRequest:
    """One call for the vectors of some texts."""

    texts: tuple[str, ...] = field(repr=False)
    """PHI: the names of entities are among the texts. No text is empty."""
    dimensions: int
    deadline_s: float
    """Seconds of wall clock, scaled by TIME_SCALE. The caller abandons the call at this age."""
    on_send: Callable[[], object] = field(default=lambda: None, repr=False, compare=False)
    """See `Request`."""
    on_sent: Callable[[], object] = field(default=lambda: None, repr=False, compare=False)
    """See `Request`."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingReply:
    """The vectors of one call, checked: as many as texts, in their order, each of length 1."""

    vectors: tuple[Sequence[float], ...] = field(repr=False)
    details: CallDetails


class Provider(Protocol):
    """Answers requests. Call threads use one provider concurrently."""

    name: str
    """`local` or `gemini`; stored in `provider_calls`."""
    model: str
    max_calls: int | None
    """How many concurrent calls make the provider faster; None means no bound."""

    def generate(self, request: Request) -> Reply:
        """Answer one request. Raises `CallError` with a code of the taxonomy."""
        ...

    def close(self) -> None:
        """Close all connections; the provider must not be used afterwards."""
        ...


class EmbeddingProvider(Provider, Protocol):
    """A provider whose `model` turns texts into vectors."""

    def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Return one vector per text. Raises `CallError` with a code of the taxonomy."""
        ...
