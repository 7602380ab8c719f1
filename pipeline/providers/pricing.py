"""The price of a provider call.

Prices are settings, because providers change their prices without notice.
"""

from __future__ import annotations

from decimal import Decimal

from django.conf import settings

from pipeline.core.errors import CallDetails

_MILLION = Decimal(1_000_000)


def cost_usd(provider: str, details: CallDetails) -> Decimal:
    """Return the price of one call in US dollars. Thinking tokens are billed as output tokens."""
    if provider == "local":
        return Decimal(0)
    spent = (
        details.input_tokens * settings.GEMINI_PRICE_INPUT_USD_PER_M
        + (details.output_tokens + details.thinking_tokens) * settings.GEMINI_PRICE_OUTPUT_USD_PER_M
    )
    return _rounded(spent)


def embedding_cost_usd(details: CallDetails) -> Decimal:
    """Return the price of one embedding call in US dollars: only input tokens are billed."""
    return _rounded(details.input_tokens * settings.GEMINI_PRICE_EMBEDDING_USD_PER_M)


def _rounded(spent: Decimal) -> Decimal:
    return Decimal(spent / _MILLION).quantize(Decimal("0.000001"))
