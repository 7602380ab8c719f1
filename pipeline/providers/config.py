"""The provider's configuration: the only reader of Django's settings among the providers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from django.conf import settings

from medproc.env import ProviderName

EMULATOR_KEY = "emulator"
"""Sent when no key is configured; the system checks allow this only for loopback URLs."""


@dataclass(frozen=True, kw_only=True)
class ProviderConfig:
    """Which provider answers, and how to reach it; the local engine needs only its name."""

    name: ProviderName
    model: str = ""
    base_url: str = ""
    """Empty for the real service."""
    api_key: str = field(default=EMULATOR_KEY, repr=False)

    @classmethod
    def of_settings(cls) -> Self:
        """Return the configured provider."""
        if settings.MEDPROC_PROVIDER == "local":
            return cls(name="local")
        return cls(
            name="gemini",
            model=settings.GEMINI_MODEL,
            base_url=settings.GEMINI_BASE_URL or "",
            api_key=str(settings.GEMINI_API_KEY or EMULATOR_KEY),
        )

    @classmethod
    def of_embedder(cls) -> Self | None:
        """Return the configured provider of vectors; None if the search needs no provider."""
        if settings.CODE_EMBEDDER != "gemini":
            return None
        return replace(cls.of_settings(), model=settings.CODE_EMBEDDING_MODEL)
