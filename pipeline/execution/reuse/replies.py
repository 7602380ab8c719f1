"""The replies of one step: kept for later records, and taken from earlier records.

Replies are taken in one fenced transaction before the first call: all of them or none. An item that
got a reply is then in the same state as an item that an earlier run of the step had answered.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic
from uuid import UUID

from django.db import connection
from django.db.models import F, Sum
from django.utils import timezone
from pydantic import BaseModel

from pipeline.core.deadline import StepDeadline
from pipeline.core.redaction import redacted
from pipeline.core.types import ProviderModel
from pipeline.execution.attachments import without_attachments
from pipeline.execution.heartbeat import call_with_lease
from pipeline.execution.reuse.conditions import Conditions, conditions_of
from pipeline.execution.reuse.kept import compressed, packed, unpacked
from pipeline.execution.splits import Split, pages_of
from pipeline.execution.step_work import AcceptedReply, GroupPublisher, StepWork, W
from pipeline.models import KeptReply, ProcessedDocument, ProviderCall, Reuse, ShellFile
from pipeline.providers.base import Provider, Request
from pipeline.providers.local import LocalProvider
from pipeline.transitions import Flush, Lease, Parking, board, fenced, row_of, write

logger = logging.getLogger(__name__)

WITH_SECOND_READER = 24
"""Items that are judged and published together: the second reading of ten pages has 3 MB."""
ALONE = 500
"""The same for replies of the local engine, which have no second reading."""

# The newest reply to each prompt, from records of which this pass is complete. The digest covers
# owner, bytes and conditions, so that no row of another owner can match.
_FIND = """
SELECT DISTINCT ON (k.lookup) k.lookup, k.work_item_id
FROM kept_replies k
JOIN processed_documents p ON p.shell_file_id = k.shell_file_id AND p.step = k.step
WHERE k.lookup = ANY(%(lookups)s) AND k.step = %(step)s AND k.shell_file_id <> %(shell_file)s
  AND p.owner = %(owner)s AND p.document_hash = %(hash)s
ORDER BY k.lookup, k.created_at DESC, k.work_item_id
"""


class StepReplies(Generic[W]):
    """The replies that a step keeps and takes; a record without an owner does neither."""

    def __init__(self, lease: Lease, work: StepWork[W], provider: Provider) -> None:
        self._lease = lease
        self._work = work
        record = ShellFile.objects.values("owner", "sha256", "forced").get(id=lease.shell_file_id)
        self._owner: str = record["owner"]
        self._sha256: str = record["sha256"]
        self._is_forced: bool = record["forced"]
        self._conditions = conditions_of(
            lease.step, ProviderModel(provider=provider.name, model=provider.model)
        )
        self._prompts: dict[UUID, str] = {}
        """Digests of the prompts of whole items; call threads add to it."""
        self._at_once = ALONE if provider.name == LocalProvider.name else WITH_SECOND_READER
        self._taken: frozenset[UUID] = frozenset()
        self._settled: frozenset[Hashable] = frozenset()
        self._has_looked = False

    def note(self, split: Split[W], request: Request) -> None:
        """Note the prompt of a whole item that is being asked about. Runs in a call thread."""
        if self._owner and not split.name:
            self._prompts[split.row.id] = _digest(request.prompt, split.token)

    def compressed(self, reply: BaseModel) -> bytes:
        """Return a reply in the form in which it is kept. Runs in a call thread."""
        return compressed(reply) if self._owner else b""

    def keep(self, row: W, parts: Mapping[str, bytes], flush: Flush) -> None:
        """Keep the replies to an item for later records; `parts` holds them by split."""
        if not self._owner or not parts or not all(parts.values()):
            return
        flush.kept.append(
            {
                "work_item_id": str(row.id),
                "shell_file_id": str(self._lease.shell_file_id),
                "step": self._lease.step.value,
                "lookup": self._lookup(row),
                "model_version": row.ai_model_used,
                "reply": "\\x" + packed(parts).hex(),
            }
        )

    def take(
        self, deadline: StepDeadline, publisher: GroupPublisher[W] | None
    ) -> Iterator[StepWork[W]]:
        """Give the open items the replies of earlier records; yield the groups to publish next.

        Each yielded work has whole groups and no open item. `left` is the rest of the work.
        """
        if not self._owner or self._is_forced or not self._work.rows or not self._has_source():
            return
        self._has_looked = True
        found = {row.id: kept for row, kept in self._found()}
        for portion in self._portions(found):
            pairs = [(row, found[row.id]) for row in portion]
            # The rules that accept a reply compute for long, as they do in a call thread.
            judged = call_with_lease(self._lease, deadline, partial(self._judged, pairs))
            with fenced(self._lease):
                present = self._present(judged)
                self._write([each for each in judged if each.kept_id in present], publisher)
            self._taken |= {each.row.id for each in judged if each.kept_id in present}
            whole = self._whole_groups(portion) if publisher is not None else frozenset()
            if whole:
                self._settled |= whole
                yield _WorkPart(self._work, self._taken, whole)
        logger.info(
            "%d of %d items reuse earlier replies",
            len(self._taken),
            len(self._work.rows),
            extra={"action": "replies_reused", **self._lease.log_context()},
        )

    @property
    def left(self) -> StepWork[W]:
        """The groups that are not published yet, with their open and their known items."""
        if not self._taken:
            return self._work
        groups = frozenset(self._work.groups) - self._settled
        return _WorkPart(self._work, self._taken, groups)

    def wait(self) -> Parking | None:
        """Return how the step waits for the record that asks for the lacking replies now.

        Call this after `take`. A step that found no earlier record has boarded at its start.
        """
        if not self._has_looked or not self.left.rows:
            return None
        with fenced(self._lease):
            return board(self._lease, self._conditions.as_columns(), lacks_replies=True)

    def _portions(self, found: Collection[UUID]) -> Iterator[list[W]]:
        """Yield the items with a reply, in portions of whole groups."""
        by_group: defaultdict[Hashable, list[W]] = defaultdict(list)
        for row in self._work.rows:
            if row.id in found:
                by_group[self._work.group_of(row)].append(row)
        portion: list[W] = []
        for rows in by_group.values():
            if portion and len(portion) + len(rows) > self._at_once:
                yield portion
                portion = []
            portion += rows
        if portion:
            yield portion

    def _whole_groups(self, portion: Sequence[W]) -> frozenset[Hashable]:
        """Return the groups of a portion of which every open item has got a reply."""
        open_groups = {
            self._work.group_of(row) for row in self._work.rows if row.id not in self._taken
        }
        return frozenset({self._work.group_of(row) for row in portion} - open_groups)

    def _has_source(self) -> bool:
        return (
            ProcessedDocument.objects.filter(
                document_hash=self._sha256, owner=self._owner, step=self._lease.step
            )
            .exclude(shell_file_id=self._lease.shell_file_id)
            .exists()
        )

    def _found(self) -> list[tuple[W, KeptReply]]:
        """Return the newest kept reply of each open item that has one."""
        by_lookup: defaultdict[str, list[W]] = defaultdict(list)
        for row in self._work.rows:
            by_lookup[self._lookup(row)].append(row)
        with connection.cursor() as cursor:
            cursor.execute(
                _FIND,
                {
                    "lookups": list(by_lookup),
                    "step": self._lease.step.value,
                    "shell_file": self._lease.shell_file_id,
                    "owner": self._owner,
                    "hash": self._sha256,
                },
            )
            ids = [item for _, item in cursor.fetchall()]
        kept = KeptReply.objects.filter(work_item_id__in=ids)
        return [(row, each) for each in kept for row in by_lookup[each.lookup]]

    def _judged(self, found: Sequence[tuple[W, KeptReply]]) -> list[_Taken[W]]:
        """Return the items whose reply is accepted; the provider is asked about the others."""
        judged = []
        for row, kept in found:
            try:
                reply = self._accepted(row, unpacked(bytes(kept.reply)))
            except Exception as error:  # noqa: BLE001 - a reply that breaks is asked for again
                logger.warning(
                    "a kept reply could not be used (%s); the provider is asked",
                    redacted(error),
                    extra={"action": "kept_reply_unusable", **self._lease.log_context()},
                )
                continue
            judged.append(
                _Taken(
                    row=row,
                    reply=reply,
                    kept_id=kept.work_item_id,
                    source=kept.shell_file_id,
                    model=kept.model_version or "",
                )
            )
        return judged

    def _accepted(self, row: W, replies: Mapping[str, Mapping[str, Any]]) -> AcceptedReply:
        whole = tuple(self._work.pages_of(row))
        parts = []
        for name, reply in sorted(replies.items()):
            split = Split(row=row, name=name, pages=tuple(pages_of(whole, name)))
            schema = self._work.schema
            token = {"item_token": split.token} if "item_token" in schema.model_fields else {}
            output = schema.model_validate({**reply, **token})
            parts.append((split, self._work.accept(split, output)))
        if len(parts) == 1 and not parts[0][0].name:
            return parts[0][1]
        return self._work.merge(row, [(split, reply.output) for split, reply in parts])

    def _present(self, judged: Sequence[_Taken[W]]) -> frozenset[UUID]:
        """Return the kept replies that still exist, and lock their records until the commit."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT id FROM shell_files WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE",
                [sorted({each.source for each in judged})],
            )
        rows = KeptReply.objects.filter(work_item_id__in=[each.kept_id for each in judged])
        return frozenset(rows.values_list("work_item_id", flat=True))

    def _write(self, taken: Sequence[_Taken[W]], publisher: GroupPublisher[W] | None) -> None:
        flush = Flush(work=type(self._work.rows[0]))
        sources: defaultdict[UUID, list[UUID]] = defaultdict(list)
        now = timezone.now()
        for each in taken:
            row = each.row
            row.begin(now)
            row.record_call(each.model, input_tokens=0, output_tokens=0)
            row.succeed(each.reply.output, each.reply.counts, now)
            if publisher is not None:
                publisher.start(row, flush)
            flush.items.append(row_of(row))
            sources[each.source].append(each.kept_id)
        write(self._lease, flush)
        for source, items in sources.items():
            _note(self._lease, source, items)

    def _lookup(self, row: W) -> str:
        prompt = self._prompts.get(row.id)
        if prompt is None:
            split = Split(row=row, pages=tuple(self._work.pages_of(row)))
            with without_attachments():
                prompt = _digest(self._work.request(split).prompt, split.token)
            self._prompts[row.id] = prompt
        return lookup_of(self._owner, self._sha256, self._lease.step, self._conditions, prompt)


def lookup_of(owner: str, sha256: str, step: str, conditions: Conditions, prompt: str) -> str:
    """Return the digest by which a reply is found; `prompt` is the prompt's own digest."""
    # The prompt shows what the plan decides.
    columns = {**conditions.as_columns(), "plan": ""}
    key = json.dumps([owner, sha256, str(step), columns, prompt], sort_keys=True)
    return hashlib.sha256(key.encode()).hexdigest()


def _note(lease: Lease, source: UUID, items: Sequence[UUID]) -> None:
    """Add what a pass reused from a record, and the calls that the record had needed for it."""
    calls = ProviderCall.objects.filter(work_item_id__in=items, accepted=True)
    kinds = ("input_tokens", "output_tokens", "thinking_tokens")
    saved = calls.aggregate(
        cost=Sum("cost_usd", default=0), **{kind: Sum(kind, default=0) for kind in kinds}
    )
    figures = {
        "items": len(items),
        "calls_saved": calls.count(),
        "tokens_saved": sum(saved[kind] for kind in kinds),
        "cost_saved_usd": saved["cost"],
    }
    key = {"shell_file_id": lease.shell_file_id, "step": lease.step, "source_id": source}
    added = Reuse.objects.filter(**key).update(**{n: F(n) + v for n, v in figures.items()})
    if not added:
        Reuse.objects.create(**key, **figures)


def _digest(prompt: str, token: str) -> str:
    return hashlib.sha256(prompt.replace(token, "").encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class _Taken(Generic[W]):
    """An item, and the earlier reply that its pass has accepted."""

    row: W
    reply: AcceptedReply
    kept_id: UUID
    source: UUID
    """The record that the reply belongs to."""
    model: str


class _WorkPart(Generic[W]):
    """Some groups of a step; the items that have got a reply are among the known items."""

    def __init__(
        self, work: StepWork[W], taken: frozenset[UUID], groups: frozenset[Hashable]
    ) -> None:
        self._work = work
        mine = [row for row in work.rows if work.group_of(row) in groups]
        self.rows: Sequence[W] = [row for row in mine if row.id not in taken]
        self.known: Sequence[W] = [
            *(row for row in work.known if work.group_of(row) in groups),
            *(row for row in mine if row.id in taken),
        ]
        self.groups: Sequence[Hashable] = [group for group in work.groups if group in groups]

    @property
    def schema(self) -> type[BaseModel]:
        return self._work.schema

    def group_of(self, row: W) -> Hashable:
        return self._work.group_of(row)

    def pages_of(self, row: W) -> Sequence[int]:
        return self._work.pages_of(row)

    def size_of(self, split: Split[W]) -> int:
        return self._work.size_of(split)

    def request(self, split: Split[W]) -> Request:
        return self._work.request(split)

    def accept(self, split: Split[W], output: BaseModel) -> AcceptedReply:
        return self._work.accept(split, output)

    def merge(self, row: W, outputs: Sequence[tuple[Split[W], Mapping[str, Any]]]) -> AcceptedReply:
        return self._work.merge(row, outputs)
