"""Choose the provider that answers in this process.

Each provider's module is imported only when the configuration names that provider: a local run must
not pay the two seconds that google.genai takes to load.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, get_args

from medproc.env import ProviderName
from pipeline.core.types import ProviderModel
from pipeline.providers.base import Provider

KEYLESS = "emulator"
"""The key that is sent when no key is configured; the system checks allow this only for loopback
URLs.
"""

NAMES: tuple[str, ...] = tuple(sorted(get_args(ProviderName)))
"""The names of all providers."""

_made: dict[tuple[int, str, str, str], Provider] = {}


def provider_for(settings: Any) -> Provider:
    """Return this process's provider as the settings name it; made when first asked for.

    A process that was forked makes its own, and one whose settings change gets another.
    """
    key = (os.getpid(), *_named(settings))
    return _made.get(key) or _made.setdefault(key, _make(settings))


def named_provider(settings: Any) -> ProviderModel:
    """Return whom this process asks, as `provider_calls` names it; makes no client."""
    if settings.MEDPROC_PROVIDER == "gemini":
        return ProviderModel(provider="gemini", model=settings.GEMINI_MODEL)
    from pipeline.providers.local import LocalProvider

    return ProviderModel(provider=LocalProvider.name, model=LocalProvider.model)


def warm(settings: Any) -> None:
    """Load what a process should load before it forks; makes no client and no connection."""
    import_module(f"pipeline.providers.{settings.MEDPROC_PROVIDER}")


def _named(settings: Any) -> tuple[str, str, str]:
    if settings.MEDPROC_PROVIDER != "gemini":
        return ("local", "", "")
    return ("gemini", settings.GEMINI_MODEL, settings.GEMINI_BASE_URL or "")


def _make(settings: Any) -> Provider:
    if settings.MEDPROC_PROVIDER != "gemini":
        from pipeline.providers.local import LocalProvider

        return LocalProvider()
    from pipeline.providers.gemini import GeminiProvider

    return GeminiProvider(
        api_key=str(settings.GEMINI_API_KEY or KEYLESS),
        model=settings.GEMINI_MODEL,
        base_url=settings.GEMINI_BASE_URL or "",
    )
