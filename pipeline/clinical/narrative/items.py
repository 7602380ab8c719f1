"""The parts of a sentence: names, numbers, dates, cues, words, and the marks between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from pipeline.clinical.narrative import timing
from pipeline.clinical.narrative.amounts import StatedAmount, read_amount
from pipeline.clinical.narrative.known import CitedEntity, singular
from pipeline.clinical.narrative.printed_dates import StatedDate, read_date
from pipeline.clinical.narrative.text import SentenceToken, starts_of, tokens_of
from pipeline.clinical.narrative.vocabulary import (
    CuePhrase,
    longest_phrase,
    phrase_starts,
    phrases,
)


class PartKind(Enum):
    """What a part of a sentence is."""

    NAME = auto()
    AMOUNT = auto()
    DATE = auto()
    FREQUENCY = auto()
    ROUTE = auto()
    TEXT = auto()
    """An attribute of a cited entity in words."""
    CUE = auto()
    VERB = auto()
    FUNCTION = auto()
    WORD = auto()
    """A word that needs a source."""
    BREAK = auto()
    """A comma, `and`, `or`."""
    OPEN = auto()
    CLOSE = auto()
    END = auto()
    """The end of a clause."""
    MARK = auto()


@dataclass(frozen=True, kw_only=True)
class SentencePart:
    """One part of a sentence."""

    kind: PartKind
    text: str
    words: tuple[str, ...] = ()
    sources: frozenset[int] = frozenset()
    """Indices of the cited entities that contain the part."""
    amount: StatedAmount | None = None
    date: StatedDate | None = None
    key: str = ""
    """Key of a frequency or a route."""
    phrase: CuePhrase = field(default=CuePhrase(kind=""))
    in_brackets: bool = False


_BREAKS = {",", "and", "or", "&", "nor", "plus", "/"}
_ENDS = {".", ";", "but", "however", "while", "whereas", "although", "though", "yet"}
_LONGEST_NAME = 24
_MARKS_IN_NAMES = "-/(),'%&[]#"


def items_of(text: str, cited: Sequence[CitedEntity]) -> list[SentencePart]:
    """Return the parts of a sentence in order."""
    tokens = tokens_of(text)
    index = _index_of(cited)
    found: list[SentencePart] = []
    results: frozenset[tuple[str, ...]] = frozenset()
    at = depth = 0
    while at < len(tokens):
        item, after = _next(tokens, at, index)
        if item.words[1:] in results and item.phrase.begins_with_verb:
            # "was negative" states the result of a test here, and denies nothing.
            item = SentencePart(kind=PartKind.VERB, text=item.words[0], words=item.words[:1])
            after = at + 1
        if item.kind is PartKind.OPEN:
            depth += 1
        elif item.kind is PartKind.CLOSE:
            depth = max(0, depth - 1)
        if item.kind is PartKind.NAME:
            results = frozenset(text for i in item.sources for text in cited[i].texts)
        found.append(_in_brackets(item) if depth else item)
        at = after
    return found


def _in_brackets(item: SentencePart) -> SentencePart:
    return SentencePart(
        kind=item.kind,
        text=item.text,
        words=item.words,
        sources=item.sources,
        amount=item.amount,
        date=item.date,
        key=item.key,
        phrase=item.phrase,
        in_brackets=True,
    )


def _next(tokens: Sequence[SentenceToken], at: int, index: NameIndex) -> tuple[SentencePart, int]:
    """Return the longest part that begins at a token; a name wins over a cue of its length."""
    options = [
        found
        for found in (
            _name(tokens, at, index),
            _attribute(tokens, at, index),
            _dated(tokens, at),
            _timed(tokens, at),
            _phrase(tokens, at),
            _amount(tokens, at, index.units),
        )
        if found is not None
    ]
    best = max(options, key=lambda option: option[1], default=None)
    if best is not None:
        return best
    return _single(tokens[at]), at + 1


_Found = tuple[SentencePart, int] | None


@dataclass(frozen=True, kw_only=True)
class NameIndex:
    """The cited entities by their names and by their attributes in words."""

    names: Mapping[tuple[str, ...], frozenset[int]]
    printed: Mapping[tuple[str, ...], frozenset[int]]
    """Names with their marks."""
    texts: Mapping[tuple[str, ...], frozenset[int]]
    units: frozenset[str]
    name_starts: frozenset[str]
    """The first words of the names: few tokens of a sentence begin a name."""
    text_starts: frozenset[str]


def _index_of(cited: Sequence[CitedEntity]) -> NameIndex:
    names = _sources(known.names for known in cited)
    printed = _sources([known.printed_name] for known in cited)
    texts = _sources(known.texts for known in cited)
    return NameIndex(
        names=names,
        printed=printed,
        texts=texts,
        units=frozenset(unit for known in cited for unit in known.units),
        name_starts=starts_of(names) | starts_of(printed),
        text_starts=starts_of(texts),
    )


def _sources(
    keys_of_each: Iterable[Iterable[tuple[str, ...]]],
) -> dict[tuple[str, ...], frozenset[int]]:
    found: dict[tuple[str, ...], set[int]] = {}
    for number, keys in enumerate(keys_of_each):
        for key in keys:
            found.setdefault(key, set()).add(number)
    return {key: frozenset(numbers) for key, numbers in found.items()}


def _name(tokens: Sequence[SentenceToken], at: int, index: NameIndex) -> _Found:
    if not (tokens[at].is_word or tokens[at].is_number):
        return None
    if not index.name_starts & {tokens[at].text, *singular((tokens[at].text,))}:
        return None
    best: _Found = None
    nothing: frozenset[int] = frozenset()
    printed: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    for end, last in enumerate(tokens[at : at + _LONGEST_NAME], at + 1):
        printed = (*printed, last.text)
        sources = index.printed.get(printed, nothing)
        if last.is_word or last.is_number:
            words = (*words, *singular((last.text,)))
            sources |= index.names.get(words, nothing)
        elif last.text not in _MARKS_IN_NAMES:
            break
        if sources:
            text = " ".join(printed)
            best = SentencePart(kind=PartKind.NAME, text=text, words=words, sources=sources), end
    return best


def _attribute(tokens: Sequence[SentenceToken], at: int, index: NameIndex) -> _Found:
    best: _Found = None
    if tokens[at].text not in index.text_starts:
        return None
    words: tuple[str, ...] = ()
    for end, last in enumerate(tokens[at : at + _LONGEST_NAME], at + 1):
        words = (*words, last.text)
        sources = index.texts.get(words)
        if sources:
            text = " ".join(words)
            best = SentencePart(kind=PartKind.TEXT, text=text, words=words, sources=sources), end
    return best


def _dated(tokens: Sequence[SentenceToken], at: int) -> _Found:
    found = read_date(tokens, at)
    if found is None:
        return None
    return SentencePart(kind=PartKind.DATE, text=found[0].printed, date=found[0]), found[1]


def _timed(tokens: Sequence[SentenceToken], at: int) -> _Found:
    if (tokens[at].is_word or tokens[at].is_number) and not timing.may_begin(tokens[at].text):
        return None
    for end in range(min(len(tokens), at + 9), at, -1):
        part = tokens[at:end]
        ends_in_mark = not (part[-1].is_word or part[-1].is_number)
        # "b.i.d." ends with a mark.
        if ends_in_mark and not (part[-1].text == "." and len(part) in (4, 6)):
            continue
        if any(t.text not in ".-" for t in part if not (t.is_word or t.is_number)):
            continue
        words = tuple(t.text for t in part if t.is_word or t.is_number)
        text = " ".join(t.text for t in part)
        key = timing.frequency_phrases().get(words) or timing.every(words)
        if key:
            return SentencePart(kind=PartKind.FREQUENCY, text=text, words=words, key=key), end
        route = timing.route_phrases().get(words)
        if route:
            return SentencePart(kind=PartKind.ROUTE, text=text, words=words, key=route), end
    return None


def _phrase(tokens: Sequence[SentenceToken], at: int) -> _Found:
    if tokens[at].text not in phrase_starts():
        return None
    for end in range(min(len(tokens), at + longest_phrase()), at, -1):
        words = tuple(t.text for t in tokens[at:end])
        phrase = phrases().get(words)
        if phrase is None:
            continue
        text = " ".join(words)
        if text in _BREAKS:
            return SentencePart(kind=PartKind.BREAK, text=text), end
        kind = {"function": PartKind.FUNCTION, "verb": PartKind.VERB}.get(phrase.kind, PartKind.CUE)
        return SentencePart(kind=kind, text=text, words=words, phrase=phrase), end
    return None


def _amount(tokens: Sequence[SentenceToken], at: int, units: frozenset[str]) -> _Found:
    found = read_amount(tokens, at, units)
    if found is None:
        return None
    return SentencePart(kind=PartKind.AMOUNT, text=found[0].printed, amount=found[0]), found[1]


def _single(token: SentenceToken) -> SentencePart:
    if token.text in _ENDS:
        return SentencePart(kind=PartKind.END, text=token.text)
    if token.text in _BREAKS:
        return SentencePart(kind=PartKind.BREAK, text=token.text)
    if token.text in ("(", "["):
        return SentencePart(kind=PartKind.OPEN, text=token.text)
    if token.text in (")", "]"):
        return SentencePart(kind=PartKind.CLOSE, text=token.text)
    if token.text in (":", "-"):
        return SentencePart(kind=PartKind.MARK, text=token.text)
    return SentencePart(kind=PartKind.WORD, text=token.text, words=(token.text,))


def clauses_of(items: Sequence[SentencePart]) -> Iterator[tuple[bool, list[SentencePart]]]:
    """Yield the clauses, each with whether the clause begins a new sentence."""
    clause: list[SentencePart] = []
    fresh = True
    for index, item in enumerate(items):
        if item.kind is PartKind.END and not (item.text == ";" and not _has_verb(items, index + 1)):
            if clause:
                yield fresh, clause
            clause, fresh = [], item.text in (".", ";")
            continue
        if _begins_clause(items, index, clause):
            yield fresh, clause
            clause, fresh = [], False
        clause.append(
            SentencePart(kind=PartKind.BREAK, text=";") if item.kind is PartKind.END else item
        )
    if clause:
        yield fresh, clause


def _has_verb(items: Sequence[SentencePart], at: int) -> bool:
    for item in items[at:]:
        if item.kind is PartKind.END:
            return False
        if _is_verb(item):
            return True
    return False


def _is_verb(item: SentencePart) -> bool:
    return item.kind is PartKind.VERB or (
        item.kind is PartKind.CUE
        and (
            item.phrase.begins_with_verb
            or item.text in _CUE_VERBS
            or (item.phrase.kind == "stopped" and item.words[-1] in _CUE_VERBS)
        )
    )


_CUE_VERBS = frozenset(
    {
        "takes", "take", "taking", "continues", "continue", "uses", "denies", "deny", "denied",
        "declined", "declines", "refused", "refuses", "lacks", "lacked", "began", "suspects",
        "avoids", "reacts to",
    }
)  # fmt: skip


_OF_A_SUBJECT = {
    PartKind.BREAK, PartKind.FUNCTION, PartKind.WORD, PartKind.AMOUNT, PartKind.FREQUENCY,
    PartKind.ROUTE,
}  # fmt: skip
"""What may stand between the first name of a subject and its verb."""


def _begins_clause(
    items: Sequence[SentencePart], index: int, clause: Sequence[SentencePart]
) -> bool:
    """Return whether a separator is followed by a new predicate or a new subject."""
    if items[index].kind is not PartKind.BREAK or items[index].text not in (",", "and"):
        return False
    has_name = any(item.kind is PartKind.NAME for item in clause)
    has_verb = any(_is_verb(item) for item in clause)
    if items[index].in_brackets or not (has_name or has_verb):
        return False
    at = index + 1
    while at < len(items) and (
        items[at].kind is PartKind.FUNCTION
        or items[at].text in ("and", "previously", "currently")
        or (items[at].kind is PartKind.CUE and items[at].phrase.kind == "patient")
    ):
        at += 1
    if at < len(items) and _is_verb(items[at]) and has_name:
        return True
    if not has_verb:
        return False
    seen_name = False
    while at < len(items):
        item = items[at]
        if item.kind is PartKind.NAME or (
            item.kind is PartKind.CUE and item.phrase.kind in ("family", "other") and not seen_name
        ):
            seen_name = True
        elif seen_name and _is_verb(item):
            return True
        elif item.kind not in _OF_A_SUBJECT:
            return False
        at += 1
    return False
