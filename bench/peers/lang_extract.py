"""langextract: its Gemini model, called with all prompts as one batch of 30 threads.

`langextract.extract` writes its own prompts, so the benchmark uses only the part of langextract
that sends calls. By default, `extract` passes ten prompts to this part and waits for the slowest
call.
"""

from __future__ import annotations

from collections.abc import Iterable

from langextract.providers.gemini import GeminiLanguageModel

from bench.peers.work import PeerWork


def run(work: PeerWork) -> Iterable[tuple[str, str]]:
    """Answer all items; each pair is a token and a reply."""
    model = GeminiLanguageModel(
        model_id=work.model,
        api_key="bench",
        http_options={"base_url": work.url, "client_args": {"trust_env": False}},
        max_workers=work.slots,
        max_retries=work.attempts - 1,
        retry_delay=work.backoff_s,
        max_retry_delay=work.most_backoff_s,
        **work.config,
    )
    replies = model.infer(list(work.items.values()))
    return [
        (token, scored[0].output or "") for token, scored in zip(work.items, replies, strict=True)
    ]
