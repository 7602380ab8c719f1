"""The conditions that the results of a pass depend on: the key of `processed_documents`."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass

from django.conf import settings

from pipeline.codes.version import code_table_version
from pipeline.core.states import CALLING_STEPS, Step
from pipeline.core.types import ProviderModel
from pipeline.documents import reader
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import named_provider
from pipeline.providers.prompts import PROMPT_VERSION
from pipeline.providers.schemas import SCHEMA_VERSION

BY_CODES = frozenset({Step.PASS1_5, Step.PASS2, Step.PASS3})
"""The passes that a new code table makes run again."""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The columns of `processed_documents` that must be equal for a reuse."""

    engine: str
    model_version: str
    prompt_version: str = ""
    schema_version: str = ""
    zones: bool = False
    input_mode: str = ""
    code_table_version: str = ""
    plan: str = ""
    """The settings of the sizes of chunks and batches. A reply is found by its prompt, which
    follows from the plan; the plan decides only whether a whole pass is there to be reused."""

    def as_columns(self) -> dict[str, str | bool]:
        """Return the values by column."""
        return asdict(self)


def conditions_of(step: Step, serving: ProviderModel | None = None) -> Conditions:
    """Return the conditions under which this process runs a pass.

    `serving` is the provider and model that the pass asks; the default is that of the settings.
    """
    codes = code_table_version() if step in BY_CODES else ""
    if step is Step.PAGES:
        return Conditions(engine="reader", model_version=reader.reader_version())
    if step not in CALLING_STEPS:
        return Conditions(engine="none", model_version="", code_table_version=codes)
    asked = serving or named_provider(ProviderConfig.of_settings())
    return Conditions(
        engine=_engine(asked.provider),
        model_version=asked.model,
        prompt_version=PROMPT_VERSION,
        schema_version=SCHEMA_VERSION,
        zones=not settings.PASS1_DISABLE_ZONES,
        input_mode=settings.PASS_INPUT,
        code_table_version=codes,
        plan=f"{settings.PASS05_CHUNK_PAGES} {settings.PASS1_BATCH_MIN_PAGES}"
        f"-{settings.PASS1_BATCH_MAX_PAGES} {settings.PASS1_BATCH_HARD_CEILING}"
        f" {settings.PASS1_BATCH_MAX_TOKENS}",
    )


def _engine(provider: str) -> str:
    """Return the provider's name; another address than the usual one may answer otherwise."""
    url = ProviderConfig.of_settings().base_url
    if not url:
        return provider
    return f"{provider} at {hashlib.sha256(url.encode()).hexdigest()[:8]}"
