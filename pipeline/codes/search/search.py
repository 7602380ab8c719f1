"""Shortlists of codes for many queries at once: five statements, however many queries there are.

The database finds words, near words and entries; `rank` orders the entries. A code that contradicts
a stated side is never offered.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from pipeline.clinical.facts import Candidate
from pipeline.codes.search import rank
from pipeline.codes.search.embedder import NgramEmbedder, folded, literal
from pipeline.codes.search.index import MAX_WORD, TOTAL, dimension, importance
from pipeline.codes.search.query import Query, parse
from pipeline.codes.search.rank import Found, Lexeme, Match, Resolved
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
ENTRIES = 50_000
"""Entries of a large system; `importance` is relative to them."""
MAX_SCANNED = 1_200
"""Entries that the rarest words of a query may lead to; more only cost time."""
NEAR_WORDS = 6
MIN_LIKENESS = 0.62
BATCH = 250
"""Queries of one round of statements."""


@dataclass(frozen=True)
class LoadedSystem:
    """A code system that can be searched."""

    key: str
    version: str


@dataclass(frozen=True)
class Asked:
    """One query: the name of an entity, and its category."""

    text: str
    category: str
    is_emergency: bool = False
    """Whether the text belongs to an emergency encounter, at which treatment begins."""


def shortlists(asked: Sequence[Asked], limit: int) -> dict[Asked, list[Candidate]]:
    """Return at most `limit` candidates for each distinct query, best first."""
    found: dict[Asked, list[Candidate]] = {}
    distinct = list(dict.fromkeys(asked))
    for at in range(0, len(distinct), BATCH):
        found.update(_batch(distinct[at : at + BATCH], limit))
    return found


def _batch(asked: Sequence[Asked], limit: int) -> dict[Asked, list[Candidate]]:
    queries = [parse(each.text, each.category, is_initial=each.is_emergency) for each in asked]
    systems = [SYSTEMS.get(each.category, ()) for each in asked]
    vocabulary = _Vocabulary(queries, systems)
    searches: list[tuple[int, str, Resolved]] = []
    for number, query in enumerate(queries):
        for system in systems[number]:
            if query.slots and vocabulary.totals.get(system):
                searches.append((number, system, vocabulary.resolve(query, system)))
    matches: defaultdict[int, list[tuple[Match, Found]]] = defaultdict(list)
    for at, entry in _entries(searches):
        number, _, resolved = searches[at]
        match = rank.match(resolved, entry)
        if match is not None:
            matches[number].append((match, entry))
    best = {
        number: rank.choices(queries[number], found, limit) for number, found in matches.items()
    }
    codes = _codes(choice.code_id for found in best.values() for choice in found)
    return {
        each: [
            Candidate(
                system=choice.system,
                code=codes[choice.code_id][0],
                display=codes[choice.code_id][1],
                score=choice.score,
                reason=choice.reason,
            )
            for choice in best.get(number, ())
        ]
        for number, each in enumerate(asked)
    }


class _Vocabulary:
    """The lexemes of every word of these queries, per system."""

    def __init__(self, queries: Sequence[Query], systems: Sequence[tuple[str, ...]]) -> None:
        wanted: defaultdict[str, set[str]] = defaultdict(set)
        joins: set[str] = set()
        for query, of_query in zip(queries, systems, strict=True):
            pairs = set(_pairs(query))
            joins |= pairs
            for system in of_query:
                wanted[system] |= query.words | pairs
        self._joins = joins
        self.totals = dict.fromkeys(wanted, 0)
        self._known: dict[tuple[str, str], list[Lexeme]] = {}
        self._look_up(wanted)
        self._look_near(wanted)

    def resolve(self, query: Query, system: str) -> Resolved:
        known = {word: self._known.get((system, word), []) for word in query.words}
        joined = {
            pair: self._known[system, pair][0].text
            for pair in _pairs(query)
            if (system, pair) in self._known
        }
        return rank.resolve(query, known, joined)

    def _look_up(self, wanted: Mapping[str, set[str]]) -> None:
        pairs = [(system, word[:MAX_WORD]) for system in wanted for word in wanted[system]]
        pairs += [(system, TOTAL) for system in wanted]
        with connection.cursor() as cursor:
            cursor.execute(_WORDS, [[s for s, _ in pairs], [w for _, w in pairs]])
            rows = cursor.fetchall()
        for system, word, _, count in rows:
            if word == TOTAL:
                self.totals[system] = count
        for system, word, lexeme, count in rows:
            if word != TOTAL:
                worth = importance(count, self.totals[system])
                self._known[system, word] = [Lexeme(lexeme, 1.0, worth)]

    def _look_near(self, wanted: Mapping[str, set[str]]) -> None:
        unknown = [
            (system, word)
            for system in wanted
            for word in sorted(wanted[system] - self._joins)
            if self.totals[system] and (system, word) not in self._known
            if 3 <= len(word) <= MAX_WORD and not word.isdigit()
        ]
        if not unknown:
            return
        vectors = NgramEmbedder().vectors([word for _, word in unknown])
        with connection.cursor() as cursor:
            cursor.execute(
                _NEAR_WORDS,
                [
                    [s for s, _ in unknown],
                    [w for _, w in unknown],
                    [literal(vector) for vector in vectors],
                    NEAR_WORDS,
                ],
            )
            rows = cursor.fetchall()
        near: defaultdict[tuple[str, str], dict[str, Lexeme]] = defaultdict(dict)
        for system, word, other, lexeme, count in rows:
            likeness = likeness_of(word, other)
            known = near[system, word].get(lexeme)
            if likeness >= MIN_LIKENESS and (known is None or known.likeness < likeness):
                worth = importance(count, self.totals[system])
                near[system, word][lexeme] = Lexeme(lexeme, likeness, worth)
        for key, lexemes in near.items():
            self._known[key] = sorted(lexemes.values(), key=lambda each: -each.likeness)


def likeness_of(word: str, other: str) -> float:
    """Return 1 for equal words, less for each character that differs."""
    one, two = folded(word), folded(other)
    distance = _edits(one, two)
    return max(0.0, 1 - distance / max(3, min(len(one), len(two)))) * 0.95


def _edits(one: str, two: str) -> int:
    """Return the number of edits, with a swap of neighbours as one edit."""
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, a in enumerate(one, 1):
        last, row, older = row, [i], before
        for j, b in enumerate(two, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if older and i > 1 and j > 1 and a == two[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        before = last
    return row[-1]


def _pairs(query: Query) -> Iterator[str]:
    for left, right in zip(query.slots, query.slots[1:], strict=False):
        words = [w.text for s in (left, right) for o in s.alternatives[:1] for w in o[:1]]
        if len(words) == 2:
            yield "".join(words)


def _entries(searches: Sequence[tuple[int, str, Resolved]]) -> Iterator[tuple[int, Found]]:
    rows = []
    for at, (_, system, query) in enumerate(searches):
        terms, vector = _terms(query)
        if terms:
            rows.append((at, system, terms, vector, query.weight))
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            _ENTRIES, [*(list(column) for column in zip(*rows, strict=True)), MAX_ENTRIES]
        )
        for at, *columns in cursor:
            yield at, Found(searches[at][1], *columns)


def _terms(query: Resolved) -> tuple[str, str]:
    """Return the rarest lexemes as a full-text query, and all weights as a sparse vector."""
    weights: defaultdict[str, float] = defaultdict(float)
    rarity: dict[str, float] = {}
    for idea in query.ideas:
        for option in idea.alternatives:
            total = sum(term.weight for term in option) or 1.0
            for term in option:
                for lexeme in term.lexemes:
                    text = ("-" if term.is_negated else "") + lexeme.text
                    weight = idea.weight * term.weight / total * lexeme.likeness
                    weights[text] = max(weights[text], weight)
                    if not term.is_negated:
                        rarity[lexeme.text] = lexeme.importance
    for number, join in query.joins.items():
        weights[join] = sum(idea.weight for idea in query.ideas[number : number + 2])
        rarity[join] = 9.0
    if not rarity:
        return "", ""
    values: defaultdict[int, float] = defaultdict(float)
    for text, weight in weights.items():
        values[dimension(text)] += weight
    vector = "{" + ",".join(f"{d}:{values[d]:.3f}" for d in sorted(values)) + "}"
    return " | ".join(map(_quoted, _rarest(rarity))), f"{vector}/{LEXEME_DIMENSIONS}"


def _rarest(rarity: Mapping[str, float]) -> list[str]:
    """Return the rarest lexemes that together lead to about MAX_SCANNED entries at most."""
    chosen: list[str] = []
    scanned = 0.0
    for lexeme in sorted(rarity, key=lambda each: -rarity[each]):
        scanned += ENTRIES / math.exp(rarity[lexeme])
        if len(chosen) >= 2 and scanned > MAX_SCANNED:
            break
        chosen.append(lexeme)
    return chosen


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _codes(ids: Iterable[int]) -> dict[int, tuple[str, str]]:
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, code, display FROM codes WHERE id = ANY(%s)", [wanted])
        return {code_id: (code, display) for code_id, code, display in cursor}


_WORDS = """
SELECT q.system, q.word, w.lexeme, max(w.entry_count)
FROM unnest(%s::text[], %s::text[]) AS q (system, word)
JOIN code_search_words w ON w.system_id = q.system
  AND w.lexeme = coalesce((ts_lexize('english_stem', q.word))[1], q.word)
GROUP BY q.system, q.word, w.lexeme
"""
_NEAR_WORDS = """
SELECT q.system, q.word, near.word, near.lexeme, near.entry_count
FROM unnest(%s::text[], %s::text[], %s::halfvec[]) AS q (system, word, grams)
CROSS JOIN LATERAL (
  SELECT w.word, w.lexeme, w.entry_count FROM code_search_words w
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
