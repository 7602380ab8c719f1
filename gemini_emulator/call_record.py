"""One call as the service sees it: its question, its attempt number, its log line.

`Register` counts calls, items and attempts of all clients.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gemini_emulator.fault_script import MatchableCall
from gemini_emulator.http import HttpRequest
from gemini_emulator.request_log import LogLine
from gemini_emulator.request_validation import Input, config_of, thinks
from pipeline.providers.prompts import Question, read_prompt

OUTPUT_TOKEN_LIMIT = 65_536


@dataclass(kw_only=True)
class ParsedCall:
    """One call, as far as it has been read."""

    model: str
    shown: Input
    question: Question | None = field(default=None, repr=False)
    schema: Mapping[str, Any] = field(default_factory=dict)
    max_output_tokens: int = OUTPUT_TOKEN_LIMIT
    thinks: bool = False
    server_timeout_s: float | None = None
    modalities: Mapping[str, int] = field(default_factory=dict)
    line: LogLine
    arrived: float
    item: int = 0
    seed: str = ""

    @property
    def input_tokens(self) -> int:
        """The tokens that count towards the quota."""
        return sum(self.modalities.values())

    def call(self, began: float) -> MatchableCall:
        """Return the part that a rule can match; `began` is the time of the first call."""
        line = self.line
        return MatchableCall(
            number=line.number,
            item=self.item,
            attempt=line.attempt,
            page=line.pages[0] if line.pages else 0,
            kind=line.kind,
            elapsed_s=self.arrived - began,
            pages=len(line.pages),
            seed=self.seed,
        )


class Register:
    """Reads and counts calls."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        # A restarted emulator counts from 1 again, and may append to the same log.
        self._run = secrets.token_hex(8)
        self._number = 0
        self._items: dict[str, int] = {}
        self._attempts: dict[str, int] = {}
        self.began: float | None = None
        """Time of the first call, in seconds of the monotonic clock."""

    def generate(
        self, model: str, request: HttpRequest, content: Mapping[str, Any], shown: Input
    ) -> ParsedCall:
        """Read a generateContent call."""
        try:
            question: Question | None = read_prompt(shown.text)
        except ValueError:
            question = None
        token = question.item_token if question else ""
        config = config_of(content)
        asked = self._asked(
            model=model,
            request=request,
            shown=shown,
            route="generateContent",
            token=token,
            kind=question.kind if question else "other",
            pages=_pages(question) if question else [],
        )
        asked.question = question
        asked.schema = plain_schema(config)
        asked.max_output_tokens = int(config.get("maxoutputtokens") or OUTPUT_TOKEN_LIMIT)
        asked.thinks = thinks(config.get("thinkingconfig"))
        return asked

    def embed(self, model: str, request: HttpRequest, route: str, shown: Input) -> ParsedCall:
        """Read an embedContent or batchEmbedContents call; each call is an item of its own."""
        token = hashlib.sha256(shown.text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._asked(
            model=model,
            request=request,
            shown=shown,
            route=route,
            token=token,
            kind="embedding",
            pages=[],
        )

    def _asked(
        self,
        *,
        model: str,
        request: HttpRequest,
        shown: Input,
        route: str,
        token: str,
        kind: str,
        pages: list[int],
    ) -> ParsedCall:
        now = time.monotonic()
        self._number += 1
        self.began = now if self.began is None else self.began
        attempt = self._attempts[token] = self._attempts.get(token, 0) + 1
        timeout = request.headers.get("x-server-timeout", "")
        return ParsedCall(
            model=model,
            shown=shown,
            server_timeout_s=float(timeout) if timeout.isdigit() else None,
            modalities=shown.modalities(model),
            arrived=now,
            item=self._items.setdefault(token, len(self._items) + 1),
            seed=f"{self._seed}:{_digest(shown, token)}:{attempt}",
            line=LogLine(
                time=time.time(),
                number=self._number,
                route=route,
                item_token=token,
                kind=kind,
                attempt=attempt,
                pages=pages,
                outcome="",
                status=0,
                finish_reason="",
                response_id=_response_id(self._run, self._number),
                input_tokens=0,
                output_tokens=0,
                drawn_s=0.0,
                latency_s=0.0,
                delivered=False,
                attached_pages=shown.pages,
            ),
        )


def _pages(question: Question) -> list[int]:
    """Return the own pages of a question; of a question without pages, those of its entities."""
    own = {part.page for part in question.slices if not part.context}
    return sorted(own or {each.page for each in question.facts})


def plain_schema(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the requested JSON schema; {} if the request has no schema."""
    schema = config.get("responsejsonschema")
    return schema if isinstance(schema, dict) else {}


def bare_line(route: str, *, status: int, outcome: str) -> LogLine:
    """Return the log line of a request that does not reach the model."""
    return LogLine(
        time=time.time(),
        number=0,
        route=route,
        item_token="",
        kind="other",
        attempt=0,
        pages=[],
        outcome=outcome,
        status=status,
        finish_reason="",
        response_id="",
        input_tokens=0,
        output_tokens=0,
        drawn_s=0.0,
        latency_s=0.0,
        delivered=True,
    )


def _digest(shown: Input, token: str) -> str:
    """Return a digest of the content without the random token.

    Equal pages draw equal random numbers in every run.
    """
    text = shown.text.replace(token, "") if token else shown.text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for part in shown.inlines:
        digest.update(part.content)
    return digest.hexdigest()[:16]


def _response_id(run: str, number: int) -> str:
    # The letter keeps the id from being a number, which the client would take for a patient's.
    return "e" + hashlib.sha256(f"{run}:{number}".encode()).hexdigest()[:21]
