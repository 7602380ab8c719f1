"""Choose the provider that answers in this process.

A provider's module is imported only if the configuration names that provider. A local run must not
pay the two seconds that google.genai takes to load.
"""

from __future__ import annotations

import os
from typing import cast, get_args

from medproc.env import ProviderName
from pipeline.core.types import ProviderModel
from pipeline.providers.base import EmbeddingProvider, Provider
from pipeline.providers.config import ProviderConfig

NAMES: tuple[str, ...] = tuple(sorted(get_args(ProviderName)))
"""The names of all providers."""

_made: dict[tuple[int, ProviderConfig], Provider] = {}
"""By process id: a client must not survive a fork, and one client per process keeps its connections
open from step to step."""


def provider_for(config: ProviderConfig) -> Provider:
    """Return this process's provider for `config`; the first call makes the provider."""
    key = (os.getpid(), config)
    # Two threads may both make a provider; `setdefault` keeps the first, so all threads share it.
    return _made.get(key) or _made.setdefault(key, _make(config))


def embedding_provider() -> EmbeddingProvider | None:
    """Return this process's provider of vectors; None if the settings ask for none."""
    config = ProviderConfig.of_embedder()
    return None if config is None else cast(EmbeddingProvider, provider_for(config))


def named_provider(config: ProviderConfig) -> ProviderModel:
    """Return provider and model as `provider_calls` stores them; makes no client."""
    if config.name == "gemini":
        return ProviderModel(provider="gemini", model=config.model)
    from pipeline.providers.local import LocalProvider

    return ProviderModel(provider=LocalProvider.name, model=LocalProvider.model)


def warm(config: ProviderConfig) -> None:
    """Do all one-time work of a first call before a process forks; leave no client behind.

    The local engine also reads the replies of a model, so every provider needs the lexicon.
    """
    from pipeline.providers.local.names.lexicon import lexicon

    if config.name == "gemini":
        from pipeline.providers.gemini import warm_up

        warm_up()
    lexicon()


def warm_engine() -> None:
    """Do all one-time work of the local engine before a process forks: 0.8 s of CPU.

    Every provider needs the engine, which also reads what a model is asked about.
    """
    from pipeline.providers.local.warm_up import warm_up

    warm_up()


def _make(config: ProviderConfig) -> Provider:
    if config.name == "local":
        from pipeline.providers.local import LocalProvider

        return LocalProvider()
    from pipeline.providers.gemini import GeminiProvider

    return GeminiProvider(api_key=config.api_key, model=config.model, base_url=config.base_url)
