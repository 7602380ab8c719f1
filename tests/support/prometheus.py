"""Scrapes of `/metrics`, and an evaluator of the part of PromQL that our alerts use.

No Prometheus server runs in the suite. The evaluator knows: selectors with `=`, `!=`, `=~`, `!~`;
`rate` and `increase` over two scrapes; `sum`, `max` and `min` with `by`; `absent`; the four
operations; comparisons; `and`, `unless`. It raises ValueError for everything else. It does not
know `for`, staleness, extrapolation, or more than two scrapes.
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from observability.metrics.prometheus.collector import exposition

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Scrape = Mapping[str, Vector]
"""The samples of one scrape by name."""

_TOKEN = re.compile(
    r'\s*(?:(?P<text>"[^"]*")|(?P<range>\[\d+[smhd]\])|(?P<number>\d+(?:\.\d+)?)'
    r"|(?P<word>[A-Za-z_:][\w:]*)|(?P<sign>[=!]~|==|!=|>=|<=|[-+*/(){},=<>]))"
)
_COMPARES: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt,
    ">=": operator.ge, "<=": operator.le,
}  # fmt: skip
_SUMS: Mapping[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min}
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def scrape() -> Scrape:
    """Scrape the real collector."""
    return parsed(exposition().decode())


def parsed(text: str) -> Scrape:
    """Return the samples of a text by name."""
    found: defaultdict[str, Vector] = defaultdict(dict)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name][frozenset(sample.labels.items())] = float(sample.value)
    return found


def value(of: Scrape, name: str, **labels: str) -> float:
    """Return one sample. Raises KeyError if it does not exist."""
    return of[name][frozenset(labels.items())]


def names_of(expression: str) -> set[str]:
    """Return the names of samples that an expression reads."""
    without_texts = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(?:by|on)\s*\([^)]*\)', " ", expression)
    words = re.findall(r"[A-Za-z_:][\w:]*(?!\w*\s*\()", without_texts)
    return {word for word in words if word not in {"and", "or", "unless", "by", "on", "sum", "max"}}


def fires(expression: str, before: Scrape, now: Scrape) -> bool:
    """Return whether an alert's expression has a result."""
    return bool(_Evaluation(expression, before, now).run())


@dataclass
class _Evaluation:
    """One evaluation: a parser that computes while it reads."""

    expression: str
    before: Scrape
    now: Scrape

    def __post_init__(self) -> None:
        self._tokens: list[str] = []
        place, text = 0, self.expression.strip()
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise ValueError(f"not in the subset: {text[place:]}")
            self._tokens.append(found[0].strip())
            place = found.end()

    def run(self) -> Vector:
        vector = self._sets()
        if self._tokens:
            raise ValueError(f"not in the subset: {' '.join(self._tokens)}")
        return vector

    def _next(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _take(self, expected: str = "") -> str:
        token = self._tokens.pop(0) if self._tokens else ""
        if not token or (expected and token != expected):
            raise ValueError(f"{expected or 'more'} is missing in {self.expression}")
        return token

    def _sets(self) -> Vector:
        left = self._comparison()
        while self._next() in {"and", "unless"}:
            keeps = self._take() == "and"
            right = self._comparison()
            left = {key: each for key, each in left.items() if (key in right) is keeps}
        return left

    def _comparison(self) -> Vector:
        left = self._sum()
        if self._next() in _COMPARES:
            compare = _COMPARES[self._take()]
            right = self._sum()
            left = {k: a for k, a, b in _pairs(left, right) if compare(a, b)}
        return left

    def _sum(self) -> Vector:
        left = self._product()
        while self._next() in {"+", "-"}:
            act = operator.add if self._take() == "+" else operator.sub
            left = {k: act(a, b) for k, a, b in _pairs(left, self._product())}
        return left

    def _product(self) -> Vector:
        left = self._atom()
        while self._next() in {"*", "/"}:
            if self._take() == "*":
                left = {k: a * b for k, a, b in _pairs(left, self._atom())}
            else:
                # Prometheus divides 0 by 0 to NaN, which no comparison accepts.
                left = {k: a / b if b else float("nan") for k, a, b in _pairs(left, self._atom())}
        return left

    def _atom(self) -> Vector:
        token = self._take()
        if token == "(":
            vector = self._sets()
            self._take(")")
            return vector
        if token[0].isdigit():
            return {frozenset(): float(token)}
        if token in _SUMS:
            return self._aggregate(token)
        if token == "absent":
            return {} if self._bracketed() else {frozenset(): 1.0}
        if token in {"rate", "increase"}:
            return self._grown(token)
        return self._selected(token, self.now)

    def _bracketed(self) -> Vector:
        self._take("(")
        vector = self._sets()
        self._take(")")
        return vector

    def _aggregate(self, how: str) -> Vector:
        kept: set[str] = set()
        if self._next() == "by":
            self._take()
            self._take("(")
            while (word := self._take()) != ")":
                kept |= {word} - {","}
        groups: defaultdict[Labels, list[float]] = defaultdict(list)
        for key, each in self._bracketed().items():
            groups[frozenset((name, text) for name, text in key if name in kept)].append(each)
        return {key: _SUMS[how](each) for key, each in groups.items()}

    def _grown(self, how: str) -> Vector:
        self._take("(")
        tokens = list(self._tokens)
        name = self._take()
        after = self._selected(name, self.now)
        self._tokens = tokens[1:]
        earlier = self._selected(name, self.before)
        window = self._take()
        self._take(")")
        seconds = int(window[1:-2]) * _SECONDS[window[-2]]
        # A series without an earlier sample has no growth, as in Prometheus.
        grown = {key: after[key] - earlier[key] for key in after.keys() & earlier.keys()}
        return {key: each / seconds if how == "rate" else each for key, each in grown.items()}

    def _selected(self, name: str, of: Scrape) -> Vector:
        tests: list[tuple[str, str, str]] = []
        if self._next() == "{":
            self._take()
            while self._next() != "}":
                label, sign, text = self._take(), self._take(), self._take().strip('"')
                tests.append((label, sign, text))
                if self._next() == ",":
                    self._take()
            self._take("}")
        return {
            key: each
            for key, each in of.get(name, {}).items()
            if all(_matches(dict(key).get(label, ""), sign, text) for label, sign, text in tests)
        }


def _matches(has: str, sign: str, text: str) -> bool:
    is_equal = has == text if "~" not in sign else re.fullmatch(text, has) is not None
    return is_equal is not sign.startswith("!")


def _pairs(left: Vector, right: Vector) -> list[tuple[Labels, float, float]]:
    """Pair the samples with equal labels; a number pairs with each sample."""
    if right.keys() == {frozenset()} and left.keys() != {frozenset()}:
        return [(key, each, right[frozenset()]) for key, each in left.items()]
    return [(key, left[key], right[key]) for key in left.keys() & right.keys()]
