"""The emulated Gemini service: turn a request into a reply, a delay and a log line.

One process and one loop own all state (quotas, attempts, the script). So the service counts all
clients without a lock.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gemini_emulator import api_bodies
from gemini_emulator.answers import Answers, Source
from gemini_emulator.attachments import Pages
from gemini_emulator.call_record import (
    OUTPUT_TOKEN_LIMIT,
    ParsedCall,
    Register,
    bare_line,
)
from gemini_emulator.clock import PacificClock
from gemini_emulator.embeddings import DIMENSIONS, MOST_IN_BATCH, VECTOR_FAULTS, embed
from gemini_emulator.fault_script import FaultRule, Script
from gemini_emulator.faults import FAULTS, LATE_S, OF_ANY_BODY, Draft, Setting
from gemini_emulator.http import Delivery, HttpAnswer, HttpRequest
from gemini_emulator.latency import Latency
from gemini_emulator.limits import QuotaWindows
from gemini_emulator.request_log import LogLine, RequestLog
from gemini_emulator.request_validation import (
    INPUT_TOKEN_LIMIT,
    Input,
    Refused,
    check_deadline,
    check_input,
    check_key,
    input_of,
    plain,
    read_json,
)
from pipeline.providers.prompts import estimate_tokens

_ROUTE = re.compile(r"^/(?:v1|v1beta)/models/(gemini-[\w.-]+)(?::(\w+))?(?:\?.*)?$")
_VERBS = ("generateContent", "countTokens", "embedContent", "batchEmbedContents")
_READERS = 2
"""Attached documents that are read at once; each is read in its own process."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The service's configuration; a limit of 0 means no limit."""

    rpm: int = 0
    tpm: int = 0
    rpd: int = 0
    spend_usd: float = 0.0
    window_s: float = 60.0
    clock: str = ""
    """Pacific time at the start; "" for the real time."""
    latency: Latency = field(default_factory=Latency)
    rules: Sequence[FaultRule] = ()
    seed: int = 1
    log: Path | None = None
    answers: Source = "local"


class Service:
    """Answers requests; see `Options`."""

    def __init__(self, options: Options) -> None:
        self._options = options
        now = time.monotonic()
        self._clock = (
            PacificClock.set_to(options.clock, now=now) if options.clock else PacificClock()
        )
        self._limits = QuotaWindows(
            rpm=options.rpm,
            tpm=options.tpm,
            rpd=options.rpd,
            spend_usd=options.spend_usd,
            window_s=options.window_s,
            clock=self._clock,
        )
        self._script = Script(options.rules)
        self._log = RequestLog(options.log)
        self._register = Register(options.seed)
        self._pages = Pages()
        self._answers = Answers(options.answers)
        # One thread: Python's interpreter lock serializes the engine anyway, and the loop must not
        # wait.
        self._thinker = ThreadPoolExecutor(max_workers=1)
        self._readers = ThreadPoolExecutor(max_workers=_READERS)
        self._thinker.submit(self._answers.warm)

    async def handle(self, request: HttpRequest) -> HttpAnswer:
        """Answer one request."""
        if request.path.startswith("/emulator/"):
            return self._control(request)
        route = _ROUTE.match(request.path)
        model, verb = route.groups() if route else ("", None)
        asks = verb if request.method == "POST" and verb in _VERBS else "other"
        try:
            check_key(request)
            if model and request.method == "GET" and verb is None:
                return self._plain_reply(asks, _model_card(model))
            if asks == "other":
                raise Refused(404, "NOT_FOUND", "Requested entity was not found.")
            content = read_json(request.body)
            if asks == "countTokens":
                return self._plain_reply(asks, _token_count(model, input_of(content)))
            if asks == "generateContent":
                return await self._generate(model, request, content)
            return await self._embed(model, request, asks, content)
        except Refused as refused:
            line = bare_line(asks, status=refused.status, outcome="bad-request")
            return self._plain_reply(asks, refused.body, line=line)

    def close(self) -> None:
        """Stop the threads and close the log."""
        self._thinker.shutdown(wait=False, cancel_futures=True)
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._log.close()

    def _plain_reply(self, route: str, body: bytes, *, line: LogLine | None = None) -> HttpAnswer:
        """Return a reply that needs no model, and log it."""
        self._log.write(line := line or bare_line(route, status=200, outcome="ok"))
        return HttpAnswer(status=line.status, body=body)

    def _control(self, request: HttpRequest) -> HttpAnswer:
        """Show the state of the rehearsal, or advance the day's clock. Not part of the API."""
        now = time.monotonic()
        if request.path == "/emulator/clock" and request.method == "POST":
            try:
                seconds = float(read_json(request.body).get("advances", 0.0))
            except (Refused, TypeError, ValueError):
                return HttpAnswer(
                    status=400, body=api_bodies.encode({"error": "advance_s: seconds"})
                )
            self._clock.advance(seconds)
        elif request.path != "/emulator/state" or request.method != "GET":
            return HttpAnswer(status=404, body=api_bodies.encode({"error": "not found"}))
        began = self._register.began
        state = {
            "pacific_time": self._clock.at(now).isoformat(timespec="seconds"),
            "seconds_to_midnight": round(self._clock.to_midnight_s(now), 3),
            "seconds_since_first_call": None if began is None else round(now - began, 3),
            "used": self._limits.used(now),
            "spent_usd": round(self._limits.spent_usd(now), 6),
        }
        return HttpAnswer(status=200, body=api_bodies.encode(state))

    async def _generate(
        self, model: str, request: HttpRequest, content: Mapping[str, Any]
    ) -> HttpAnswer:
        asked = self._register.generate(model, request, content, input_of(content))
        if refusal := self._unfit(asked, request):
            return refusal
        rule = self._script.choose(asked.call(self._register.began or asked.arrived))
        if rule is not None and not FAULTS[rule.fault].answers:
            return await self._fail_at_once(asked, rule)
        return self._limited(asked) or await self._answer(asked, rule)

    async def _embed(
        self, model: str, request: HttpRequest, route: str, content: Mapping[str, Any]
    ) -> HttpAnswer:
        """Reply with vectors. An answering fault changes only the delivery of the reply."""
        wanted = [content] if route == "embedContent" else content.get("requests") or []
        if len(wanted) > MOST_IN_BATCH:
            raise Refused(
                400,
                "INVALID_ARGUMENT",
                "* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch",
            )
        requests = [plain(one) for one in wanted]
        texts = [input_of(one).text for one in requests]
        sizes = [_dimensions(one) for one in requests]
        asked = self._register.embed(model, request, route, Input(text="\n".join(texts)))
        if refusal := self._unfit(asked, request):
            return refusal
        rule = self._script.choose(asked.call(self._register.began or asked.arrived))
        is_at_once = rule is not None and rule.fault not in VECTOR_FAULTS
        if rule is not None and is_at_once and not FAULTS[rule.fault].answers:
            return await self._fail_at_once(asked, rule)
        if limited := self._limited(asked):
            return limited
        found = [embed(*one) for one in zip(texts, sizes, strict=True)]
        if rule is not None and rule.fault in VECTOR_FAULTS:
            found = VECTOR_FAULTS[rule.fault](found)
        vectors = [{"values": values} for values in found]
        body: dict[str, object] = {"embeddings": vectors}
        if route == "embedContent":
            body = {"embedding": vectors[0] if vectors else {}}
        body["usageMetadata"] = {
            "promptTokenCount": asked.input_tokens,
            "promptTokenDetails": api_bodies.by_modality(asked.modalities),
        }
        draft = Draft(model=model, item_token="", body=api_bodies.encode(body), text=None)
        if rule is not None and rule.fault in OF_ANY_BODY:
            draft = FAULTS[rule.fault].change(draft, self._setting(asked, rule))
        return await self._leave(asked, rule, draft)

    def _unfit(self, asked: ParsedCall, request: HttpRequest) -> HttpAnswer | None:
        try:
            check_input(asked.shown, asked.input_tokens)
            check_deadline(request)
        except Refused as refused:
            draft = Draft(
                model=asked.model, item_token="", status=refused.status, body=refused.body
            )
            return self._finish(asked, draft, "bad-request")
        return None

    def _limited(self, asked: ParsedCall) -> HttpAnswer | None:
        refusal = self._limits.admit(time.monotonic(), asked.input_tokens, asked.model)
        if refusal is None:
            return None
        body = api_bodies.resource_exhausted(
            refusal.quotas, model=asked.model, retry_after_s=refusal.retry_after_s
        )
        draft = Draft(model=asked.model, item_token="", status=429, body=body)
        return self._finish(asked, draft, refusal.outcome)

    def _setting(self, asked: ParsedCall, rule: FaultRule | None) -> Setting:
        return replace(rule.setting, seed=asked.seed) if rule else Setting()

    async def _fail_at_once(self, asked: ParsedCall, rule: FaultRule) -> HttpAnswer:
        draft = Draft(model=asked.model, item_token=asked.line.item_token)
        draft = FAULTS[rule.fault].change(draft, self._setting(asked, rule))
        await _until(asked.arrived + (rule.delay_s or 0.0))
        return self._finish(asked, draft, rule.fault)

    async def _answer(self, asked: ParsedCall, rule: FaultRule | None) -> HttpAnswer:
        loop = asyncio.get_running_loop()
        question = asked.question
        if question is not None and asked.shown.inlines and self._options.answers == "local":
            question = await loop.run_in_executor(
                self._readers, self._pages.fill, question, asked.shown.inlines
            )
        text = await loop.run_in_executor(self._thinker, self._answers.to, question, asked.schema)
        draft = Draft(model=asked.model, item_token=asked.line.item_token, text=text)
        if rule is not None:
            draft = FAULTS[rule.fault].change(draft, self._setting(asked, rule))
        return await self._leave(asked, rule, _capped(draft, asked.max_output_tokens))

    async def _leave(self, asked: ParsedCall, rule: FaultRule | None, draft: Draft) -> HttpAnswer:
        """Wait for the latency, then reply; reply 504 if the client's timeout ends first."""
        latency, setting = self._latency(asked), self._setting(asked, rule)
        if rule is None or rule.fault != "trickle":
            latency += draft.extra_delay_s + (setting.delay_s or 0.0)
        limit = asked.server_timeout_s
        if draft.waits_out:
            latency += LATE_S + (limit or 0.0)
        asked.line = replace(asked.line, drawn_s=latency)
        if limit is not None and latency > limit and not draft.waits_out:
            late = FAULTS["504"].change(draft, setting)
            await _until(asked.arrived + limit)
            return self._finish(asked, late, "server-timeout")
        await _until(asked.arrived + latency)
        outcome = rule.fault if rule else "ok"
        return self._finish(asked, draft, outcome, pace_s=setting.delay_s)

    def _latency(self, asked: ParsedCall) -> float:
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
        self, asked: ParsedCall, draft: Draft, outcome: str, *, pace_s: float | None = None
    ) -> HttpAnswer:
        output_tokens = _output_tokens(draft, asked.max_output_tokens)
        replied = draft.status == 200
        thoughts = 64 if asked.thinks and replied else 0
        if replied:
            self._limits.answered(time.monotonic(), output_tokens + thoughts)
        body = draft.body
        if body is None:
            body = _reply(asked, draft, output_tokens, thoughts)
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

        elapsed_ms = (time.monotonic() - asked.arrived) * 1e3
        return HttpAnswer(
            status=draft.status,
            body=body,
            content_type=draft.content_type,
            delivery=draft.delivery,
            headers={"Server-Timing": f"gfet4t7; dur={elapsed_ms:.0f}", **draft.headers},
            pace_s=0.5 if pace_s is None else pace_s,
            sent=sent,
        )


async def _until(due: float) -> None:
    wait = due - time.monotonic()
    if wait > 0:
        await asyncio.sleep(wait)


def _reply(asked: ParsedCall, draft: Draft, output_tokens: int, thoughts: int) -> bytes:
    usage = {
        "promptTokenCount": asked.input_tokens,
        "candidatesTokenCount": output_tokens,
        "totalTokenCount": asked.input_tokens + output_tokens + thoughts,
        **({"thoughtsTokenCount": thoughts} if thoughts else {}),
    }
    return api_bodies.encode(
        api_bodies.reply(
            text=draft.text,
            finish_reason=draft.finish_reason,
            block_reason=draft.block_reason,
            model=asked.model,
            response_id=asked.line.response_id,
            usage=usage,
            modalities=asked.modalities,
        )
    )


def _token_count(model: str, shown: Input) -> bytes:
    modalities = shown.modalities(model)
    return api_bodies.encode(
        {
            "totalTokens": sum(modalities.values()),
            "promptTokensDetails": api_bodies.by_modality(modalities),
        }
    )


def _model_card(model: str) -> bytes:
    return api_bodies.encode(
        {
            "name": f"models/{model}",
            "displayName": model,
            "inputTokenLimit": INPUT_TOKEN_LIMIT,
            "outputTokenLimit": OUTPUT_TOKEN_LIMIT,
            "supportedGenerationMethods": list(_VERBS),
        }
    )


def _dimensions(request: Mapping[str, Any]) -> int:
    asked = request.get("outputdimensionality")
    if asked is None:
        return DIMENSIONS
    if not isinstance(asked, int) or not 1 <= asked <= DIMENSIONS:
        raise Refused(
            400, "INVALID_ARGUMENT", f"output_dimensionality must be between 1 and {DIMENSIONS}."
        )
    return asked


def _capped(draft: Draft, most: int) -> Draft:
    """Cut the text at the output limit, like the service."""
    if draft.text is None or draft.full_output or estimate_tokens(draft.text) <= most:
        return draft
    return replace(draft, text=draft.text[: most * 4 - 1], finish_reason="MAX_TOKENS")


def _output_tokens(draft: Draft, most: int) -> int:
    if draft.status != 200 or draft.delivery in {Delivery.HANG, Delivery.RESET}:
        return 0
    if draft.full_output:
        return most
    return estimate_tokens(draft.text) if draft.text else 0
