"""asyncio with a semaphore; a call that waits for its retry holds no slot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from google import genai
from tenacity import AsyncRetrying

from bench.peers.sdk import ask_async, client_of, retries
from bench.peers.work import PeerWork


def run(work: PeerWork) -> Iterable[tuple[str, str]]:
    """Answer all items; each pair is a token and a reply."""
    return asyncio.run(_run(work))


async def _run(work: PeerWork) -> list[tuple[str, str]]:
    with client_of(work) as client:
        slots = asyncio.Semaphore(work.slots)
        try:
            texts = await asyncio.gather(
                *(_answer(client, work, slots, prompt) for prompt in work.items.values())
            )
        finally:
            await client.aio.aclose()
        return list(zip(work.items, texts, strict=True))


async def _answer(
    client: genai.Client, work: PeerWork, slots: asyncio.Semaphore, prompt: str
) -> str:
    async def once() -> str:
        async with slots:
            return await ask_async(client, work, prompt)

    text: str = await AsyncRetrying(**retries(work))(once)
    return text
