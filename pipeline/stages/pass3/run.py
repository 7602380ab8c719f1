"""The stage of Pass 3: all narratives are written in parallel, and each sentence is checked.

A sentence that its cited entities do not support is stored with the reasons, and is not part of the
summary. The sentences of a narrative are published together.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from pydantic import BaseModel

from pipeline.clinical.narrative.check import check
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import ErrorCode
from pipeline.core.states import WORK_TERMINAL, WorkStatus
from pipeline.execution import executor
from pipeline.execution.attachments import Shown
from pipeline.execution.splits import Split
from pipeline.execution.step_result import (
    AllItemsEnded,
    StepCompleted,
    StepFailed,
    StepResult,
)
from pipeline.execution.step_work import AcceptedReply
from pipeline.models import NarrativeResult
from pipeline.providers.base import Request
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import provider_for
from pipeline.providers.prompts import estimate_tokens, render_narrative
from pipeline.providers.schemas import NarrativeReply, WrittenSentence
from pipeline.stages.entity_facts import EntitiesByEncounter, KnownEntity, keyed, known_entities
from pipeline.stages.item_failures import failure_of_items
from pipeline.stages.pass3 import store
from pipeline.stages.provider_passes import call_request
from pipeline.transitions import Failure, Flush, Lease

MAX_OUTPUT_TOKENS = 8_192
"""Room for a hundred sentences."""
NARRATIVES_AT_ONCE = 8
"""Narratives whose entities stay in memory with the keys of their prompts."""
UNKNOWN_KEY = "not_cited:unknown"
"""The reason of a sentence that names an entity outside its question."""


def run(lease: Lease, deadline: StepDeadline) -> StepResult:
    """Write every narrative of the record that is not written yet."""
    entities = known_entities(lease.shell_file_id, with_attributes=True)
    narratives = store.plan(lease, entities)
    work = NarrativeWork(lease, entities, narratives)
    result = executor.run(
        lease,
        work,
        provider_for(ProviderConfig.of_settings()),
        deadline=deadline,
        publisher=work,
    )
    if not isinstance(result, AllItemsEnded):
        return result
    failure = failure_of_items(narratives) or work.refusal
    if failure is not None:
        return StepFailed(failure=failure, is_of_items=True)

    def publish() -> None:
        store.conclude(lease, narratives)

    return StepCompleted(publish=publish)


class NarrativeWork:
    """The narratives of a record as the executor needs them; publishes their sentences."""

    def __init__(
        self, lease: Lease, entities: EntitiesByEncounter, narratives: Sequence[NarrativeResult]
    ) -> None:
        self._lease = lease
        self._entities = {each.id: each for of in entities.values() for each in of}
        self._narratives = {narrative.id: narrative for narrative in narratives}
        self._overhead = estimate_tokens(render_narrative("", (), {}))
        self._sizes: dict[UUID, int] = {}
        # The plan, the request and the reply of one narrative ask for the same entities.
        self._of = lru_cache(maxsize=NARRATIVES_AT_ONCE)(self._keyed)
        self.refusal: Failure | None = None
        """The first narrative whose sentences could not be published."""
        # The publication of a narrative clears its output.
        rows = [
            each
            for each in narratives
            if each.status != WorkStatus.SUCCEEDED or each.output is not None
        ]
        self.groups: Sequence[Hashable] = [each.id for each in rows]
        self.rows: Sequence[NarrativeResult] = [r for r in rows if r.status not in WORK_TERMINAL]
        self.known: Sequence[NarrativeResult] = [
            r for r in rows if r.status == WorkStatus.SUCCEEDED
        ]

    def group_of(self, row: NarrativeResult) -> Hashable:
        return cast(UUID, row.id)

    @property
    def schema(self) -> type[BaseModel]:
        return NarrativeReply

    def pages_of(self, row: NarrativeResult) -> Sequence[int]:
        # The prompt shows no page, so half of the pages would make no smaller prompt.
        return (row.page_range_start,)

    def size_of(self, split: Split[NarrativeResult]) -> int:
        size = self._sizes.get(split.row.id)
        if size is None:
            listed = sum(len(str(each.facts.as_json())) for each in self._of(split.row).values())
            size = self._sizes[split.row.id] = self._overhead + listed // 4
        return size

    def request(self, split: Split[NarrativeResult]) -> Request:
        facts = [each.facts for each in self._of(split.row).values()]
        prompt = render_narrative(split.token, facts, limits_of(split.row))
        return call_request(
            split.token,
            prompt,
            Shown(slices=()),
            schema=NarrativeReply,
            max_output_tokens=MAX_OUTPUT_TOKENS,
        )

    def accept(self, split: Split[NarrativeResult], output: BaseModel) -> AcceptedReply:
        reply = cast(NarrativeReply, output)
        known = self._of(split.row)
        most = settings.NARRATIVE_MAX_SENTENCES
        told = [_judged(sentence, known) for sentence in reply.sentences[:most]]
        return _accepted(told)

    def merge(
        self,
        row: NarrativeResult,
        outputs: Sequence[tuple[Split[NarrativeResult], Mapping[str, Any]]],
    ) -> AcceptedReply:
        return _accepted([each for _, output in outputs for each in output["sentences"]])

    def start(self, row: NarrativeResult, flush: Flush) -> None:
        """Change nothing: a narrative has no parent."""

    def settle(self, group: Hashable, flush: Flush) -> Sequence[UUID]:
        narrative = self._narratives[cast(UUID, group)]
        if narrative.status != WorkStatus.SUCCEEDED:
            return ()
        flush.results.extend(
            store.sentence_row(self._lease, narrative, index, told)
            for index, told in enumerate(narrative.unpacked_output["sentences"])
        )
        return [narrative.id]

    def refuse(self, group: Hashable, code: ErrorCode, flush: Flush) -> None:
        narrative = self._narratives[cast(UUID, group)]
        self.refusal = self.refusal or Failure(
            code=code,
            message="the sentences of a narrative could not be published; the reply is kept, and a"
            " retry needs no call",
            encounter_id=narrative.encounter_id,
        )

    def _keyed(self, row: NarrativeResult) -> Mapping[str, KnownEntity]:
        return keyed([self._entities[each] for each in row.entity_ids if each in self._entities])


def limits_of(row: NarrativeResult) -> dict[str, int]:
    """Return the limits that the prompt of a narrative states."""
    return {
        "sentences": settings.NARRATIVE_MAX_SENTENCES,
        "words": settings.NARRATIVE_MAX_WORDS,
        "record": int(row.healthcare_encounter_id is None),
    }


def _judged(sentence: WrittenSentence, known: Mapping[str, KnownEntity]) -> dict[str, Any]:
    """Return a sentence with the entities that it cites and the reasons against it."""
    cited = [known[key] for key in dict.fromkeys(sentence.ids) if key in known]
    reasons = list(
        check(
            sentence.text,
            [each.facts for each in cited],
            max_words=settings.NARRATIVE_MAX_WORDS,
        )
    )
    if len(cited) < len(set(sentence.ids)):
        reasons.append(UNKNOWN_KEY)
    return {
        "text": sentence.text,
        "entity_ids": [str(each.id) for each in cited],
        "supported": not reasons and bool(cited),
        "reasons": reasons,
    }


def _accepted(told: Sequence[Mapping[str, Any]]) -> AcceptedReply:
    supported = sum(bool(each["supported"]) for each in told)
    return AcceptedReply(
        output={"sentences": list(told)},
        counts={
            "sentences_supported": supported,
            "sentences_unsupported": len(told) - supported,
        },
    )
