"""The names that each cue of a clause acts on: negation, certainty, time, person, status."""

from __future__ import annotations

from pipeline.clinical.narrative.clause import FLAGS, NEAREST, SCOPED, NarrativeClause
from pipeline.clinical.narrative.items import PartKind, SentencePart
from pipeline.clinical.narrative.subjects import addition, spoken_of
from pipeline.clinical.narrative.told import ToldStatement

_TREATED = {"treated", "managed"}
_ACTIVITIES = {"active", "ongoing", "existing"}
_EVENTS = {
    "performed", "done", "undergone", "obtained", "received", "receives", "given", "administered",
    "underwent", "undergoes", "carried", "place", "had", "completed", "conducted", "got",
}  # fmt: skip
"""Words of a procedure that took place, or of a medication that was given."""
_PAST_VERBS = {"had", "underwent", "received"}
_PERSON_LINKS = {"in", "of", "by", "for", "from", "to"}


class CueScope:
    """Attach the cues of one clause to its names."""

    def __init__(self, clause: NarrativeClause) -> None:
        self._clause = clause

    def attach(self, at: int, item: SentencePart) -> None:
        """Attach one cue to the names that the cue acts on."""
        kind, direction = item.phrase.kind, item.phrase.direction
        if direction in ("encounter", "refused"):
            self._clause.strays.append(item)
        elif kind in ("family", "other"):
            self._person(at, item)
        elif kind in NEAREST:
            self._nearest(at, item)
        elif direction == "date":
            self._dating(at, item)
        elif item.text in _ACTIVITIES and self._is_beside_a_name(at):
            self._nearest(at, item, kind="activity")
        elif kind != "range":
            self._scope(at, item, kind, direction)

    def attach_event(self, at: int, item: SentencePart) -> None:
        """Attach a word such as `performed` to the names that the word is said of."""
        if item.kind not in (PartKind.FUNCTION, PartKind.VERB) or not _EVENTS & set(item.words):
            return
        names = [told for told in self._clause.told if told.at < at]
        if not names:
            names = self._up_to_addition(at)
        if not self._clause.told and self._clause.before is not None:
            names = spoken_of(self._clause, at) or [self._clause.before]
        for told in names:
            told.cues.append(("done", item))

    def _up_to_addition(self, at: int) -> list[ToldStatement]:
        """Return the names after a place, up to an addition: `, with MRI planned`."""
        last = len(self._clause.items)
        end = next((i for i in range(at, last) if addition(self._clause, i)), last)
        return [told for told in self._clause.told if at < told.at < end]

    def _dating(self, at: int, item: SentencePart) -> None:
        """Set aside a word such as `since` or `effective` that no date follows."""
        for following in self._clause.items[at + 1 :]:
            if following.kind is PartKind.DATE:
                return
            if following.kind is not PartKind.FUNCTION:
                break
        self._clause.strays.append(item)

    def _is_beside_a_name(self, at: int) -> bool:
        following = self._clause.items[at + 1 : at + 2]
        return bool(following) and following[0].kind is PartKind.NAME

    def _scope(self, at: int, item: SentencePart, kind: str, direction: str) -> None:
        amount_follows = self._amount_follows(at)
        if kind == "history" and amount_follows and self._is_about_dose(at):
            # "previously 5 mg" is about the dose; the context of the number says so.
            return
        dimension = SCOPED.get(kind, kind)
        if item.text == "in the past" and self._follows_and(at):
            # "gout and, in the past, had asthma": the words are about either condition.
            self._clause.strays.append(item)
            return
        if direction == "either":
            # "previously had", "denied having": without a name before, the cue acts ahead.
            leads = self._name_follows(at) or not any(told.at < at for told in self._clause.told)
            direction = "pre" if leads and self._clause.told else "post"
        leading = kind in ("possible", "history") and self._precedes_all_names(at)
        if direction == "post" and leading:
            # "the diagnosis was suspected pneumonia", "resolved gout"
            direction = "pre"
        names = self._after(at, dimension) if direction == "pre" else self._back(at, dimension)
        direct = self._directly_after(at) if direction == "pre" and kind == "possible" else None
        if direct is not None and len(names) > 1 and item.words[-1] != "include":
            # "possible gout and cellulitis" can tell the cellulitis as possible, or as certain.
            self._clause.strays.append(item)
        if not names and direction == "pre" and dimension == "status":
            # "was started on March 5": the name comes before the cue.
            names = self._back(at, dimension)
        if kind == "patient":
            names = self._after(at, dimension)
        if not names and kind not in ("patient", "current"):
            self._clause.strays.append(item)
        for told in names:
            if kind == "patient":
                told.cues = [c for c in told.cues if SCOPED.get(c[0]) != "person"]
            told.cues.append((kind, item))
            if _TREATED & set(item.words):
                told.purposes += self._conditions_before(at)
            if kind == "patient" and self._joins(at, "family", "other"):
                told.cues.append(("joint", item))
        if kind == "patient" and self._is_behind(at):
            # "diabetes in the patient" under the heading of the family history
            behind = [told for told in self._clause.told if told.at < at][-1:]
            for told in behind:
                if told.kinds("family", "other"):
                    told.cues.append(("joint", item))

    def _follows_and(self, at: int) -> bool:
        before = [item.text for item in self._clause.items[:at] if item.text != ","]
        return before[-1:] == ["and"]

    def _amount_follows(self, at: int) -> bool:
        """Return whether only words such as `dose of` stand between a cue and an amount."""
        for item in self._clause.items[at + 1 :]:
            if item.kind is PartKind.AMOUNT:
                return True
            if item.kind not in (PartKind.FUNCTION, PartKind.VERB):
                return False
        return False

    def _is_about_dose(self, at: int) -> bool:
        """Return whether the last name before a part is a medication."""
        before = [told for told in self._clause.told if told.at < at]
        if not self._clause.told and self._clause.before is not None:
            # "The previous dose was 10 mg" adds to the clause before.
            before = [self._clause.before]
        return bool(before) and "medication" in self._categories(before[-1])

    def _precedes_all_names(self, at: int) -> bool:
        told = self._clause.told
        return bool(told) and told[0].at > at and self._name_follows(at)

    def _categories(self, told: ToldStatement) -> set[str]:
        return {self._clause.cited[i].facts.category for i in told.name.sources}

    def _conditions_before(self, at: int) -> list[SentencePart]:
        return [
            told.name
            for told in self._clause.told
            if told.at < at and self._categories(told) & {"condition", "symptom"}
        ]

    def _joins(self, at: int, *kinds: str) -> bool:
        """Return whether a person is joined to a person before: `the patient and her mother`."""
        seen_and = False
        for item in reversed(self._clause.items[:at]):
            if item.kind is PartKind.BREAK:
                seen_and = True
            elif item.kind is PartKind.CUE and item.phrase.kind in kinds:
                return seen_and
            elif item.kind is not PartKind.FUNCTION:
                return False
        return False

    def _after(self, at: int, dimension: str) -> list[ToldStatement]:
        """Return the names after a cue, up to a verb behind a name or the next cue of its kind."""
        found: list[ToldStatement] = []
        for index in range(at + 1, len(self._clause.items)):
            item = self._clause.items[index]
            if item.kind is PartKind.NAME:
                found.append(self._clause.told_at(index))
            elif found and (item.kind is PartKind.VERB or addition(self._clause, index)):
                break
            elif found and dimension == "time" and self._begins_denial(item):
                # "a history of gout and no evidence of stones"
                break
            elif item.kind is PartKind.CUE and SCOPED.get(item.phrase.kind) == dimension:
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

    @staticmethod
    def _begins_denial(item: SentencePart) -> bool:
        return item.phrase.kind == "negation" and item.phrase.direction == "pre"

    def _opened_after(self, at: int, index: int) -> bool:
        """Return whether the bracket that closes at `index` opened before `at`."""
        return not any(self._clause.items[i].kind is PartKind.OPEN for i in range(at, index))

    def _back(self, at: int, dimension: str) -> list[ToldStatement]:
        """Return the names before a cue, back to the previous cue of the same dimension."""
        names = [told for told in self._clause.told if told.at < at]
        if not names:
            if self._clause.told or self._clause.before is None:
                return []
            return spoken_of(self._clause, at) or [self._clause.before]
        if self._clause.items[at].in_brackets:
            return names[-1:]
        begin = self._clause.last_post.get(dimension, -1)
        self._clause.last_post[dimension] = at
        added = [addition(self._clause, index) for index in range(begin + 1, at)]
        if any(added):
            return next(names for names in added if names)
        return [told for told in names if told.at > begin] or names[-1:]

    def _name_follows(self, at: int) -> bool:
        following = self._clause.items[at + 1 :]
        if following and following[0].text in _PAST_VERBS:
            # "previously had gout"
            following = following[1:]
        for item in following:
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

    def _nearest(self, at: int, item: SentencePart, *, kind: str = "") -> None:
        direct = self._directly_after(at)
        if direct is not None:
            names = self._joined(direct) if item.phrase.kind in FLAGS else [direct]
        else:
            names = spoken_of(self._clause, at) or self._nearest_before(at, item)
        if not names:
            names = self._headed(at, item)
        if not names and self._clause.before is not None:
            names = [self._clause.before]
        if not names:
            self._clause.strays.append(item)
        for told in names:
            told.cues.append((kind or item.phrase.kind, item))

    def _nearest_before(self, at: int, item: SentencePart) -> list[ToldStatement]:
        before = [told for told in self._clause.told if told.at < at]
        if item.in_brackets or not before:
            return before[-1:]
        return self._clause.group(before[-1])

    def _headed(self, at: int, item: SentencePart) -> list[ToldStatement]:
        """Return the list that a cue heads: `elevated results were creatinine and potassium`."""
        names = [told for told in self._clause.told if told.at > at]
        return names if item.phrase.kind in FLAGS else names[:1]

    def _joined(self, first: ToldStatement) -> list[ToldStatement]:
        """Return the names that share an adjective: `elevated creatinine and potassium`.

        An article, a verb or another cue begins a noun of its own.
        """
        names, separated = [first], False
        for index in range(first.at + 1, len(self._clause.items)):
            item = self._clause.items[index]
            if item.kind is PartKind.NAME:
                if not separated:
                    break
                names.append(self._clause.told_at(index))
                separated = False
            elif item.in_brackets:
                continue
            elif item.kind is PartKind.BREAK:
                separated = True
            elif separated or item.kind in (PartKind.VERB, PartKind.CUE):
                break
        return names

    def _directly_after(self, at: int) -> ToldStatement | None:
        for index in range(at + 1, len(self._clause.items)):
            item = self._clause.items[index]
            if item.kind is PartKind.NAME:
                return self._clause.told_at(index)
            passes = item.kind is PartKind.WORD or (
                item.kind is PartKind.CUE and item.phrase.kind in NEAREST
            )
            if not passes:
                return None
        return None

    def _person(self, at: int, item: SentencePart) -> None:
        kind = item.phrase.kind
        before = [told for told in self._clause.told if told.at < at]
        if before and self._is_behind(at):
            names = self._back(at, "person behind")
            for told in names:
                told.cues += [(kind, item), ("behind", item)]
                if told.kinds("patient") and self._follows_has(told):
                    told.cues.append(("joint", item))
            return
        names = [] if item.phrase.direction == "post" else self._after(at, "person")
        if not names:
            names = before
        if not names:
            self._clause.inherited.append((kind, item))
            self._clause.strays.append(item)
        for told in names:
            told.cues = [c for c in told.cues if SCOPED.get(c[0]) != "person" or c[0] == kind]
            told.cues.append((kind, item))
            if self._joins(at, "patient"):
                told.cues.append(("joint", item))

    def _follows_has(self, told: ToldStatement) -> bool:
        """Return whether the clause says that the patient has the fact."""
        return any(
            item.kind is PartKind.VERB and item.text in ("has", "had", "have", "having")
            for item in self._clause.items[: told.at]
        )

    def _is_behind(self, at: int) -> bool:
        """Return whether a person follows their condition: `diabetes in her mother`."""
        if self._clause.items[at].in_brackets:
            return True
        for item in reversed(self._clause.items[:at]):
            if item.kind is PartKind.FUNCTION and item.text in _PERSON_LINKS:
                return True
            if item.kind is PartKind.CUE and item.phrase.kind in ("family", "patient", "other"):
                continue
            if item.kind is PartKind.FUNCTION or item.text == "and":
                continue
            return False
        return False

    def set_aside_choices(self) -> None:
        """Set aside each `or` after which no name is denied: a choice leaves both in doubt."""
        for at, item in enumerate(self._clause.items):
            before = [told for told in self._clause.told if told.at < at]
            after = [told for told in self._clause.told if told.at > at]
            is_choice = item.kind is PartKind.BREAK and item.text == "or" and before and after
            if is_choice and not after[0].kinds(
                "negation", "not_started", "possible", "hypothetical"
            ):
                self._clause.strays.append(item)
