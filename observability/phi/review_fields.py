"""The form of a correction: the fields of an entity by category, and what a reviewer posted.

Each field is posted with the value that the form showed (`was_…`). Only a field that the reviewer
changed becomes part of the correction, so an old form overwrites no newer value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from observability.phi.enriched import Offered
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models import Encounter, Entity, Page
from pipeline.models.assertions import Certainty, Experiencer, MedicationStatus, Temporality
from pipeline.operations.review.attribute_changes import PREFIX
from pipeline.operations.review.decisions import MissedEntity
from pipeline.operations.review.fields import PRINTED

OF_CATEGORY: Mapping[str, tuple[str, ...]] = {
    "medication": ("strength", "dose", "previous_dose", "route", "frequency", "status", "step"),
    "lab": ("value", "unit", "reference_range", "abnormal_flag"),
    "vital": ("value", "unit", "reference_range", "abnormal_flag"),
    "allergy": ("reaction",),
    "immunization": ("dose", "route"),
}
"""The fields that a category has beside the fields of every entity."""
OF_ALL = ("entity_date", "negated", "temporality", "certainty", "experiencer")
CATEGORIES = (
    "medication", "condition", "symptom", "lab", "vital", "allergy", "immunization", "procedure",
)  # fmt: skip
ADDED = ("name", "value", "unit", "dose", "route", "frequency", "which")
"""The fields of the form for a missed entity, beside page, words, category and encounter."""
LABELS = {
    "which": "which place, if several",
    "entity_date": "date",
    "experiencer": "about",
    "temporality": "time",
    "reference_range": "range",
    "abnormal_flag": "flag",
}
CHOICES: Mapping[str, Sequence[str]] = {
    "status": MedicationStatus.values,
    "negated": ("no", "yes"),
    "temporality": Temporality.values,
    "certainty": Certainty.values,
    "experiencer": Experiencer.values,
}
_TRUTH = {"yes": True, "no": False}


@dataclass(frozen=True, kw_only=True)
class FormField:
    """One field of the form."""

    name: str
    label: str
    kind: str
    """`text`, `date`, `number`, `choice` or `code`."""
    value: str = field(repr=False)
    was: str = field(repr=False)
    """The value that the database had when the form was made."""
    options: Sequence[tuple[str, str]] = field(default=(), repr=False)
    is_read: bool = True
    """Whether the entity has the attribute; a reviewer can add another one."""

    @property
    def is_changed(self) -> bool:
        """Whether a refused form changed the value, so that its fields are open again."""
        return self.value != self.was


def correction_fields(
    entity: Entity, code: str, shortlist: Sequence[Offered], *, has_attributes: bool,
    posted: Mapping[str, str] | None = None,
) -> list[FormField]:  # fmt: skip
    """Return the fields of an entity; `posted` holds what a refused form contained."""
    own = ("name", *OF_CATEGORY.get(entity.category, ()), *OF_ALL)
    # A field of another category that has a value can be corrected too.
    others = [name for name in PRINTED if name not in own and getattr(entity, name) is not None]
    fields = [_field(entity, name, posted or {}) for name in (*own, *others)]
    if has_attributes:
        fields.append(
            FormField(
                name="code",
                label="code",
                kind="code",
                value=typed(posted or {}, "code", code),
                was=code,
                options=[(each.code, each.display) for each in shortlist],
            )
        )
    return fields


def changes_of(posted: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that the reviewer changed; an emptied field is None."""
    changed = {
        name: posted[name].strip()
        for name in (*PRINTED, "code", *(each for each in posted if each.startswith(PREFIX)))
        if name in posted and posted[name].strip() != posted.get(f"was_{name}", "").strip()
    }
    if not changed:
        raise UserError(
            "no field was changed; change a field, or accept the entity",
            code=UserErrorCode.VALUE_INVALID,
        )
    return {name: _typed(name, text) for name, text in changed.items()}


def typed(posted: Mapping[str, str], name: str, value: str) -> str:
    """Return what the reviewer typed into a field of a refused form, or else its value now."""
    given = posted.get(name, value)
    return value if given.strip() == posted.get(f"was_{name}", value).strip() else given


def missed_of(shell_file_id: Any, posted: Mapping[str, str]) -> MissedEntity:
    """Return the entity that a reviewer adds: the words are looked up in the text of the page.

    Raises UserError (VALUE_INVALID) if the page does not have the words, or has them several times.
    """
    number, words = posted.get("page", ""), posted.get("words", "").split()
    if not number.isdecimal() or len(number) > 6:
        raise _invalid("page", "page: give the number of a page")
    text = Page.objects.filter(shell_file_id=shell_file_id, page_number=int(number)).values_list(
        "text", flat=True
    )
    places = _places(next(iter(text), ""), words)
    if not places:
        raise _invalid(
            "words", f"page {number} does not have these words; give the words as printed"
        )
    which = posted.get("which", "").strip() or ("1" if len(places) == 1 else "")
    if not which.isdecimal() or not 1 <= int(which) <= len(places):
        raise _invalid(
            "which",
            f"page {number} has these words {len(places)} times;"
            f" give more words, or say which of 1 to {len(places)}",
        )
    start, end = places[int(which) - 1]
    asked = {
        name: _typed(name, posted[name].strip())
        for name in PRINTED
        if name != "name" and posted.get(name, "").strip()
    }
    index = posted.get("encounter", "")
    encounters = Encounter.objects.filter(
        shell_file_id=shell_file_id,
        entities_published_at__isnull=False,
        encounter_index=int(index) if index.isdecimal() and len(index) < 6 else -1,
    )
    found = encounters.values_list("id", flat=True).first()
    if found is None:
        raise _invalid("encounter", "encounter: choose an encounter of the record")
    return MissedEntity(
        encounter_id=found,
        page=int(number),
        start=start,
        end=end,
        category=posted.get("category", ""),
        name=posted.get("name", "").strip(),
        printed=asked,
    )


def _places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return start and end of each place of the words; white space and case may differ."""
    if not words:
        return []
    found, folded = [], text.lower()
    first = words[0].lower()
    # A letter whose lower case has another length would move every later offset.
    if len(folded) != len(text):
        folded, first = text, words[0]
    at = folded.find(first)
    while at >= 0:
        end = _end(folded, text, at, words)
        if end is not None:
            found.append((at, end))
        at = folded.find(first, at + 1)
    return found


def _end(folded: str, text: str, at: int, words: Sequence[str]) -> int | None:
    is_folded = folded is not text
    for number, word in enumerate(words):
        if number:
            start = at
            while at < len(text) and text[at].isspace():
                at += 1
            if at == start:
                return None
        wanted = word.lower() if is_folded else word
        if not folded.startswith(wanted, at):
            return None
        at += len(wanted)
    return at


def _field(entity: Entity, name: str, posted: Mapping[str, str]) -> FormField:
    value = _text(getattr(entity, name))
    kind = {"entity_date": "date", "step": "number"}.get(name, "text")
    options: list[tuple[str, str]] = []
    if name in CHOICES:
        kind = "choice"
        words = ((each, each.replace("_", " ")) for each in CHOICES[name])
        options = [("", "not stated"), *words]
    return FormField(
        name=name,
        label=LABELS.get(name, name.replace("_", " ")),
        kind=kind,
        value=typed(posted, name, value),
        was=value,
        options=options,
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _typed(name: str, text: str) -> Any:
    if not text:
        return None
    if name == "negated":
        return _TRUTH.get(text, text)
    if name == "step" and text.isdecimal() and len(text) < 5:
        return int(text)
    return text


def _invalid(name: str, message: str) -> UserError:
    return UserError(message, code=UserErrorCode.VALUE_INVALID, field=name)
