"""Rank entries by coverage: what the query says and the entry lacks, and the reverse.

This module is pure. A score is between 0 and 1; the reason names counts and facets only, so that
no text of a document leaves the search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pipeline.codes.search.facets import SIDE_NAMES, STATED, Facets, Side
from pipeline.codes.search.query import Query
from pipeline.codes.search.words import JOINED, NEGATED, RESIDUAL

UNMENTIONED = 0.45
"""How much a word counts that only the entry has, against a word that both have."""
UNCOVERED_POWER = 1.4
"""How steeply the score falls with the part of the query that the entry lacks."""
CONTRADICTED = 0.5
"""The share of its score that an entry keeps which states something else."""
UNKNOWN_WEIGHT = 3.0
"""The weight of a word that the system does not have."""
RESIDUAL_WEIGHT = 0.6
NEGATED_WEIGHT = 0.7
MIN_COVERAGE = 0.25
"""An entry that covers less of the query is not offered."""

CONTEXT = frozenset(
    ("pregnanc", "childbirth", "puerperium", "newborn", "neonat", "perinat", "matern", "deliveri",
     "fetus", "fetal", "congenit", "abort", "histori", "famili", "screen", "exposur",
     "observ", "postprocedur", "sequela", "underdos", "secondari",
     "situ", "transplant")
)  # fmt: skip
"""Stems that change what a code is about: a text that does not state the context excludes them."""
OUT_OF_CONTEXT = 0.75
"""The share of its score that an entry keeps which has a context that the query lacks."""

UNSTATED = "is not stated"
"""Ends the reason of a code that states a side or a specimen which the text does not state."""
USUAL_SPECIMEN = "blood"
"""The specimen of a test whose text names no specimen."""

EXCLUSIVE = (
    ("acut", "chronic", "subacut"),
    ("mild", "moder", "sever"),
    ("first", "second", "third", "fourth"),
    ("primari", "secondari"),
    ("upper", "lower"),
    ("benign", "malign"),
    ("open", "close"),
    ("displac", "nondisplac"),
    ("systol", "diastol"),
    ("type", "typ"),
    ("singl", "recurr"),
    ("male", "femal"),
    ("anterior", "posterior"),
    ("medial", "later"),
    ("personal", "famili"),
)  # fmt: skip
"""Stems of which one excludes the others, unless a text states several of them."""
_GROUPS = tuple(frozenset(group) for group in EXCLUSIVE)


@dataclass(frozen=True)
class Lexeme:
    """The lexeme of a word of the query, with what the lexeme tells."""

    text: str
    importance: float


@dataclass(frozen=True)
class QueryTerm:
    """One word of an alternative; without a lexeme where the system lacks the word."""

    lexeme: Lexeme | None
    is_negated: bool
    weight: float


@dataclass(frozen=True)
class Idea:
    """One slot of a query with the words of one system."""

    alternatives: tuple[tuple[QueryTerm, ...], ...]
    weight: float


@dataclass(frozen=True)
class Resolved:
    """A query with the words of one system."""

    ideas: tuple[Idea, ...]
    joins: Mapping[int, str]
    """Number of an idea → the lexeme that the idea and the next idea form together."""
    weight: float
    stems: frozenset[str]
    numbers: frozenset[str]
    """Words that begin with a digit, also those that the system lacks."""
    exclusive: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """The groups of `EXCLUSIVE` from which the query states a stem. A pair holds the stems that the
    query states, and the other stems of the group."""


@dataclass(frozen=True)
class Found:
    """One entry that the database found."""

    system: str
    words: Sequence[str]
    weights: Sequence[int]
    codes: Sequence[int]
    facets: Sequence[str]


@dataclass(frozen=True)
class Match:
    """How well an entry fits a query, without its facets."""

    score: float
    covered: int
    of: int
    similar: int = 0
    """Words of the query that were taken for a similar word."""

    @property
    def reason(self) -> str:
        words = f"{self.covered} of {self.of} words"
        return f"{words} ({self.similar} similar)" if self.similar else words

    def of_similar(self, likeness: float, similar: int) -> Match:
        """Return the match of a reading with corrected words."""
        return replace(self, score=self.score * likeness, similar=similar)


@dataclass(frozen=True)
class Choice:
    """One code with its score."""

    code_id: int
    system: str
    score: float
    reason: str
    side: Side
    is_side_unstated: bool
    """Whether the code states a side that the text does not state."""


@dataclass(frozen=True)
class Fit:
    """How the facets of a code fit the stated facets."""

    share: float
    """The share of the score that the code keeps."""
    reason: str
    side: Side
    is_side_unstated: bool


def resolve(
    query: Query, known: Mapping[str, Lexeme | None], joined: Mapping[str, str]
) -> Resolved:
    """Return the query with the lexemes of one system.

    `known` names the lexeme of each word, and `joined` the lexeme of two words that are one.
    """
    ideas: list[Idea] = []
    for slot in query.slots:
        alternatives = tuple(
            tuple(_term(word.text, word.is_negated, known.get(word.text)) for word in option)
            for option in slot.alternatives
            if option
        )
        usable = tuple(a for a in alternatives if any(term.lexeme for term in a))
        weights = [sum(term.weight for term in a) for a in usable or alternatives]
        if weights:
            ideas.append(Idea(usable, max(weights)))
    stems = {
        term.lexeme.text
        for idea in ideas
        for option in idea.alternatives
        for term in option
        if term.lexeme is not None
    }
    numbers = frozenset(word for word in query.words if word[0].isdigit())
    joins = {}
    for at, (left, right) in enumerate(zip(query.slots, query.slots[1:], strict=False)):
        both = "".join(w.text for s in (left, right) for o in s.alternatives[:1] for w in o[:1])
        if len(query.slots) == len(ideas) and both in joined:
            joins[at] = joined[both]
    exclusive = tuple(
        (group & stems, group - stems) for group in _GROUPS if not group.isdisjoint(stems)
    )
    weight = sum(i.weight for i in ideas) or 1.0
    return Resolved(tuple(ideas), joins, weight, frozenset(stems), numbers, exclusive)


def _term(text: str, is_negated: bool, lexeme: Lexeme | None) -> QueryTerm:
    weight = lexeme.importance if lexeme else UNKNOWN_WEIGHT
    if text in RESIDUAL:
        weight = RESIDUAL_WEIGHT
    return QueryTerm(lexeme, is_negated, weight * (NEGATED_WEIGHT if is_negated else 1.0))


def match(query: Resolved, entry: Found) -> Match | None:
    """Return how well an entry fits, or None for an entry that covers too little."""
    places: dict[str, int] = {}
    negated: dict[str, int] = {}
    for at, word in enumerate(entry.words):
        if word[0] == NEGATED:
            negated.setdefault(word[1:], at)
        else:
            places.setdefault(word[1:] if word[0] in "?=" else word, at)
    matched: set[int] = set()
    covered = 0.0
    count = 0
    contradictions = 0
    taken = -1
    for number, idea in enumerate(query.ideas):
        if number == taken:
            covered += idea.weight
            count += 1
            continue
        best = 0.0
        best_places: tuple[int, ...] = ()
        for option in idea.alternatives:
            share, found, against = _covered(option, places, negated)
            if share > best:
                best, best_places = share, found
            if against and share == 0:
                contradictions += against
        join = query.joins.get(number)
        if best < 1 and join is not None and join in places:
            best, best_places, taken = 1.0, (places[join],), number + 1
        covered += best * idea.weight
        count += best >= 0.6
        matched.update(best_places)
    share = covered / query.weight
    if share < MIN_COVERAGE:
        return None
    for at in tuple(matched):
        if entry.words[at][0] == JOINED:
            matched.update(range(max(0, at - 2), at))
    known = sum(entry.weights[at] for at in matched) / 100
    unmentioned = sum(w for at, w in enumerate(entry.weights) if at not in matched) / 100
    score = share**UNCOVERED_POWER * (known + 0.5) / (known + 0.5 + UNMENTIONED * unmentioned)
    contradictions += _contradictions(query, places)
    if any(place not in query.stems for place in CONTEXT.intersection(places)):
        score *= OUT_OF_CONTEXT
    return Match(min(1.0, score * CONTRADICTED**contradictions), count, len(query.ideas))


def _covered(
    option: Sequence[QueryTerm], places: Mapping[str, int], negated: Mapping[str, int]
) -> tuple[float, tuple[int, ...], int]:
    total = got = 0.0
    found: list[int] = []
    against = 0
    for term in option:
        total += term.weight
        wanted, opposite = (negated, places) if term.is_negated else (places, negated)
        if term.lexeme is None:
            continue
        if term.lexeme.text in wanted:
            got += term.weight
            found.append(wanted[term.lexeme.text])
        else:
            against += term.lexeme.text in opposite
    return (got / total if total else 0.0), tuple(found), against


def _contradictions(query: Resolved, places: Mapping[str, int]) -> int:
    count = sum(
        stated.isdisjoint(places) and not others.isdisjoint(places)
        for stated, others in query.exclusive
    )
    if query.numbers:
        printed = {word for word in places if word[0].isdigit()}
        count += bool(printed) and not query.numbers & printed
    return count


def choices(found: Iterable[tuple[Query, Match, Found]], limit: int) -> list[Choice]:
    """Return the best codes of these entries that the stated facets permit, each once."""
    by_code: dict[int, Choice] = {}
    worst = 0.0
    for query, match_of, entry in sorted(found, key=lambda each: -each[1].score):
        # The facets of a code only lower the score of its entry.
        if (
            len(by_code) >= limit
            and match_of.score <= worst
            and not _is_one_sided(by_code.values())
        ):
            break
        for code_id, text in zip(entry.codes, entry.facets, strict=True):
            fit = _fit(query.facets, text, query.is_initial)
            if fit is None:
                continue
            score = round(match_of.score * fit.share, 4)
            known = by_code.get(code_id)
            if known is None or known.score < score:
                reason = match_of.reason + fit.reason
                by_code[code_id] = Choice(
                    code_id, entry.system, score, reason, fit.side, fit.is_side_unstated
                )
        if len(by_code) >= limit:
            worst = sorted((each.score for each in by_code.values()), reverse=True)[limit - 1]
    ordered = sorted(by_code.values(), key=lambda each: (-each.score, each.code_id))
    return _with_open_side(ordered, limit)


def _with_open_side(ordered: Sequence[Choice], limit: int) -> list[Choice]:
    """Return the best choices, of which one at least states no side that the text lacks.

    A list of which every code states a side, while the text states none, would suggest that side.
    If there is no code without a side, codes of two sides are offered; one side alone is not.
    """
    chosen = list(ordered[:limit])
    if not _is_one_sided(chosen):
        return chosen
    other = next((each for each in ordered[limit:] if each.side is not chosen[0].side), None)
    return [*chosen[: limit - 1], other] if other is not None and limit > 1 else []


def _is_one_sided(chosen: Collection[Choice]) -> bool:
    """Return whether every code states the same side, which the text does not state."""
    return bool(chosen) and (
        all(each.is_side_unstated for each in chosen) and len({each.side for each in chosen}) == 1
    )


@lru_cache(maxsize=20_000)
def _fit(stated: Facets, facets: str, is_initial: bool) -> Fit | None:
    """Return how the facets of a code fit; None for a contradiction."""
    of_code = Facets.read(facets)
    share = 1.0
    reasons: list[str] = []
    if stated.side is not Side.NONE:
        if of_code.side is stated.side:
            reasons.append(f"laterality {SIDE_NAMES[stated.side]}")
        elif of_code.side in STATED:
            return None
        else:
            share *= 0.72 if of_code.side is Side.OPEN else 0.78
            reasons.append(f"laterality {SIDE_NAMES[stated.side]} is not in the code")
    elif of_code.side in STATED:
        share *= 0.75
        reasons.append(f"laterality {SIDE_NAMES[of_code.side]} {UNSTATED}")
    if of_code.trimester:
        if stated.trimester:
            if of_code.trimester == stated.trimester:
                reasons.append(f"trimester {stated.trimester}")
            elif of_code.trimester == "0":
                share *= 0.8
            else:
                return None
        elif of_code.trimester != "0":
            share *= 0.8
    if of_code.encounter:
        wanted = stated.encounter or ("D" if stated.healing else "A")
        if of_code.encounter != wanted:
            if stated.encounter:
                share *= 0.5
            elif is_initial:
                share *= 0.7
            else:
                share *= 0.9 if of_code.encounter == "D" else 0.85
        elif stated.encounter:
            reasons.append(
                {"A": "initial", "D": "subsequent", "S": "sequela"}[wanted] + " encounter"
            )
    if of_code.wound:
        wanted_wound = stated.wound or "closed"
        if of_code.wound != wanted_wound:
            share *= 0.7 if stated.wound else 0.9
        elif stated.wound:
            reasons.append("wound open" if wanted_wound != "closed" else "wound closed")
    if of_code.healing:
        wanted_healing = stated.healing or "routine"
        if of_code.healing != wanted_healing:
            share *= 0.7 if stated.healing else 0.9
        elif stated.healing:
            reasons.append(f"healing {wanted_healing}")
    if of_code.fetus != stated.fetus and of_code.fetus not in ("", "0" if not stated.fetus else ""):
        share *= 0.8
    if of_code.specimen:
        if stated.specimen and of_code.specimen != stated.specimen:
            return None
        if stated.specimen:
            reasons.append(f"specimen {stated.specimen}")
        elif of_code.specimen != USUAL_SPECIMEN:
            share *= 0.6
            reasons.append(f"specimen {of_code.specimen} {UNSTATED}")
    is_unstated = stated.side is Side.NONE and of_code.side in STATED
    return Fit(share, "".join(f"; {reason}" for reason in reasons), of_code.side, is_unstated)
