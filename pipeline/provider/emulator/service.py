"""The emulated Gemini service: from a request to an answer, a delay and a line in the log.

May import everything of this package and `prompts`. All state (quotas, attempts, the script) is of
one process and one loop, so that it counts over all clients without a lock.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline.provider.emulator import bodies
from pipeline.provider.emulator.answers import Answers, Source
from pipeline.provider.emulator.asking import (
    Refused,
    check_deadline,
    check_key,
    config_of,
    read_json,
    text_of,
    thinks,
)
from pipeline.provider.emulator.faults import FAULTS, Draft, Setting
from pipeline.provider.emulator.http import Delivery, HttpAnswer, HttpRequest
from pipeline.provider.emulator.latency import Latency
from pipeline.provider.emulator.limits import Limits
from pipeline.provider.emulator.requestlog import LogLine, RequestLog
from pipeline.provider.emulator.script import Call, Rule, Script
from pipeline.provider.prompts import Question, estimate_tokens, read_prompt

INPUT_TOKEN_LIMIT = 1_048_576
OUTPUT_TOKEN_LIMIT = 65_536
_ROUTE = re.compile(r"^/(?:v1|v1beta)/models/(gemini-[\w.-]+)(?::(\w+))?(?:\?.*)?$")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the service behaves; a limit of 0 is none."""

    rpm: int = 0
    tpm: int = 0
    rpd: int = 0
    window_s: float = 60.0
    latency: Latency = field(default_factory=Latency)
    rules: Sequence[Rule] = ()
    seed: int = 1
    log: Path | None = None
    answers: Source = "local"


@dataclass(kw_only=True)
class _Asked:
    """One generateContent call, as far as it is known."""

    model: str
    prompt: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    max_output_tokens: int = OUTPUT_TOKEN_LIMIT
    thinks: bool = False
    server_timeout_s: float | None = None
    question: Question | None = None
    input_tokens: int = 0
    line: LogLine
    arrived: float
    item: int = 0
    seed: str = ""


class Service:
    """Answers requests; see `Options`."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._limits = Limits(
            rpm=options.rpm, tpm=options.tpm, rpd=options.rpd, window_s=options.window_s
        )
        self._script = Script(options.rules)
        self._log = RequestLog(options.log)
        self._answers = Answers(options.answers)
        # One thread: the engine is bound by the interpreter's lock, the loop must not wait for it.
        self._thinker = ThreadPoolExecutor(max_workers=1)
        self._thinker.submit(self._answers.warm)
        self._number = 0
        self._first_call: float | None = None
        self._items: dict[str, int] = {}
        self._attempts: dict[str, int] = {}

    async def handle(self, request: HttpRequest) -> HttpAnswer:
        """Answer one request."""
        route = _ROUTE.match(request.path)
        try:
            check_key(request)
            if route is None:
                raise Refused(404, "NOT_FOUND", "Requested entity was not found.")
            model, verb = route.groups()
            if request.method == "GET" and verb is None:
                return HttpAnswer(status=200, body=_model_card(model))
            if request.method != "POST" or verb not in {"generateContent", "countTokens"}:
                raise Refused(404, "NOT_FOUND", "Requested entity was not found.")
            content = read_json(request.body)
        except Refused as refused:
            return HttpAnswer(status=refused.status, body=refused.body)
        if verb == "countTokens":
            return HttpAnswer(status=200, body=_token_count(content))
        return await self._generate(model, request, content)

    def close(self) -> None:
        """Stop the engine's thread and close the log."""
        self._thinker.shutdown(wait=False, cancel_futures=True)
        self._log.close()

    async def _generate(
        self, model: str, request: HttpRequest, content: Mapping[str, Any]
    ) -> HttpAnswer:
        asked = self._read(model, request, content)
        try:
            check_deadline(request)
            if asked.input_tokens > INPUT_TOKEN_LIMIT:
                raise Refused(
                    400,
                    "INVALID_ARGUMENT",
                    f"The input token count ({asked.input_tokens}) exceeds the maximum number of "
                    f"tokens allowed ({INPUT_TOKEN_LIMIT}).",
                )
        except Refused as refused:
            draft = Draft(model=model, item_token="", status=refused.status, body=refused.body)
            return self._finish(asked, draft, "bad-request")
        rule = self._script.choose(self._call_of(asked))
        if rule is not None and not FAULTS[rule.fault].answers:
            return await self._fail_at_once(asked, rule)
        refusal = self._limits.admit(time.monotonic(), asked.input_tokens)
        if refusal is not None:
            body = bodies.resource_exhausted(
                refusal.quotas, model=model, retry_after_s=refusal.retry_after_s
            )
            draft = Draft(model=model, item_token="", status=429, body=body)
            return self._finish(asked, draft, refusal.outcome)
        return await self._answer(asked, rule)

    async def _fail_at_once(self, asked: _Asked, rule: Rule) -> HttpAnswer:
        draft = Draft(model=asked.model, item_token=asked.line.item_token)
        draft = FAULTS[rule.fault].change(draft, rule.setting)
        await _until(asked.arrived + (rule.delay_s or 0.0))
        return self._finish(asked, draft, rule.fault)

    async def _answer(self, asked: _Asked, rule: Rule | None) -> HttpAnswer:
        latency = self._latency(asked)
        setting = rule.setting if rule else Setting()
        text = await asyncio.get_running_loop().run_in_executor(
            self._thinker, self._answers.to, asked.prompt, asked.question, asked.schema
        )
        draft = Draft(model=asked.model, item_token=asked.line.item_token, text=text)
        if rule is not None:
            draft = FAULTS[rule.fault].change(draft, setting)
        draft = _capped(draft, asked.max_output_tokens)
        if rule is None or rule.fault != "trickle":
            latency += draft.extra_delay_s + (setting.delay_s or 0.0)
        asked.line = replace(asked.line, drawn_s=latency)
        if asked.server_timeout_s is not None and latency > asked.server_timeout_s:
            late = FAULTS["504"].change(draft, setting)
            await _until(asked.arrived + asked.server_timeout_s)
            return self._finish(asked, late, "server-timeout")
        await _until(asked.arrived + latency)
        outcome = rule.fault if rule else "ok"
        return self._finish(asked, draft, outcome, pace_s=setting.delay_s)

    def _read(self, model: str, request: HttpRequest, content: Mapping[str, Any]) -> _Asked:
        prompt = text_of(content)
        try:
            question = read_prompt(prompt)
        except ValueError:
            question = None
        token = question.item_token if question else ""
        own = [s for s in question.slices if not s.context] if question else []
        now = time.monotonic()
        self._number += 1
        self._first_call = now if self._first_call is None else self._first_call
        item = self._items.setdefault(token, len(self._items) + 1)
        attempt = self._attempts[token] = self._attempts.get(token, 0) + 1
        config = config_of(content)
        # Without the token, which is random: the same pages meet the same luck in every run.
        digest = hashlib.sha256(
            prompt.replace(token, "").encode("utf-8", "surrogatepass")
        ).hexdigest()[:16]
        timeout = request.headers.get("x-server-timeout", "")
        thinking = config.get("thinkingconfig", {})
        return _Asked(
            model=model,
            prompt=prompt,
            schema=config.get("responsejsonschema") or {},
            max_output_tokens=int(config.get("maxoutputtokens") or OUTPUT_TOKEN_LIMIT),
            thinks=bool(thinking) and thinks(thinking),
            server_timeout_s=float(timeout) if timeout.isdigit() else None,
            question=question,
            input_tokens=estimate_tokens(prompt),
            arrived=now,
            item=item,
            seed=f"{self._options.seed}:{digest}:{attempt}",
            line=LogLine(
                time=time.time(),
                number=self._number,
                route="generateContent",
                item_token=token,
                kind=question.kind if question else "other",
                attempt=attempt,
                pages=sorted({s.page for s in own}),
                outcome="",
                status=0,
                finish_reason="",
                response_id=_response_id(self._options.seed, self._number),
                input_tokens=0,
                output_tokens=0,
                drawn_s=0.0,
                latency_s=0.0,
                delivered=False,
            ),
        )

    def _call_of(self, asked: _Asked) -> Call:
        line = asked.line
        return Call(
            number=line.number,
            item=asked.item,
            attempt=line.attempt,
            page=line.pages[0] if line.pages else 0,
            kind=line.kind,
            elapsed_s=asked.arrived - (self._first_call or asked.arrived),
            seed=asked.seed,
        )

    def _latency(self, asked: _Asked) -> float:
        own = [s for s in asked.question.slices if not s.context] if asked.question else []
        return self._options.latency.of(
            kind=asked.line.kind,
            page=own[0].page if own else 0,
            start=own[0].start if own else 0,
            item=asked.item,
            pages=len(asked.line.pages),
            seed=asked.seed,
        )

    def _finish(
        self, asked: _Asked, draft: Draft, outcome: str, *, pace_s: float | None = None
    ) -> HttpAnswer:
        output_tokens = _output_tokens(draft, asked.max_output_tokens)
        thoughts = 64 if asked.thinks and draft.status == 200 else 0
        body = draft.body
        if body is None:
            usage = {
                "promptTokenCount": asked.input_tokens,
                "candidatesTokenCount": output_tokens,
                "totalTokenCount": asked.input_tokens + output_tokens + thoughts,
                **({"thoughtsTokenCount": thoughts} if thoughts else {}),
            }
            body = bodies.encode(
                bodies.reply(
                    text=draft.text,
                    finish_reason=draft.finish_reason,
                    block_reason=draft.block_reason,
                    model=asked.model,
                    response_id=asked.line.response_id,
                    usage=usage,
                )
            )
        replied = draft.status == 200
        line = replace(
            asked.line,
            outcome=outcome,
            status=draft.status,
            finish_reason=(draft.finish_reason or "") if replied else "",
            input_tokens=asked.input_tokens if replied else 0,
            output_tokens=output_tokens,
        )

        def sent(delivered: bool) -> None:
            elapsed = round(time.monotonic() - asked.arrived, 4)
            self._log.write(replace(line, latency_s=elapsed, delivered=delivered))

        return HttpAnswer(
            status=draft.status,
            body=body,
            content_type=draft.content_type,
            delivery=draft.delivery,
            headers={
                "Server-Timing": f"gfet4t7; dur={(time.monotonic() - asked.arrived) * 1e3:.0f}"
            },
            pace_s=0.5 if pace_s is None else pace_s,
            sent=sent,
        )


async def _until(due: float) -> None:
    wait = due - time.monotonic()
    if wait > 0:
        await asyncio.sleep(wait)


def _token_count(content: Mapping[str, Any]) -> bytes:
    tokens = estimate_tokens(text_of(content))
    return bodies.encode(
        {
            "totalTokens": tokens,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}],
        }
    )


def _model_card(model: str) -> bytes:
    return bodies.encode(
        {
            "name": f"models/{model}",
            "displayName": model,
            "inputTokenLimit": INPUT_TOKEN_LIMIT,
            "outputTokenLimit": OUTPUT_TOKEN_LIMIT,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }
    )


def _response_id(seed: int, number: int) -> str:
    return hashlib.sha256(f"{seed}:{number}".encode()).hexdigest()[:22]


def _capped(draft: Draft, most: int) -> Draft:
    """Cut the text at the output cap, as the service does."""
    if draft.text is None or draft.full_output or estimate_tokens(draft.text) <= most:
        return draft
    return replace(draft, text=draft.text[: most * 4 - 1], finish_reason="MAX_TOKENS")


def _output_tokens(draft: Draft, most: int) -> int:
    if draft.status != 200 or draft.delivery in {Delivery.HANG, Delivery.RESET}:
        return 0
    if draft.full_output:
        return most
    return estimate_tokens(draft.text) if draft.text else 0
