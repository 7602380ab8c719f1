"""The rate limiter of the configured provider and model, with one Redis client per process."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings

from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import named_provider
from pipeline.ratelimit import RateLimiter


def named_limiter() -> RateLimiter:
    """Return the rate limiter of the configured provider and model."""
    served = named_provider(ProviderConfig.of_settings())
    return _limiter_of(served.provider, served.model, settings.REDIS_URL)


@lru_cache(maxsize=4)
def _limiter_of(provider: str, model: str, _url: str) -> RateLimiter:
    return RateLimiter.for_(provider, model)
