"""Shortlists of codes for many queries at once: five statements, however many queries there are.

The database finds words, near words and entries; `rank` orders the entries. A code that contradicts
a stated side is never offered.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from pipeline.clinical.facts import Candidate
from pipeline.codes.search import rank
from pipeline.codes.search.embedder import NgramEmbedder, literal
from pipeline.codes.search.index import MAX_WORD, TOTAL, dimension, importance
from pipeline.codes.search.query import Query, parse, tokens_of
from pipeline.codes.search.rank import Found, Lexeme, Match, Resolved
from pipeline.codes.search.spelling import MIN_LIKENESS, form_words, likeness, near_forms
from pipeline.codes.search.terms import best_term, of_heading
from pipeline.codes.search.words import FUNCTION_WORDS, NEGATED
from pipeline.models.code_index import LEXEME_DIMENSIONS

SYSTEMS: Mapping[str, tuple[str, ...]] = {
    "condition": ("ICD10CM", "SNOMEDCT"),
    "symptom": ("ICD10CM", "SNOMEDCT"),
    "medication": ("UNII", "RXNORM"),
    "allergy": ("UNII", "RXNORM", "SNOMEDCT"),
    "immunization": ("CVX",),
    "lab": ("LOINC",),
    "vital": ("LOINC",),
    "procedure": ("SNOMEDCT",),
}
"""The code systems in which an entity of each category is looked up."""

MAX_ENTRIES = 30
"""Entries of one query and system that are ranked by `rank`."""
MAX_SCANNED = 1_200
"""Entries that the rarest words of a query may lead to; more only cost time."""
NEAR_WORDS = 12
"""Words that the n-grams propose for a misread word, before `likeness` compares the characters."""
SHORTEST_WORD = 3
MAX_CORRECTIONS = 6
"""Words that one misread word may be."""
MAX_READINGS = 4
"""Readings of a text with misread words."""
_NUMBER = re.compile(r"\d+[a-z]?")
MAX_TERMS = 60
"""Terms of one code that are compared with a text; some substances have hundreds."""
BATCH = 250
"""Queries of one round of statements."""


@dataclass(frozen=True)
class Asked:
    """One query: the name of an entity, and its category."""

    text: str
    category: str
    is_emergency: bool = False
    """Whether the text belongs to an emergency encounter, at which treatment begins."""


def shortlists(asked: Sequence[Asked], limit: int) -> dict[Asked, list[Candidate]]:
    """Return at most `limit` candidates for each distinct query, best first.

    The statements do not see one moment: a load that commits between two of them can mix old and
    new codes. The caller compares the loaded systems before and after.
    """
    found: dict[Asked, list[Candidate]] = {}
    distinct = list(dict.fromkeys(asked))
    for at in range(0, len(distinct), BATCH):
        found.update(_batch(distinct[at : at + BATCH], limit))
    return found


@dataclass(frozen=True)
class _Reading:
    """One way to read a query: its text, or its text with misread words corrected."""

    number: int
    """The position of the query in its batch."""
    query: Query
    likeness: float = 1.0
    corrected: int = 0


def _batch(asked: Sequence[Asked], limit: int) -> dict[Asked, list[Candidate]]:
    vocabulary = _Vocabulary(asked)
    readings = [
        _Reading(number, parse(text, each.category, is_initial=each.is_emergency), like, corrected)
        for number, each in enumerate(asked)
        for text, like, corrected in vocabulary.readings(each)
    ]
    vocabulary.look_up(
        (system, words_of(reading.query))
        for reading in readings
        for system in SYSTEMS.get(asked[reading.number].category, ())
    )
    searches = [
        (reading, system, vocabulary.resolve(reading.query, system))
        for reading in readings
        for system in SYSTEMS.get(asked[reading.number].category, ())
        if reading.query.slots and vocabulary.totals.get(system)
    ]
    matches: defaultdict[int, list[tuple[Query, Match, Found]]] = defaultdict(list)
    for at, entry in _entries(
        [(system, resolved, vocabulary.totals[system]) for _, system, resolved in searches]
    ):
        reading, _, resolved = searches[at]
        match = rank.match(resolved, entry)
        if match is not None:
            if reading.corrected:
                match = match.of_similar(reading.likeness, reading.corrected)
            matches[reading.number].append((reading.query, match, entry))
    best = {number: rank.choices(found, limit) for number, found in matches.items()}
    codes = _codes(choice.code_id for found in best.values() for choice in found)
    return {
        each: [
            Candidate(
                system=choice.system,
                code=codes[choice.code_id].code,
                display=codes[choice.code_id].display,
                score=choice.score,
                reason=choice.reason,
                term=codes[choice.code_id].term(each.text),
            )
            for choice in best.get(number, ())
            # A load can replace the codes between two statements.
            if choice.code_id in codes
        ]
        for number, each in enumerate(asked)
    }


class _Vocabulary:
    """The lexemes of the words of some queries, per system, and corrections of misread words."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self._known: dict[tuple[str, str], Lexeme] = {}
        self._near: defaultdict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
        self.totals: dict[str, int] = {}
        self._tokens = {each: tokens_of(each.text, each.category) for each in asked}
        self.look_up(
            (system, set(self._tokens[each]))
            for each in asked
            for system in SYSTEMS.get(each.category, ())
        )
        self._look_near(asked)

    def readings(self, asked: Asked) -> Iterator[tuple[tuple[str, ...], float, int]]:
        """Yield the tokens of each reading with its likeness and the number of corrections."""
        found = self._tokens[asked]
        options: list[list[tuple[float, str]]] = []
        is_short = len(found) == 1
        for token in found:
            # A number beside other words is a stage or a grade, whatever OCR read.
            is_kept = self._is_known(token, asked.category) or (
                not is_short and _NUMBER.fullmatch(token)
            )
            near = [] if is_kept else self._corrections(token, asked)
            options.append(near or [(1.0, token)])
        if all(option[0][1] == token for option, token in zip(options, found, strict=True)):
            yield found, 1.0, 0
            return
        most = MAX_READINGS * 2 if is_short else MAX_READINGS
        for chosen in _likeliest(options, most):
            corrected = sum(c != t for (_, c), t in zip(chosen, found, strict=True))
            like = math.prod(value for value, _ in chosen)
            yield tuple(word for _, word in chosen), like ** (1 / len(found)), corrected

    def resolve(self, query: Query, system: str) -> Resolved:
        """Return the query with the lexemes of a system."""
        known = {word: self._known.get((system, word)) for word in query.words}
        joined = {
            pair: self._known[system, pair].text
            for pair in _pairs(query)
            if (system, pair) in self._known
        }
        return rank.resolve(query, known, joined)

    def look_up(self, wanted: Iterable[tuple[str, Iterable[str]]]) -> None:
        """Learn the lexemes of these words."""
        pairs = {(system, word[:MAX_WORD]) for system, words in wanted for word in words}
        pairs -= self._known.keys()
        pairs |= {(system, TOTAL) for system, _ in pairs if system not in self.totals}
        ordered = sorted(pairs)
        if not ordered:
            return
        with connection.cursor() as cursor:
            cursor.execute(_WORDS, [[s for s, _ in ordered], [w for _, w in ordered]])
            rows = cursor.fetchall()
        for system, word, _, count in rows:
            if word == TOTAL:
                self.totals[system] = count
        for system, word, lexeme, count in rows:
            if word != TOTAL:
                worth = importance(count, self.totals[system])
                self._known[system, word] = Lexeme(lexeme, worth)

    def _is_known(self, token: str, category: str) -> bool:
        if token in FUNCTION_WORDS or token in form_words(category) or not token.isalnum():
            return True
        if token.isdigit() or any((s, token) in self._known for s in SYSTEMS.get(category, ())):
            return True
        return not any(self.totals.get(system) for system in SYSTEMS.get(category, ()))

    def _corrections(self, token: str, asked: Asked) -> list[tuple[float, str]]:
        found = {word: value for value, word in near_forms(token, asked.category)}
        # The words of a system are like every short token; abbreviations are likelier.
        if not found or len(token) > SHORTEST_WORD:
            for system in SYSTEMS.get(asked.category, ()):
                for value, word in self._near.get((system, token), ()):
                    found[word] = max(found.get(word, 0.0), value)
        ordered = sorted(((value, word) for word, value in found.items()), reverse=True)
        return [each for each in ordered if _has_digits_of(each[1], token)][:MAX_CORRECTIONS]

    def _look_near(self, asked: Sequence[Asked]) -> None:
        unknown = sorted(
            {
                (system, token)
                for each in asked
                for token in self._tokens[each]
                if 3 <= len(token) <= MAX_WORD and not self._is_known(token, each.category)
                for system in SYSTEMS.get(each.category, ())
                if self.totals.get(system)
            }
        )
        if not unknown:
            return
        vectors = NgramEmbedder().vectors([token for _, token in unknown])
        with connection.cursor() as cursor:
            cursor.execute(
                _NEAR_WORDS,
                [
                    [system for system, _ in unknown],
                    [token for _, token in unknown],
                    [literal(vector) for vector in vectors],
                    NEAR_WORDS,
                ],
            )
            for system, token, word in cursor:
                value = likeness(token, word)
                if value >= MIN_LIKENESS:
                    self._near[system, token].append((value, word))


def _has_digits_of(word: str, token: str) -> bool:
    """Return whether a correction keeps the digits: stage 3b never becomes stage 8b."""
    digits = [c for c in word if c.isdigit()]
    return not digits or digits == [c for c in token if c.isdigit()]


def _likeliest(
    options: Sequence[Sequence[tuple[float, str]]], most: int
) -> list[tuple[tuple[float, str], ...]]:
    """Return the combinations with the highest likeness."""
    found: list[tuple[tuple[float, str], ...]] = [()]
    for option in options:
        longer = [(*chosen, each) for chosen in found for each in option]
        longer.sort(key=lambda chosen: -math.prod(value for value, _ in chosen))
        found = longer[:most]
    return found


def words_of(query: Query) -> set[str]:
    """Return every word of a query, and every two neighbours as one word."""
    return query.words | set(_pairs(query))


def _pairs(query: Query) -> Iterator[str]:
    for left, right in zip(query.slots, query.slots[1:], strict=False):
        words = [w.text for s in (left, right) for o in s.alternatives[:1] for w in o[:1]]
        if len(words) == 2:
            yield "".join(words)


def _entries(searches: Sequence[tuple[str, Resolved, int]]) -> Iterator[tuple[int, Found]]:
    rows = []
    for at, (system, query, total) in enumerate(searches):
        terms, vector = _terms(query, total)
        if terms:
            rows.append((at, system, terms, vector, query.weight))
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            _ENTRIES, [*(list(column) for column in zip(*rows, strict=True)), MAX_ENTRIES]
        )
        for at, *columns in cursor:
            yield at, Found(searches[at][0], *columns)


def _terms(query: Resolved, entries: int) -> tuple[str, str]:
    """Return the rarest lexemes as a full-text query, and all weights as a sparse vector."""
    weights: defaultdict[str, float] = defaultdict(float)
    rarity: dict[str, float] = {}
    for idea in query.ideas:
        for option in idea.alternatives:
            total = sum(term.weight for term in option) or 1.0
            for term in option:
                if term.lexeme is None:
                    continue
                text = (NEGATED if term.is_negated else "") + term.lexeme.text
                weights[text] = max(weights[text], idea.weight * term.weight / total)
                if not term.is_negated:
                    rarity[term.lexeme.text] = term.lexeme.importance
    for number, join in query.joins.items():
        weights[join] = sum(idea.weight for idea in query.ideas[number : number + 2])
        rarity[join] = 9.0
    if not rarity:
        return "", ""
    values: defaultdict[int, float] = defaultdict(float)
    for text, weight in weights.items():
        values[dimension(text)] += weight
    vector = "{" + ",".join(f"{d}:{values[d]:.3f}" for d in sorted(values)) + "}"
    return " | ".join(map(_quoted, _rarest(rarity, entries))), f"{vector}/{LEXEME_DIMENSIONS}"


def _rarest(rarity: Mapping[str, float], total: int) -> list[str]:
    """Return the rarest lexemes that together lead to about MAX_SCANNED entries at most."""
    chosen: list[str] = []
    scanned = 0.0
    for lexeme in sorted(rarity, key=lambda each: -rarity[each]):
        scanned += total / math.exp(rarity[lexeme])
        if len(chosen) >= 2 and scanned > MAX_SCANNED:
            break
        chosen.append(lexeme)
    return chosen


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


@dataclass(frozen=True)
class _Named:
    """A code with its names."""

    code: str
    display: str
    own: Sequence[str]
    above: Sequence[str]

    def term(self, text: str) -> str:
        return best_term(text, self.display, self.own, self.above)


def _codes(ids: Iterable[int]) -> dict[int, _Named]:
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_CODES, [MAX_TERMS, MAX_TERMS, wanted])
        return {
            code_id: _Named(code, display, own, of_heading(display, heading or "", above))
            for code_id, code, display, own, heading, above in cursor
        }


_WORDS = """
SELECT q.system, q.word, w.lexeme, max(w.entry_count)
FROM unnest(%s::text[], %s::text[]) AS q (system, word)
JOIN code_search_words w ON w.system_id = q.system
  AND w.lexeme = coalesce((ts_lexize('english_stem', q.word))[1], q.word)
GROUP BY q.system, q.word, w.lexeme
"""
_NEAR_WORDS = """
SELECT q.system, q.word, near.word
FROM unnest(%s::text[], %s::text[], %s::halfvec[]) AS q (system, word, grams)
CROSS JOIN LATERAL (
  SELECT w.word FROM code_search_words w
  WHERE w.system_id = q.system AND w.length BETWEEN length(q.word) - 2 AND length(q.word) + 2
  ORDER BY w.grams <#> q.grams LIMIT %s
) near
"""
_ENTRIES = """
SELECT q.n, e.words, e.weights, e.codes, e.facets
FROM unnest(%s::int[], %s::text[], %s::tsquery[], %s::sparsevec[], %s::float[])
  AS q (n, system, terms, dimensions, weight)
CROSS JOIN LATERAL (
  SELECT entry.words, entry.weights, entry.codes, entry.facets FROM code_search_entries entry
  WHERE entry.system_id = q.system AND entry.lexemes @@ q.terms
  ORDER BY (entry.dimensions <#> q.dimensions) / (q.weight + entry.weight / 400), entry.id
  LIMIT %s
) e
"""
# An order by id would let the planner walk the table by its key for every code.
_CODES = """
SELECT c.id, c.code, c.display,
  (ARRAY(
    SELECT t.text FROM code_terms t
    WHERE t.code_id = c.id AND t.text <> c.display ORDER BY t.text
  ))[1:%s],
  above.display,
  (ARRAY(
    SELECT t.text FROM code_terms t
    WHERE t.code_id = above.id AND t.text <> above.display ORDER BY t.text
  ))[1:%s]
FROM codes c
LEFT JOIN codes above ON above.system_id = c.system_id AND above.code = c.parent
  AND above.kind IN ('category', 'subcategory')
WHERE c.id = ANY(%s)
"""
