"""async-batch-llm with its own Gemini model, retries and common cooldown after a 429."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from async_batch_llm import (
    GeminiModel,
    GeminiStrategy,
    ProcessorConfig,
    RateLimitConfig,
    RetryConfig,
    process_prompts,
)

from bench.peers.sdk import client_of
from bench.peers.work import PeerWork


def run(work: PeerWork) -> Iterable[tuple[str, str]]:
    """Answer all items; each pair is a token and a reply."""
    return asyncio.run(_run(work))


async def _run(work: PeerWork) -> list[tuple[str, str]]:
    with client_of(work) as client:
        strategy = GeminiStrategy(
            GeminiModel(work.model, client), generation_config=dict(work.config)
        )
        config = ProcessorConfig(
            concurrency=work.slots,
            retry=RetryConfig(
                max_attempts=work.attempts,
                initial_wait=work.backoff_s,
                max_wait=work.most_backoff_s,
                max_rate_limit_retries=work.attempts,
            ),
            # The hint of a 429 is the least cooldown. The library's own default is 300 s, with a
            # slow start afterwards: both cost more time than the 429s that they avoid here.
            rate_limit=RateLimitConfig(
                cooldown_seconds=0.0,
                slow_start_items=0,
                slow_start_initial_delay=0.0,
                slow_start_final_delay=0.0,
            ),
        )
        try:
            batch = await process_prompts(strategy, list(work.items.items()), config=config)
        finally:
            await client.aio.aclose()
        return [(result.item_id, result.output or "") for result in batch.results]
