"""The stage of Pass 2: all zones run in parallel, and each encounter is all or nothing.

A call thread checks a reply, structures its attributes, and hands the rows to the executor. The
enriched entities of an encounter are published in the flush in which its last zone ends.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from pydantic import BaseModel

from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import ErrorCode, ReplyError
from pipeline.core.states import WORK_TERMINAL, WorkStatus
from pipeline.core.types import PageSlice, PageText, Span
from pipeline.core.types import slices as cut
from pipeline.execution import executor
from pipeline.execution.attachments import Shown, Source, source_of
from pipeline.execution.heartbeat import call_with_lease
from pipeline.execution.splits import Split
from pipeline.execution.step_result import (
    AllItemsEnded,
    StepCompleted,
    StepFailed,
    StepResult,
)
from pipeline.execution.step_work import AcceptedReply
from pipeline.models import Encounter, ZoneResult, selectors
from pipeline.providers.base import Request
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import provider_for
from pipeline.providers.local import LocalProvider
from pipeline.providers.prompts import estimate_tokens, render_enrichment
from pipeline.providers.reply_items import MAX_BAD_SHARE
from pipeline.providers.schemas import EnrichmentReply, FoundAttributes
from pipeline.stages.entity_facts import KnownEntity
from pipeline.stages.item_failures import failure_of_items
from pipeline.stages.pass2 import store
from pipeline.stages.pass2.assemble import enriched
from pipeline.stages.pass2.record_lists import list_rows
from pipeline.stages.pass2.zone_facts import ZoneFacts
from pipeline.stages.provider_passes import call_request
from pipeline.transitions import Failure, Flush, Lease

MAX_OUTPUT_TOKENS = 16_384
"""Room for 40 entities with all their attributes."""


def run(lease: Lease, deadline: StepDeadline) -> StepResult:
    """Enrich the entities of every encounter that is not enriched yet."""
    pages = selectors.page_texts(lease.shell_file_id)
    zones, facts = store.plan(lease, pages)
    with source_of(lease.shell_file_id, partial(call_with_lease, lease, deadline)) as source:
        work = ZoneWork(lease, pages, facts, zones, source)
        result = executor.run(
            lease,
            work,
            provider_for(ProviderConfig.of_settings()),
            deadline=deadline,
            publisher=work,
        )
    if not isinstance(result, AllItemsEnded):
        return result
    every = [zone for of in zones.values() for zone in of]
    failure = failure_of_items(every) or work.refusal
    if failure is not None:
        return StepFailed(failure=failure, is_of_items=True)
    bad = [zone for zone in every if zone.attributes_rejected]
    # The lists read the entities again, with their attributes: a large record fits once only.
    del work, facts, pages, zones, every
    lists = list_rows(lease, deadline)

    def publish() -> None:
        store.conclude(lease, bad, lists)

    return StepCompleted(publish=publish)


class ZoneWork:
    """The zones of a record as the executor needs them; publishes their encounters."""

    def __init__(
        self,
        lease: Lease,
        pages: Mapping[int, PageText],
        facts: ZoneFacts,
        zones: Mapping[UUID, Sequence[ZoneResult]],
        source: Source | None = None,
    ) -> None:
        self._lease = lease
        self._pages = pages
        self._source = source
        self._facts = facts
        self._zones = zones
        self._patients = dict(
            Encounter.objects.filter(shell_file_id=lease.shell_file_id).values_list(
                "id", "patient_id"
            )
        )
        self._whole = _whole_pages(lease.shell_file_id, pages) if source else {}
        self._overhead = estimate_tokens(render_enrichment("", (), ()))
        self.refusal: Failure | None = None
        """The first encounter whose attributes could not be published."""
        # The publication of an encounter clears the outputs of its zones.
        open_groups = {
            encounter: of for encounter, of in zones.items() if not all(map(store.is_published, of))
        }
        self.groups: Sequence[Hashable] = list(open_groups)
        rows = [zone for of in open_groups.values() for zone in of]
        self.rows: Sequence[ZoneResult] = [z for z in rows if z.status not in WORK_TERMINAL]
        self.known: Sequence[ZoneResult] = [z for z in rows if z.status == WorkStatus.SUCCEEDED]

    def group_of(self, row: ZoneResult) -> Hashable:
        encounter: UUID = row.healthcare_encounter_id
        return encounter

    @property
    def schema(self) -> type[BaseModel]:
        return EnrichmentReply

    def pages_of(self, row: ZoneResult) -> Sequence[int]:
        return self._facts.pages_of(row)

    def size_of(self, split: Split[ZoneResult]) -> int:
        listed = self._facts.characters_of(split.row)
        if split.name:
            # The halves of a zone are alike.
            listed //= 2 ** len(split.name)
        text = sum(len(part.text) for part in self._slices(split))
        return self._overhead + (listed + text) // 4

    def request(self, split: Split[ZoneResult]) -> Request:
        shown = Shown(slices=self._slices(split))
        if self._source is not None:
            own = self._whole.get(split.row.healthcare_encounter_id, frozenset())
            shown = self._source.beside_text(shown.slices, only=own)
        facts = [each.facts for each in self._of(split).values()]
        prompt = render_enrichment(split.token, shown.slices, facts)
        return call_request(
            split.token, prompt, shown, schema=EnrichmentReply, max_output_tokens=MAX_OUTPUT_TOKENS
        )

    def accept(self, split: Split[ZoneResult], output: BaseModel) -> AcceptedReply:
        reply = cast(EnrichmentReply, output)
        asked = self._of(split)
        told, unknown = _by_key(reply, asked)
        slices = self._slices(split)
        reads_again = LocalProvider.name != settings.MEDPROC_PROVIDER
        found = []
        neighbours = [each.facts for each in asked.values()]
        for key, each in asked.items():
            made = enriched(
                each.facts,
                told.get(key),
                None,
                slices,
                neighbours=neighbours,
                reads_again=reads_again,
            )
            found.append(
                {
                    "id": str(each.id),
                    "category": each.facts.category,
                    "attributes": made.attributes,
                    "code": made.code
                    and {
                        "system": made.code.system,
                        "code": made.code.code,
                        "display": made.code.display,
                    },
                    "flags": list(made.flags),
                    "second_reading": made.second_reading,
                }
            )
        return _accepted(found, unknown + reply.items_rejected)

    def merge(
        self, row: ZoneResult, outputs: Sequence[tuple[Split[ZoneResult], Mapping[str, Any]]]
    ) -> AcceptedReply:
        return _accepted(
            [found for _, output in outputs for found in output["enriched"]],
            sum(output["rejected"] for _, output in outputs),
        )

    def start(self, row: ZoneResult, flush: Flush) -> None:
        """Change nothing: no row holds the state of an encounter in this pass."""

    def settle(self, group: Hashable, flush: Flush) -> Sequence[UUID]:
        zones = self._zones[cast(UUID, group)]
        if any(zone.status != WorkStatus.SUCCEEDED for zone in zones):
            return ()
        patient = self._patients[cast(UUID, group)]
        for zone in zones:
            flush.results.extend(
                store.enriched_row(self._lease, zone, patient, found)
                for found in zone.unpacked_output["enriched"]
            )
        return [zone.id for zone in zones]

    def refuse(self, group: Hashable, code: ErrorCode, flush: Flush) -> None:
        self.refusal = self.refusal or Failure(
            code=code,
            message="the attributes of an encounter could not be published; the replies are kept,"
            " and a retry needs no call",
            encounter_id=cast(UUID, group),
        )

    def _of(self, split: Split[ZoneResult]) -> dict[str, KnownEntity]:
        """Return the entities of a split by the keys of its prompt."""
        return self._facts.of(split.row, set(split.pages))

    def _slices(self, split: Split[ZoneResult]) -> tuple[PageSlice, ...]:
        spans = [Span(*span) for span in split.row.spans]
        if split.name:
            spans = [span for span in spans if span.page in set(split.pages)]
        return cut(spans, self._pages)


def _accepted(found: Sequence[Mapping[str, Any]], rejected: int) -> AcceptedReply:
    return AcceptedReply(
        output={"enriched": list(found), "rejected": rejected},
        counts={"entities_enriched": len(found), "attributes_rejected": rejected},
    )


def _by_key(
    reply: EnrichmentReply, asked: Mapping[str, KnownEntity]
) -> tuple[dict[str, FoundAttributes], int]:
    """Return the attributes by the key of their entity, and the number of unusable ones.

    Two different answers about one entity are both left out. Raises ReplyError (PARSE_SCHEMA) if
    more than a fifth of the answers name no entity of the question.
    """
    told: dict[str, FoundAttributes] = {}
    doubled: set[str] = set()
    unknown = 0
    for each in reply.entities:
        if each.id not in asked:
            unknown += 1
        elif told.setdefault(each.id, each) != each:
            doubled.add(each.id)
    if unknown * MAX_BAD_SHARE > len(reply.entities):
        raise ReplyError(
            f"{unknown} of {len(reply.entities)} answers name no entity of the question",
            code=ErrorCode.PARSE_SCHEMA,
        )
    return {key: each for key, each in told.items() if key not in doubled}, unknown + len(doubled)


def _whole_pages(shell_file_id: UUID, pages: Mapping[int, PageText]) -> dict[UUID, frozenset[int]]:
    """Return the pages that belong to one encounter alone, by encounter.

    Only such a page is attached: another page would show the text of another encounter too.
    """
    whole: dict[UUID, frozenset[int]] = {}
    for encounter, spans in selectors.spans_by_encounter(shell_file_id).items():
        held: dict[int, int] = {}
        for span in spans:
            shown = pages[span.page].text[span.start : span.end]
            held[span.page] = held.get(span.page, 0) + len("".join(shown.split()))
        whole[encounter] = frozenset(
            page for page, size in held.items() if size == len("".join(pages[page].text.split()))
        )
    return whole
