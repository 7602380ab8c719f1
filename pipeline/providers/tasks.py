"""The tasks that a prompt can set: one entry each.

An entry names the reply, the function of the local engine, and the format of the pages. The words
of a task are in `prompts/<name>_v<version>.txt`. A new task is one entry, its
file of words, its reply model in `schemas`, and its engine in `local`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from pydantic import BaseModel

from pipeline.providers.schemas import (
    DiscoveryReply,
    EnrichmentReply,
    EntityReply,
    NarrativeReply,
)

if TYPE_CHECKING:
    from pipeline.providers.prompts import Question


@dataclass(frozen=True, kw_only=True)
class Task:
    """One kind of prompt, with the reply that the prompt asks for."""

    name: str
    """Names the task in the prompt, and the file of its words: a-z and underscores only, because
    `read_prompt` recognises no other name."""
    reply: type[BaseModel]
    results: str
    """Field of the reply that lists the results."""
    engine: str
    """`module:function` of the local engine."""
    has_line_numbers: bool = False
    """Whether the reply names lines; the prompt then keeps the text of attached pages too."""
    has_zones: bool = False
    """Whether the prompt can ask for the zones of the record as well."""
    has_facts: bool = False
    """Whether the prompt lists entities of earlier passes."""

    def __post_init__(self) -> None:
        if not re.fullmatch("[a-z_]+", self.name):
            raise ValueError("the name of a task consists of a-z and underscores")

    def answer(self, question: Question) -> BaseModel:
        """Answer a question of this task with the local engine."""
        # The import is late, because the word lists of the engine take time to load.
        module, _, function = self.engine.partition(":")
        engine: Callable[[Question], BaseModel] = getattr(import_module(module), function)
        return engine(question)


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            name="discovery",
            reply=DiscoveryReply,
            results="encounters",
            engine="pipeline.providers.local.discovery.encounters:discover",
            has_line_numbers=True,
        ),
        Task(
            name="entities",
            reply=EntityReply,
            results="entities",
            engine="pipeline.providers.local.engine:detect",
            has_zones=True,
        ),
        Task(
            name="enrichment",
            reply=EnrichmentReply,
            results="entities",
            engine="pipeline.providers.local.enrichment.answer:enrich",
            has_facts=True,
        ),
        Task(
            name="narrative",
            reply=NarrativeReply,
            results="sentences",
            engine="pipeline.providers.local.narrative.answer:narrate",
            has_facts=True,
        ),
    )
}
"""Every task by its name."""
