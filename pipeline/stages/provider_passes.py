"""The part that all passes with provider calls share: the request of one call."""

from __future__ import annotations

from django.conf import settings
from pydantic import BaseModel

from medproc.timing import scaled
from pipeline.execution.attachments import Shown
from pipeline.providers.base import Request
from pipeline.providers.prompts import PROMPT_VERSION, estimate_tokens


def call_request(
    token: str, prompt: str, shown: Shown, *, schema: type[BaseModel], max_output_tokens: int
) -> Request:
    """Return the request of one call, with the deadline and the versions of this installation."""
    return Request(
        item_token=token,
        prompt=prompt,
        schema=schema,
        max_output_tokens=max_output_tokens,
        deadline_s=scaled(settings.CALL_DEADLINE_S),
        prompt_version=PROMPT_VERSION,
        estimated_input_tokens=estimate_tokens(prompt) + shown.input_tokens,
        attachments=shown.attachments,
    )
