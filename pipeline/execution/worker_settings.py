"""The settings under which a process works on a record, in the form that the session stores.

A submission and each worker may run on different hosts. So each of them states its own settings.
"""

from __future__ import annotations

from django.conf import settings

from pipeline.core.types import WorkSettings
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import named_provider


def own_settings() -> WorkSettings:
    """Return the settings of this process."""
    serving = named_provider(ProviderConfig.of_settings())
    return WorkSettings(
        provider=serving.provider,
        model=serving.model,
        input_mode=settings.PASS_INPUT,
        job_max_retries=settings.JOB_MAX_RETRIES,
        retry_delay_s=float(settings.RETRY_DELAY_S),
        more={
            "max_retries": settings.PASS1_MAX_RETRIES,
            "concurrency_limit": settings.PASS1_CONCURRENCY_LIMIT,
            "encounter_limit": settings.PASS1_ENCOUNTER_LIMIT,
            "chunk_pages": settings.PASS05_CHUNK_PAGES,
            "batch_min_pages": settings.PASS1_BATCH_MIN_PAGES,
            "batch_max_pages": settings.PASS1_BATCH_MAX_PAGES,
            "batch_hard_ceiling": settings.PASS1_BATCH_HARD_CEILING,
            "include_zones_in_prompt": not settings.PASS1_DISABLE_ZONES,
        },
    )
