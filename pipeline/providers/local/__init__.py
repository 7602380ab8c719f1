"""The provider that needs no key: a deterministic clinical engine behind the provider interface.

The engine uses no model and no network, and logs nothing of the text. The first call of a process
compiles the lexicon.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pipeline.core.errors import CallDetails, CallError, ErrorCode
from pipeline.providers.base import Reply, Request
from pipeline.providers.prompts import Question, estimate_tokens, read_prompt
from pipeline.providers.tasks import TASKS

if TYPE_CHECKING:
    from pydantic import BaseModel

ENGINE_VERSION = "3"
"""Increment with every change of a rule or word list; part of the key of cached extractions."""


class LocalProvider:
    """Answers requests with rules; safe to call from several threads."""

    name = "local"
    model = f"local-rules-{ENGINE_VERSION}"
    max_calls: int | None = 2
    """The engine computes and never waits, so more threads would only hold more pages in memory."""

    def generate(self, request: Request) -> Reply:
        """Answer one request. Raises CallError (API_4XX) if the prompt cannot be parsed."""
        try:
            output = answer(request.prompt)
        except ValueError:
            raise CallError("The prompt cannot be parsed.", code=ErrorCode.API_4XX) from None
        raw = output.model_dump_json(exclude_none=True)
        return Reply(
            output=output,
            details=CallDetails(
                finish_reason="STOP",
                model_version=self.model,
                response_id=_response_id(request.prompt),
                input_tokens=estimate_tokens(request.prompt),
                output_tokens=estimate_tokens(raw),
                raw_reply=raw,
            ),
        )

    def close(self) -> None:
        """Do nothing: the engine has no connection."""


def answer(prompt: str) -> BaseModel:
    """Answer a rendered prompt with the reply of its kind.

    Raises ValueError if the text is not a rendered prompt.
    """
    return answer_to(read_prompt(prompt))


def answer_to(question: Question) -> BaseModel:
    """Answer a question with the reply of its kind."""
    return TASKS[question.kind].answer(question)


def _response_id(prompt: str) -> str:
    return "local-" + hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:24]
