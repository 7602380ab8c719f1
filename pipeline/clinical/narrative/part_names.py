"""The name that each number, date, word and purpose of a clause belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pipeline.clinical.narrative.clause import NEAREST, NarrativeClause
from pipeline.clinical.narrative.items import PartKind, SentencePart
from pipeline.clinical.narrative.known import singular
from pipeline.clinical.narrative.subjects import spoken_of
from pipeline.clinical.narrative.told import ToldStatement

_LISTED = ("medication", "medicine", "drug", "therap", "treatment", "prescription")
_SITE_LINKS = {"of", "in", "on", "the", "both"}
_COPULAS = {"is", "are", "was", "were", "remains"}


class PartNames:
    """Attach the numbers, dates, words and purposes of one clause to its names."""

    def __init__(self, clause: NarrativeClause) -> None:
        self._clause = clause

    def attach(self, at: int, item: SentencePart) -> None:
        """Attach a number, a frequency, a route or a text to a name."""
        numbers = item.kind is not PartKind.TEXT
        names = self._several(at, item, numbers=numbers)
        if len(names) > 1:
            for each in names:
                each.parts.append((item, self._context(at)))
            return
        told = self._text_target(at, item) if item.kind is PartKind.TEXT else None
        told = told or self._target(at, numbers=numbers)
        if told is None:
            self._clause.strays.append(item)
            return
        context = self._context(at)
        told.parts.append((item, context))
        if (
            item.kind in (PartKind.FREQUENCY, PartKind.ROUTE)
            and told.at < at
            and told in self._clause.told
        ):
            self._share(told, (item, context))

    def _several(self, at: int, item: SentencePart, *, numbers: bool) -> list[ToldStatement]:
        """Return the names of a part that is said of a list."""
        if item.kind in (PartKind.FREQUENCY, PartKind.ROUTE) and self._heads_a_list(at):
            return self._clause.told
        if any(item.text == "respectively" for item in self._clause.items):
            return []
        return [told for told in spoken_of(self._clause, at) if self._fits(told, numbers=numbers)]

    def _heads_a_list(self, at: int) -> bool:
        """Return whether a part is said of a whole list: `oral medications include`."""
        told = self._clause.told
        if len(told) < 2 or told[0].at < at:
            return False
        between = self._clause.items[at + 1 : told[0].at]
        # "By mouth, A and B are given": a separator is between the part and the first name.
        is_apart = any(item.kind in (PartKind.BREAK, PartKind.VERB) for item in between)
        is_noun = bool(between) and any(
            noun in word for word in between[0].text.split() for noun in _LISTED
        )
        return is_apart or is_noun

    def attach_date(self, at: int, item: SentencePart) -> None:
        """Attach a date to the names after the date, or to the names before the date."""
        context = self._context(at)
        before = [told for told in self._clause.told if told.at < at]
        leads = not before or (
            self._clause.items[at - 1].kind in (PartKind.BREAK, PartKind.FUNCTION)
            and self._leads(at)
        )
        if leads:
            after = [told for told in self._clause.told if told.at > at]
            if not after and self._clause.before is not None:
                after = [self._clause.before]
            if not after:
                self._clause.strays.append(item)
            for told in after:
                # "On May 1, results on May 2 were": both dates are said of the same names.
                before_name = [each for each in told.dates if not self._names_between(each[0], at)]
                told.dates = [*before_name, (item, context)]
            return
        if item.in_brackets:
            before[-1].parts.append((item, context))
            return
        begin = self._clause.last_post.get("date", -1)
        self._clause.last_post["date"] = at
        for told in [t for t in before if t.at > begin][:-1]:
            told.parts.append((item, context))
        before[-1].parts.append((item, context))

    def _names_between(self, earlier: SentencePart, at: int) -> bool:
        """Return whether a name is between an earlier part of the clause and a place."""
        places = [i for i in range(at) if self._clause.items[i] is earlier]
        begin = places[-1] if places else -1
        return any(begin < told.at < at for told in self._clause.told)

    def attach_word(self, at: int, item: SentencePart) -> None:
        """Attach a word to the nearest name whose entity has the word."""
        ahead = [told for told in self._clause.told if told.at > at]
        before = [told for told in self._clause.told if told.at < at]
        if before and self._is_of(at, before[-1].at):
            ahead = []
        choices = [*before[-1:], *ahead[:1]] or (
            [self._clause.before] if self._clause.before else []
        )
        follows_name = bool(at) and self._clause.items[at - 1].kind is PartKind.NAME
        if ahead and self._is_beside(at, ahead[0].at) and not follows_name:
            # An adjective belongs to the name that follows: "cholecystitis and acute sepsis".
            choices = ahead[:1]
        for told in choices:
            beside = told in self._clause.told and self._is_beside(at, told.at)
            for known in (self._clause.cited[i] for i in told.name.sources):
                own = all(word in known.own_words for word in singular(item.words))
                # A quote may contain other names: its words must stand beside the name.
                if own or (beside and known.has(item.words)):
                    told.words.append(item)
                    if self._is_of_both(at):
                        told.cues.append(("bilateral", item))
                    return
        self._clause.strays.append(item)

    def attach_purpose(self, at: int) -> None:
        """Attach the condition after a `for` to the medications or procedures before."""
        for index in range(at + 1, len(self._clause.items)):
            item = self._clause.items[index]
            if item.kind is PartKind.NAME:
                categories = {self._clause.cited[i].facts.category for i in item.sources}
                before = [
                    told
                    for told in self._clause.told
                    if told.at < at
                    and any(
                        self._clause.cited[i].facts.category in ("medication", "procedure")
                        for i in told.name.sources
                    )
                ]
                if before and categories & {"condition", "symptom", "lab", "vital"}:
                    for told in self._clause.group(before[-1]):
                        told.purposes.append(item)
                return
            if item.kind is not PartKind.FUNCTION:
                return

    def pair_respectively(self) -> None:
        """Give the numbers or dates of a list to the names of a list, in order."""
        marks = [item for item in self._clause.items if item.text == "respectively"]
        if not marks:
            return
        numbered = [told for told in self._clause.told if self._fits(told, numbers=True)]
        amounts = self._in_order(PartKind.AMOUNT)
        dates = self._in_order(PartKind.DATE)
        if amounts and not dates and len(amounts) == len(numbered):
            self._pair(numbered, amounts)
        elif dates and not amounts and len(dates) == len(self._clause.told):
            self._pair(self._clause.told, dates)
        else:
            self._clause.strays += marks[:1]

    def share_routes(self) -> None:
        """Give a route before a list to its names without a route: `oral aspirin and warfarin`."""
        for at, (item, following) in enumerate(pairwise(self._clause.items)):
            if item.kind is not PartKind.ROUTE or following.kind is not PartKind.NAME:
                continue
            for told in self._clause.told:
                is_dosed = any(p.kind is PartKind.AMOUNT for p, _ in told.parts)
                has_route = any(p.kind is PartKind.ROUTE for p, _ in told.parts)
                if told.at > at and is_dosed and not has_route:
                    told.parts.append((item, self._context(at)))

    def _in_order(self, kind: PartKind) -> list[tuple[SentencePart, str]]:
        """Return the numbers or dates of the clause, each once."""
        found = {id(item): (item, text) for each in self._clause.told for item, text in each.parts}
        return [found[id(i)] for i in self._clause.items if i.kind is kind and id(i) in found]

    @staticmethod
    def _pair(names: list[ToldStatement], parts: list[tuple[SentencePart, str]]) -> None:
        for told, part in zip(names, parts, strict=True):
            told.parts = [p for p in told.parts if p[0].kind is not part[0].kind]
            told.parts.append(part)

    def _target(self, at: int, *, numbers: bool) -> ToldStatement | None:
        """Return the name that a part belongs to."""
        behind = self._adjacent(range(at - 1, -1, -1), numbers=numbers)
        if behind is not None:
            return behind
        ahead = self._adjacent(range(at + 1, len(self._clause.items)), numbers=numbers)
        if ahead is not None:
            return ahead
        fitting = [t for t in self._clause.told if self._fits(t, numbers=numbers)]
        before = [told for told in fitting if told.at < at]
        if before:
            return before[-1]
        if fitting:
            return fitting[0]
        return self._clause.before

    def _fits(self, told: ToldStatement, *, numbers: bool) -> bool:
        known = [self._clause.cited[i] for i in told.name.sources]
        return not numbers or any(each.takes_amounts for each in known)

    def _adjacent(self, places: Iterator[int] | range, *, numbers: bool) -> ToldStatement | None:
        """Return the first name on the way, if no separator comes before the name."""
        forward = isinstance(places, range) and places.step > 0
        for index in places:
            item = self._clause.items[index]
            if item.kind is PartKind.NAME:
                told = self._clause.told_at(index)
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

    def _share(self, told: ToldStatement, part: tuple[SentencePart, str]) -> None:
        """Give a frequency or a route to all names of a list that has no other parts."""
        group = self._clause.group(told)
        earlier = [each for each in self._clause.told if each.at < group[-1].at]
        has_amount = any(item.kind is PartKind.AMOUNT for item, _ in told.parts)
        if has_amount or any(each.parts for each in earlier):
            return
        for other in group[1:]:
            other.parts.append(part)

    def _text_target(self, at: int, item: SentencePart) -> ToldStatement | None:
        """Return the name directly before a text, else the name directly after the text."""
        behind = self._adjacent(range(at - 1, -1, -1), numbers=False)
        if behind is not None and item.sources & behind.name.sources:
            return behind
        return None

    def _context(self, at: int) -> str:
        """Return up to four words and cues before a part, without separators."""
        found: list[str] = []
        for item in reversed(self._clause.items[max(0, at - 4) : at]):
            if item.kind in (PartKind.NAME, PartKind.AMOUNT, PartKind.DATE, PartKind.END):
                break
            if item.kind is PartKind.CUE and item.phrase.kind == "range":
                found.append("range")
            if item.kind is PartKind.CUE and item.phrase.kind in NEAREST:
                # "above the reference range of 4.0-5.6" against "above the reference range at 8.4"
                if "range" in item.words and not set(found) - {"of", ":", "("}:
                    found.append("range")
                continue
            found.append(item.text)
        after = self._clause.items[at + 1] if at + 1 < len(self._clause.items) else None
        tail = f" | {after.text}" if after is not None else ""
        return " ".join(reversed(found)) + tail

    def _leads(self, at: int) -> bool:
        """Return whether a date after a separator belongs to the next name."""
        back = at - 1
        while back >= 0 and self._clause.items[back].kind is PartKind.FUNCTION:
            back -= 1
        if back < 0 or self._clause.items[back].kind is not PartKind.BREAK:
            return False
        for item in self._clause.items[at + 1 :]:
            if item.kind is PartKind.NAME:
                return True
            if item.kind is not PartKind.FUNCTION and item.text != ",":
                return False
        return False

    def _is_of(self, at: int, name: int) -> bool:
        """Return whether a word tells the site of the name before: `cancer of the colon`."""
        between = self._clause.items[name + 1 : at]
        return bool(between) and all(
            item.text in _SITE_LINKS or item.kind is PartKind.WORD for item in between
        )

    def _is_of_both(self, at: int) -> bool:
        """Return whether a word tells both sides: `in both ears`, `in each ear`."""
        return any(item.text in ("both", "each", "all") for item in self._clause.items[:at][-2:])

    def _is_beside(self, at: int, name: int) -> bool:
        """Return whether only words of one phrase stand between a word and a name."""
        between = self._clause.items[min(at, name) + 1 : max(at, name)]
        return all(
            item.kind is PartKind.WORD
            or (item.kind is PartKind.CUE and item.phrase.kind in NEAREST)
            or (name < at and item.text in _COPULAS)
            for item in between
        )
