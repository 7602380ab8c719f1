"""What Passes 1.5 and 2 say about entities: attributes, code, shortlist, reasons. PHI.

Reading takes two statements, whatever the number of entities.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from observability.phi.attribute_words import attribute_words
from pipeline.clinical.enrichment_flags import EnrichmentFlag, in_words
from pipeline.models import CodeCandidate, EnrichedEntity


@dataclass(frozen=True, kw_only=True)
class ReadTwice:
    """An attribute with both readings."""

    attribute: str
    reply: str = field(repr=False)
    second: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Offered:
    """One code of the shortlist of an entity."""

    rank: int
    code: str
    """`system|code`."""
    display: str
    score: float
    reason: str
    is_chosen: bool


@dataclass(frozen=True, kw_only=True)
class EnrichedView:
    """An entity after Passes 1.5 and 2."""

    is_enriched: bool
    """Whether Pass 2 has a row of the entity; a shortlist may exist before Pass 2."""
    attributes: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Labels with words."""
    stored: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The attributes as the database has them."""
    code: str = ""
    """`system|code`; "" without a code."""
    display: str = ""
    shortlist: tuple[Offered, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why a person must check the attributes or the code."""
    readings: tuple[ReadTwice, ...] = field(default=(), repr=False)
    """The attributes that two readings read differently."""


def enriched(entities: Sequence[UUID]) -> dict[UUID, EnrichedView]:
    """Return what later passes say about entities; an entity without results is left out."""
    shortlists: defaultdict[UUID, list[CodeCandidate]] = defaultdict(list)
    for each in CodeCandidate.objects.filter(entity_id__in=entities).order_by("entity_id", "rank"):
        shortlists[each.entity_id].append(each)
    rows = {row.entity_id: row for row in EnrichedEntity.objects.filter(entity_id__in=entities)}
    return {
        entity: _enriched(rows.get(entity), shortlists.get(entity, ()))
        for entity in entities
        if entity in rows or entity in shortlists
    }


def _enriched(row: EnrichedEntity | None, candidates: Sequence[CodeCandidate]) -> EnrichedView:
    token = f"{row.code_system}|{row.code}" if row and row.code else ""
    shortlist = tuple(
        Offered(
            rank=each.rank,
            code=f"{each.system}|{each.code}",
            display=each.display,
            score=each.score,
            reason=each.reason,
            is_chosen=f"{each.system}|{each.code}" == token,
        )
        for each in candidates
    )
    if row is None:
        return EnrichedView(is_enriched=False, shortlist=shortlist)
    return EnrichedView(
        is_enriched=True,
        attributes=attribute_words(row.category, row.attributes),
        stored=row.attributes,
        code=token,
        display=row.code_display or "",
        shortlist=shortlist,
        reasons=_reasons(row),
        readings=_readings(row),
    )


def _reasons(row: EnrichedEntity) -> tuple[str, ...]:
    second: dict[str, Any] = row.second_reading or {}
    # The table of both readings names the disputed attributes.
    shown = {f"{EnrichmentFlag.DISPUTED}:{name}" for name in second}
    others = in_words(flag for flag in map(str, row.flags) if flag not in shown)
    return ("two readers disagree", *others) if second else others


def _readings(row: EnrichedEntity) -> tuple[ReadTwice, ...]:
    second: dict[str, Any] = row.second_reading or {}
    known = _by_printed_name(row.attributes)
    prefix = f"{EnrichmentFlag.NOT_GROUNDED}:"
    left_out = {flag.removeprefix(prefix) for flag in row.flags if flag.startswith(prefix)}
    return tuple(
        ReadTwice(
            attribute=name.replace("_", " "),
            reply=known.get(name) or ("left out" if name in left_out else "not stated"),
            second=str(read).replace("_", " "),
        )
        for name, read in second.items()
    )


_STRUCTURED = {
    "frequency": "timing",
    "verification": "verification_status",
    "abnormal_flag": "printed_flag",
}
"""The printed attributes of a reply whose structured attribute has another name."""


def _by_printed_name(attributes: dict[str, Any]) -> dict[str, str]:
    """Return the attributes under the names of the reply, as printed where the print is kept."""
    names = {
        **{name: name for name in attributes},
        **{printed: name for printed, name in _STRUCTURED.items() if name in attributes},
    }
    if "clinical_status" in attributes:
        names["status"] = "clinical_status"
    return {name: _printed(attributes[key]) for name, key in names.items()}


def _printed(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("printed", ""))
    if isinstance(value, list):
        return ", ".join(filter(None, map(_printed, value)))
    return "" if value is None else str(value).replace("_", " ")
