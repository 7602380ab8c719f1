"""What a sentence says about each name that it contains: the scope of its cues and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipeline.clinical.narrative.items import PartKind, SentencePart, clauses_of
from pipeline.clinical.narrative.known import CitedEntity, singular

_SEPARATORS = {PartKind.BREAK, PartKind.END}
_PARTS = {PartKind.AMOUNT, PartKind.FREQUENCY, PartKind.ROUTE, PartKind.TEXT}
_SCOPED = {
    "negation": "negation", "possible": "certainty", "hypothetical": "certainty",
    "confirmed": "certainty", "history": "time", "planned": "time", "current": "time",
    "family": "person", "other": "person", "patient": "person", "allergy": "allergy",
    "stopped": "status", "on_hold": "status", "started": "status", "not_started": "status",
    "changed": "status", "in_error": "status", "active": "status",
}  # fmt: skip
"""The dimension of each cue whose scope is several names."""
_NEAREST = {
    "high", "low", "normal", "abnormal", "critical",
    "left", "right", "bilateral", "mild", "moderate", "severe",
}  # fmt: skip
_COPULAS = {"is", "are", "was", "were", "remains"}
_TREATED = {"treated", "managed"}
_PERSON_LINKS = {"in", "of", "by", "for", "from", "to"}


@dataclass(kw_only=True)
class Told:
    """What the sentence says about one name."""

    name: SentencePart
    at: int
    """Index of the name in its clause."""
    cues: list[tuple[str, SentencePart]] = field(default_factory=list)
    """The cues that act on the name, each with its kind."""
    parts: list[tuple[SentencePart, str]] = field(default_factory=list)
    """Numbers, dates, timing and words in order, each with the words before the part."""
    dates: list[tuple[SentencePart, str]] = field(default_factory=list)
    """Dates that come before the name."""
    words: list[SentencePart] = field(default_factory=list)
    """Words that must come from the entity."""
    purposes: list[SentencePart] = field(default_factory=list)
    """Conditions that the sentence gives as the purpose of this medication or procedure."""

    def kinds(self, *wanted: str) -> list[SentencePart]:
        """Return the cues of these kinds."""
        return [item for kind, item in self.cues if kind in wanted]


@dataclass(kw_only=True)
class ToldText:
    """All that a text says, and the parts that belong to no name."""

    told: list[Told] = field(default_factory=list)
    strays: list[SentencePart] = field(default_factory=list)


def statement_of(items: Sequence[SentencePart], cited: Sequence[CitedEntity]) -> ToldText:
    """Return what a text says about each name."""
    statement = ToldText()
    person: list[tuple[str, SentencePart]] = []
    dates: list[tuple[SentencePart, str]] = []
    last: Told | None = None
    for fresh, clause in clauses_of(items):
        reader = _Clause(clause, cited)
        if fresh:
            person, dates = [], []
        begins_with_name = _first(clause) is PartKind.NAME
        reader.read(
            person=[] if begins_with_name else person,
            dates=dates,
            before=None if fresh and not (reader.told) and last is None else last,
        )
        statement.told += reader.told
        statement.strays += reader.strays
        if reader.told:
            last = reader.told[-1]
            person = [(k, i) for k, i in last.cues if k in ("family", "other")]
            dates = list(reader.told[0].dates)
    return statement


def _first(clause: Sequence[SentencePart]) -> PartKind | None:
    for item in clause:
        if item.kind not in (PartKind.FUNCTION, PartKind.BREAK):
            return item.kind
    return None


class _Clause:
    """One clause: one subject and one predicate, or a list."""

    def __init__(self, items: Sequence[SentencePart], cited: Sequence[CitedEntity]) -> None:
        self.items = items
        self.cited = cited
        self.told = [
            Told(name=item, at=at) for at, item in enumerate(items) if item.kind is PartKind.NAME
        ]
        self.strays: list[SentencePart] = []
        self._last_post: dict[str, int] = {}

    def read(
        self,
        *,
        person: list[tuple[str, SentencePart]],
        dates: list[tuple[SentencePart, str]],
        before: Told | None,
    ) -> None:
        """Attach every part of the clause to a name."""
        self._before = before
        self._inherited = person
        for at, item in enumerate(self.items):
            if item.kind is PartKind.CUE:
                self._cue(at, item)
            elif item.kind is PartKind.DATE:
                self._date(at, item)
            elif item.kind in _PARTS:
                self._part(at, item)
            elif item.kind is PartKind.WORD:
                self._word(at, item)
            elif item.text == "for" and item.kind is PartKind.FUNCTION:
                self._purpose(at)
            elif item.text == "as" and self._verb_follows(at):
                # "warfarin was stopped, as was lisinopril" borrows the statement of another clause.
                self.strays.append(item)
        for each in self.told:
            if not any(_SCOPED.get(kind) == "person" for kind, _ in each.cues):
                each.cues += person
            if not each.dates and not any(i.kind is PartKind.DATE for i, _ in each.parts):
                each.dates = list(dates)
        self._respectively()
        self._alternatives()

    def _verb_follows(self, at: int) -> bool:
        return at + 1 < len(self.items) and self.items[at + 1].kind is PartKind.VERB

    def _alternatives(self) -> None:
        """Set aside each `or` after which no name is denied: a choice leaves both in doubt."""
        for at, item in enumerate(self.items):
            before = [told for told in self.told if told.at < at]
            after = [told for told in self.told if told.at > at]
            is_choice = item.kind is PartKind.BREAK and item.text == "or" and before and after
            if is_choice and not after[0].kinds(
                "negation", "not_started", "possible", "hypothetical"
            ):
                self.strays.append(item)

    # Cues

    def _cue(self, at: int, item: SentencePart) -> None:
        kind, direction = item.phrase.kind, item.phrase.direction
        if direction == "encounter":
            self.strays.append(item)
        elif kind in ("family", "other"):
            self._person(at, item)
        elif kind in _NEAREST:
            self._nearest(at, item)
        elif direction != "date" and kind != "range":
            self._scope(at, item, kind, direction)

    def _scope(self, at: int, item: SentencePart, kind: str, direction: str) -> None:
        following = self.items[at + 1] if at + 1 < len(self.items) else None
        amount_follows = following is not None and following.kind is PartKind.AMOUNT
        if kind == "history" and amount_follows and self._is_about_dose(at):
            # "previously 5 mg" is about the dose; the context of the number says so.
            return
        dimension = _SCOPED.get(kind, kind)
        if direction == "either":
            # "previously had", "denied having": without a name before, the cue acts ahead.
            leads = self._name_follows(at) or not any(told.at < at for told in self.told)
            direction = "pre" if leads and self.told else "post"
        names = self._after(at, dimension) if direction == "pre" else self._back(at, dimension)
        if not names and direction == "pre" and dimension == "status":
            # "was started on March 5": the name comes before the cue.
            names = self._back(at, dimension)
        if kind == "patient":
            names = self._after(at, dimension)
        if not names and kind not in ("patient", "current"):
            self.strays.append(item)
        for told in names:
            if kind == "patient":
                told.cues = [c for c in told.cues if _SCOPED.get(c[0]) != "person"]
            told.cues.append((kind, item))
            if _TREATED & set(item.words):
                told.purposes += self._conditions_before(at)
            if kind == "patient" and self._joins(at, "family", "other"):
                told.cues.append(("joint", item))

    def _is_about_dose(self, at: int) -> bool:
        """Return whether the last name before a part is a medication."""
        before = [told for told in self.told if told.at < at]
        return bool(before) and "medication" in self._categories(before[-1])

    def _categories(self, told: Told) -> set[str]:
        return {self.cited[i].facts.category for i in told.name.sources}

    def _conditions_before(self, at: int) -> list[SentencePart]:
        return [
            told.name
            for told in self.told
            if told.at < at and self._categories(told) & {"condition", "symptom"}
        ]

    def _joins(self, at: int, *kinds: str) -> bool:
        """Return whether a person is joined to a person before: `the patient and her mother`."""
        seen_and = False
        for item in reversed(self.items[:at]):
            if item.kind is PartKind.BREAK:
                seen_and = True
            elif item.kind is PartKind.CUE and item.phrase.kind in kinds:
                return seen_and
            elif item.kind is not PartKind.FUNCTION:
                return False
        return False

    def _after(self, at: int, dimension: str) -> list[Told]:
        """Return the names after a cue, up to a verb behind a name or the next cue of its kind."""
        found: list[Told] = []
        for index in range(at + 1, len(self.items)):
            item = self.items[index]
            if item.kind is PartKind.NAME:
                found.append(self._told_at(index))
            elif found and item.kind is PartKind.VERB:
                break
            elif item.kind is PartKind.CUE and _SCOPED.get(item.phrase.kind) == dimension:
                if found and not (dimension == "person" and self._is_behind(index)):
                    break
                if found and dimension == "person":
                    continue
            elif (
                item.kind is PartKind.CLOSE
                and not item.in_brackets
                and self._opened_after(at, index)
            ):
                break
        return found

    def _opened_after(self, at: int, index: int) -> bool:
        """Return whether the bracket that closes at `index` opened before `at`."""
        return not any(self.items[i].kind is PartKind.OPEN for i in range(at, index))

    def _back(self, at: int, dimension: str) -> list[Told]:
        """Return the names before a cue, back to the previous cue of the same dimension."""
        names = [told for told in self.told if told.at < at]
        if not names:
            return [self._before] if self._before is not None and not self.told else []
        if self.items[at].in_brackets:
            return names[-1:]
        begin = self._last_post.get(dimension, -1)
        self._last_post[dimension] = at
        return [told for told in names if told.at > begin] or names[-1:]

    def _name_follows(self, at: int) -> bool:
        for item in self.items[at + 1 :]:
            if item.kind is PartKind.NAME:
                return True
            if item.kind in (
                PartKind.BREAK,
                PartKind.VERB,
                PartKind.CLOSE,
                PartKind.OPEN,
                PartKind.DATE,
            ):
                return False
            if item.kind is PartKind.FUNCTION and item.text in ("on", "in", "by", "with", "from"):
                # "stopped on March 5", "held by the clinic"
                return False
        return False

    def _nearest(self, at: int, item: SentencePart) -> None:
        direct = self._directly_after(at)
        if direct is not None:
            names = [direct]
        else:
            before = [told for told in self.told if told.at < at]
            names = before[-1:] if item.in_brackets or not before else self._group(before[-1])
        if not names:
            names = [told for told in self.told if told.at > at][:1]
        if not names and self._before is not None:
            names = [self._before]
        if not names:
            self.strays.append(item)
        for told in names:
            told.cues.append((item.phrase.kind, item))

    def _directly_after(self, at: int) -> Told | None:
        for index in range(at + 1, len(self.items)):
            item = self.items[index]
            if item.kind is PartKind.NAME:
                return self._told_at(index)
            passes = item.kind is PartKind.WORD or (
                item.kind is PartKind.CUE and item.phrase.kind in _NEAREST
            )
            if not passes:
                return None
        return None

    def _group(self, last: Told) -> list[Told]:
        """Return a name with the names before it that only separators part from it."""
        names = [last]
        for index in range(last.at - 1, -1, -1):
            item = self.items[index]
            if item.kind is PartKind.NAME:
                names.append(self._told_at(index))
            elif item.kind not in (PartKind.BREAK, PartKind.FUNCTION):
                break
        return names

    def _person(self, at: int, item: SentencePart) -> None:
        kind = item.phrase.kind
        before = [told for told in self.told if told.at < at]
        if before and self._is_behind(at):
            names = self._back(at, "person behind")
            for told in names:
                told.cues.append((kind, item))
                if told.kinds("patient") and self._follows_has(told):
                    told.cues.append(("joint", item))
            return
        names = self._after(at, "person")
        if not names:
            names = before
        if not names:
            self._inherited.append((kind, item))
            self.strays.append(item)
        for told in names:
            told.cues = [c for c in told.cues if _SCOPED.get(c[0]) != "person" or c[0] == kind]
            told.cues.append((kind, item))
            if self._joins(at, "patient"):
                told.cues.append(("joint", item))

    def _follows_has(self, told: Told) -> bool:
        """Return whether the clause says that the patient has the fact."""
        return any(
            item.kind is PartKind.VERB and item.text in ("has", "had", "have", "having")
            for item in self.items[: told.at]
        )

    def _is_behind(self, at: int) -> bool:
        """Return whether a person follows their condition: `diabetes in her mother`."""
        if self.items[at].in_brackets:
            return True
        for item in reversed(self.items[:at]):
            if item.kind is PartKind.FUNCTION and item.text in _PERSON_LINKS:
                return True
            if item.kind is PartKind.CUE and item.phrase.kind in ("family", "patient", "other"):
                continue
            if item.kind is PartKind.FUNCTION or item.text == "and":
                continue
            return False
        return False

    # Numbers, dates and words

    def _target(self, at: int, *, numbers: bool) -> Told | None:
        """Return the name that a part belongs to."""
        behind = self._adjacent(range(at - 1, -1, -1), numbers=numbers)
        if behind is not None:
            return behind
        ahead = self._adjacent(range(at + 1, len(self.items)), numbers=numbers)
        if ahead is not None:
            return ahead
        fitting = [t for t in self.told if self._fits(t, numbers=numbers)]
        before = [told for told in fitting if told.at < at]
        if before:
            return before[-1]
        if fitting:
            return fitting[0]
        return self._before

    def _fits(self, told: Told, *, numbers: bool) -> bool:
        known = [self.cited[i] for i in told.name.sources]
        return not numbers or any(each.takes_amounts for each in known)

    def _adjacent(self, places: Iterator[int] | range, *, numbers: bool) -> Told | None:
        """Return the first name on the way, if no separator comes before the name."""
        forward = isinstance(places, range) and places.step > 0
        for index in places:
            item = self.items[index]
            if item.kind is PartKind.NAME:
                told = self._told_at(index)
                if self._fits(told, numbers=numbers):
                    return told
            elif self._parts_off(item, forward=forward):
                return None
        return None

    @staticmethod
    def _parts_off(item: SentencePart, *, forward: bool) -> bool:
        """Return whether an item between a part and a name separates the two."""
        if item.kind in (PartKind.BREAK, PartKind.MARK):
            return item.text != ":"
        if forward:
            return item.kind not in (
                PartKind.FUNCTION,
                PartKind.WORD,
                PartKind.ROUTE,
                PartKind.FREQUENCY,
            )
        return item.kind is PartKind.CLOSE

    def _part(self, at: int, item: SentencePart) -> None:
        numbers = item.kind is not PartKind.TEXT
        told = self._text_target(at, item) if item.kind is PartKind.TEXT else None
        told = told or self._target(at, numbers=numbers)
        if told is None:
            self.strays.append(item)
            return
        context = self._context(at)
        told.parts.append((item, context))
        if item.kind in (PartKind.FREQUENCY, PartKind.ROUTE) and told.at < at and told in self.told:
            self._share(told, (item, context))

    def _share(self, told: Told, part: tuple[SentencePart, str]) -> None:
        """Give a frequency or a route to all names of a list that has no other parts."""
        group = self._group(told)
        earlier = [each for each in self.told if each.at < group[-1].at]
        has_amount = any(item.kind is PartKind.AMOUNT for item, _ in told.parts)
        if has_amount or any(each.parts for each in earlier):
            return
        for other in group[1:]:
            other.parts.append(part)

    def _text_target(self, at: int, item: SentencePart) -> Told | None:
        """Return the name directly before a text, else the name directly after the text."""
        behind = self._adjacent(range(at - 1, -1, -1), numbers=False)
        if behind is not None and item.sources & behind.name.sources:
            return behind
        return None

    def _context(self, at: int) -> str:
        """Return up to four words and cues before a part, without separators."""
        found: list[str] = []
        for item in reversed(self.items[max(0, at - 4) : at]):
            if item.kind in (PartKind.NAME, PartKind.AMOUNT, PartKind.DATE, PartKind.END):
                break
            if item.kind is PartKind.CUE and item.phrase.kind == "range":
                found.append("range")
            if item.kind is PartKind.CUE and item.phrase.kind in _NEAREST:
                # "above the reference range of 4.0-5.6" against "above the reference range at 8.4"
                if "range" in item.words and not set(found) - {"of", ":", "("}:
                    found.append("range")
                continue
            found.append(item.text)
        after = self.items[at + 1] if at + 1 < len(self.items) else None
        tail = f" | {after.text}" if after is not None else ""
        return " ".join(reversed(found)) + tail

    def _date(self, at: int, item: SentencePart) -> None:
        context = self._context(at)
        before = [told for told in self.told if told.at < at]
        leads = not before or (
            self.items[at - 1].kind in (PartKind.BREAK, PartKind.FUNCTION) and self._leads(at)
        )
        if leads:
            after = [told for told in self.told if told.at > at]
            if not after and self._before is not None:
                after = [self._before]
            if not after:
                self.strays.append(item)
            for told in after:
                told.dates = [(item, context)]
            return
        if item.in_brackets:
            before[-1].parts.append((item, context))
            return
        begin = self._last_post.get("date", -1)
        self._last_post["date"] = at
        for told in [t for t in before if t.at > begin][:-1]:
            told.parts.append((item, context))
        before[-1].parts.append((item, context))

    def _leads(self, at: int) -> bool:
        """Return whether a date after a separator belongs to the next name."""
        back = at - 1
        while back >= 0 and self.items[back].kind is PartKind.FUNCTION:
            back -= 1
        if back < 0 or self.items[back].kind is not PartKind.BREAK:
            return False
        for item in self.items[at + 1 :]:
            if item.kind is PartKind.NAME:
                return True
            if item.kind is not PartKind.FUNCTION and item.text != ",":
                return False
        return False

    def _word(self, at: int, item: SentencePart) -> None:
        ahead = [told for told in self.told if told.at > at]
        before = [told for told in self.told if told.at < at]
        choices = [*before[-1:], *ahead[:1]] or ([self._before] if self._before else [])
        for told in choices:
            beside = told in self.told and self._is_beside(at, told.at)
            for known in (self.cited[i] for i in told.name.sources):
                own = all(word in known.own_words for word in singular(item.words))
                # A quote may contain other names: its words must stand beside the name.
                if own or (beside and known.has(item.words)):
                    told.words.append(item)
                    return
        self.strays.append(item)

    def _is_beside(self, at: int, name: int) -> bool:
        """Return whether only words of one phrase stand between a word and a name."""
        between = self.items[min(at, name) + 1 : max(at, name)]
        return all(
            item.kind is PartKind.WORD
            or (item.kind is PartKind.CUE and item.phrase.kind in _NEAREST)
            or (name < at and item.text in _COPULAS)
            for item in between
        )

    def _purpose(self, at: int) -> None:
        for index in range(at + 1, len(self.items)):
            item = self.items[index]
            if item.kind is PartKind.NAME:
                categories = {self.cited[i].facts.category for i in item.sources}
                before = [
                    told
                    for told in self.told
                    if told.at < at
                    and any(
                        self.cited[i].facts.category in ("medication", "procedure")
                        for i in told.name.sources
                    )
                ]
                if before and categories & {"condition", "symptom", "lab", "vital"}:
                    for told in self._group(before[-1]):
                        told.purposes.append(item)
                return
            if item.kind is not PartKind.FUNCTION:
                return

    def _respectively(self) -> None:
        """Give the numbers of a list to the names of a list, in order."""
        if not any(item.text == "respectively" for item in self.items):
            return
        names = [told for told in self.told if self._fits(told, numbers=True)]
        amounts = [p for told in names for p in told.parts if p[0].kind is PartKind.AMOUNT]
        if len(names) != len(amounts) or not amounts:
            self.strays.append(next(i for i in self.items if i.text == "respectively"))
            return
        for told, amount in zip(names, amounts, strict=True):
            told.parts = [p for p in told.parts if p[0].kind is not PartKind.AMOUNT]
            told.parts.append(amount)

    def _told_at(self, index: int) -> Told:
        return next(told for told in self.told if told.at == index)
