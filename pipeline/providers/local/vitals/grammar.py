"""Read the statement of one vital sign: its name, its readings, and all words between them.

A number that the grammar cannot explain makes the whole statement `not understood`. Goals, changes
and percentiles are explained and give no reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.providers.local.vitals.reading import Statement, VitalReading
from pipeline.providers.local.vitals.tokens import (
    DELTA,
    FOREIGN,
    GOAL_ANY,
    GOAL_NUMBER,
    MORE,
    REPEATED,
    SIGNED,
    TIMED,
    TOKEN,
    TOKEN_OF_PERCENT,
    WORDS_BETWEEN,
)
from pipeline.providers.local.vitals.vital_signs import (
    NAMES,
    Vital,
    base_amount,
    plausible,
    system,
)

_MAX_LINKS = 12
_MAX_TOKENS = 60
_REACH = 400
"""The most characters of one statement."""
_TOLERANCE = 0.03
"""The largest relative difference between a value and the same value in another unit."""
_BARE_SPO2 = re.compile(
    r"\d{2,3}[ ]?%[ ]*(?:on[ ]|with[ ])?(?:RA\b|room[ ]air|\d+(?:\.\d)?[ ]?L)", re.I
)
_BLANKS = re.compile(r"[ ]*(?:\n(?=[ ]*\S)[ ]*)?")
_NOW = re.compile(r"(?:today|now|current(?:ly)?|actual)", re.I)
_NUMBER = re.compile(r"[<>≤≥~]?[ ]?[-+]?\d")
_SCALE = re.compile(
    r"\(?(?:on[ ](?:a[ ])?)?0[ ]?(?:-|–|to)[ ]?10\)?(?![\d/])(?:[ ](?:point[ ])?scale)?", re.I
)
_PAST = re.compile(r"(?:was|were|had|from)\b", re.I)


@dataclass(slots=True)
class _State:
    """The words since the last value that decide about the next value."""

    apart: str = ""
    """The separator since the last value: "", `comma`, `arrow` or `mark`."""
    earlier: bool = False
    goal: bool = False
    change: bool = False
    source: bool = False
    sign: str = ""
    day: str | None = None
    part: str | None = None
    dated: bool = False
    past: bool = False
    now: bool = False
    unit: str | None = None
    placed: bool = False
    """A position, a site or a condition follows the last value (`72 lying, 118 standing`)."""


def read_statement(text: str, vital: Vital, end_of_name: int, *, goal: bool) -> Statement:
    """Read the readings behind the name that ends at `end_of_name`."""
    return _VitalReader(text, vital, end_of_name, goal=goal).read()


class _VitalReader:
    def __init__(self, text: str, vital: Vital, at: int, *, goal: bool) -> None:
        self._text = text
        self._vital = vital
        self._at = self._begin = at
        self._stop = min(len(text), at + _REACH)
        self._depth = 0
        self._loose = False
        """Behind a semicolon, unexplained words end the statement and do not spoil it."""
        self._tokens = TOKEN_OF_PERCENT if vital.key in ("SpO2", "FiO2") else TOKEN
        self._state = _State(goal=goal)
        self._forever_goal = goal
        self._out = Statement(at)
        self._last: VitalReading | None = None
        """The last value, dropped values included."""

    def read(self) -> Statement:
        for count in range(_MAX_TOKENS):
            if self._last is None and count > _MAX_LINKS:
                break
            if not self._blanks() or not self._step():
                break
        self._out.readings = [r for r in self._out.readings if not r.dropped]
        self._out.reach = max(self._at, self._out.end)
        return self._out

    def _blanks(self) -> bool:
        """Skip blanks, and a line end where the statement can continue; return False at its end."""
        text, at = self._text, self._at
        m = _BLANKS.match(text, at, self._stop)
        end = m.end() if m else at
        if "\n" in text[at:end] and self._last is not None:
            wrapped = self._state.apart and self._pressure_at(end)
            if self._is_listed(end):
                self._state.apart = "mark"
                wrapped = True
            lower = text[end : end + 1].islower() and not NAMES.match(text, end)
            if not (wrapped or (self._depth and not NAMES.match(text, end)) or lower):
                return False
            if lower and self._state.apart == "" and not self._depth:
                return False
        self._at = end
        return end < self._stop

    def _is_listed(self, at: int) -> bool:
        """Return whether the next line has a further value of a list below the name."""
        first = self._out.readings[0].start if self._out.readings else self._begin
        below = "\n" in self._text[self._begin : first]
        return below and self._vital.one.match(self._text, at) is not None

    def _pressure_at(self, at: int) -> bool:
        return self._vital.key == "BP" and self._vital.one.match(self._text, at) is not None

    def _step(self) -> bool:
        """Read one token or one value; return False where the statement ends."""
        text, at = self._text, self._at
        if self._last is not None and self._is_another(at):
            return False
        if text[at] == "-" and at == self._begin and self._vital.key != "weight":
            self._at += 1
            return True
        if SIGNED.match(text, at) and text[at - 1 : at] in (" ", "\n", "(", ":", "="):
            return self._signed()
        if self._last is None and self._state.unit is None and self._unit_word():
            return True
        scale = _SCALE.match(text, at) if self._vital.key == "pain" else None
        if scale is not None:
            self._at = scale.end()
            return True
        if self._value():
            return True
        if self._last is not None and text[at] in ";.":
            return self._next_sentence()
        m = self._tokens.match(text, at, self._stop)
        if m is None or m.end() == at:
            return self._unexplained()
        return self._token(m)

    def _unit_word(self) -> bool:
        """Read a unit before a colon (`Weight in kg: 82`)."""
        m = re.compile(rf",?[ ]*(?:in[ ])?(?P<unit>{self._vital.unit})[ ]*:", re.I).match(
            self._text, self._at
        )
        if m is None:
            return False
        self._state.unit, self._at = m["unit"], m.end()
        return True

    def _is_another(self, at: int) -> bool:
        """Return whether the name of another vital sign, or an unnamed saturation, begins here."""
        m = NAMES.match(self._text, at)
        if m is not None and not (len(m["name"]) == 1 and self._depth):
            return True
        return self._vital.key != "SpO2" and _BARE_SPO2.match(self._text, at) is not None

    def _signed(self) -> bool:
        """Explain a change with a sign (`-3 kg`)."""
        m = DELTA.match(self._text, self._at + 1)
        if m is None or self._last is None:
            return False
        self._at = m.end()
        return True

    def _next_sentence(self) -> bool:
        """Continue behind `;`, and behind `.` if a repeated pressure follows."""
        text, at = self._text, self._at
        if text[at] == ";":
            behind = _skip(text, at + 1)
            if text[behind : behind + 1].isdigit() and not self._pressure_at(behind):
                if not self._is_timed(behind):
                    return False
                self._state.apart, self._at = "mark", at + 1
                return True
            self._state.apart, self._at, self._loose = "mark", at + 1, True
            return True
        m = REPEATED.match(text, at)
        if m is None or not self._pressure_at(m.end()):
            return False
        self._state.apart, self._at = "mark", m.end()
        return True

    def _is_timed(self, at: int) -> bool:
        """Return whether a value at `at` says its own time (`HR 112 at triage; 88 now`)."""
        m = self._vital.one.match(self._text, at)
        return (
            m is not None
            and plausible(self._vital, m["value"] or "", m["unit"])
            and TIMED.match(self._text, m.end()) is not None
        )

    def _unexplained(self) -> bool:
        text, at = self._text, self._at
        if self._state.apart == "mark" and self._vital.key in ("pain", "BP"):
            # `7/10, after morphine 3/10`: the form of the value tells whose value this is.
            words = WORDS_BETWEEN.match(text, at)
            m = self._vital.one.match(text, words.end()) if words else None
            if words and m and "/" in m[0] and plausible(self._vital, m["value"]):
                self._at = words.end()
                return True
        if self._last is not None and not self._loose and _NUMBER.match(text, at):
            self._out.understood = False
            self._out.end = re.compile(r"\S*").match(text, at).end()  # type: ignore[union-attr]
            return False
        if self._depth and self._last is not None:
            close = re.compile(r"[^()\n]*[)\]]").match(text, at)
            if close and not re.search(r"\d", close[0]):
                self._at, self._depth = close.end(), self._depth - 1
                return True
        if self._last is None and self._depth:
            close = re.compile(r"[^()\d\n]*[)\]]").match(text, at)
            if close:
                self._at, self._depth = close.end(), self._depth - 1
                return True
        return False

    def _token(self, m: re.Match[str]) -> bool:
        kind, words, state = m.lastgroup or "", m[0], self._state
        if kind in ("day", "part"):
            kind = "date"
        last = self._last
        follows = self._vital.one.match(self._text, _skip(self._text, m.end())) is not None
        if kind == "error" or kind == "limit":
            if last is not None:
                self._drop_all() if kind == "error" else self._drop(last)
            elif kind == "error":
                return False
        elif kind == "none":
            if last is None:
                return False
            if not re.match(r"loss|gain|change|not", words, re.I):
                return False
        elif kind == "goal":
            self._goal(last)
        elif kind == "beside":
            behind = (GOAL_NUMBER if last is None else GOAL_ANY).match(self._text, m.end())
            state.goal = state.goal or behind is not None
        elif kind == "percentile":
            if last is None:
                return False
        elif kind in ("earlier", "ago"):
            if last is None or follows or state.apart:
                state.earlier = True
            else:
                last.earlier = True
        elif kind == "date":
            self._date(m, last, follows=follows)
        elif kind == "change":
            return self._change(m)
        elif kind == "sign":
            state.sign = words
        elif kind in ("mark", "arrow"):
            state.apart = "arrow" if kind == "arrow" else "mark"
            if _NOW.search(words):
                state.now, state.goal, state.earlier = True, False, False
                if last is not None and not follows:
                    last.now = True
        elif kind == "comma":
            state.apart = state.apart or "comma"
        elif kind == "open":
            self._depth += 1
            paren = re.compile(rf"\(({self._vital.unit})\)", re.I).match(self._text, m.start())
            if paren:
                state.unit = paren[1]
                self._depth -= 1
                self._at = paren.end()
                return True
        elif kind == "close":
            if not self._depth:
                return False
            self._depth -= 1
            state.goal = state.goal and self._forever_goal
        elif kind == "fill" and _PAST.match(words):
            state.past = True
            state.source = words.lower() == "from"
            opened = self._text[self._at - 2 : self._at].strip()[-1:]
            if last is not None and (opened in ("(", ",") or (state.apart and last.now)):
                state.earlier = state.apart != "mark" or last.now
            if last is not None and words.lower() == "from":
                state.earlier = True
        elif (kind == "fill" and words.lower() in ("and", "or") and last is not None) or (
            kind == "link" and last is not None and words in "-–—"
        ):
            state.apart = state.apart or "comma"
        elif kind == "fill" and words.lower() == "to" and last is not None and last.source:
            state.apart = "mark"
        state.placed = state.placed or kind == "qualifier"
        self._at = m.end()
        return True

    def _goal(self, last: VitalReading | None) -> None:
        """Values behind a goal are goals; a goal directly behind a value makes the value a goal."""
        between = self._text[last.end : self._at] if last is not None else ""
        self._state.goal = True
        if last is not None and not between.strip(" \n") and not self._number_near():
            self._drop(last)

    def _number_near(self) -> bool:
        """Return whether the goal has a number of its own behind its word."""
        m = TOKEN.match(self._text, self._at)
        rest = self._text[m.end() if m else self._at : self._at + 40]
        return (
            re.match(r"[ ]*(?:[:=<>≤≥(]|of|is|less|than|under|below|at|range|[ ])*\d", rest)
            is not None
        )

    def _date(self, m: re.Match[str], last: VitalReading | None, *, follows: bool) -> None:
        vague = m["part"] and re.search(r"[A-Za-z]{3}|^\d{4}$|/\d{4}", m["part"]) is not None
        if vague and (last is None or follows):
            self._state.earlier = True
        elif vague and last is not None:
            last.earlier = True
        if last is None or follows or self._state.apart in ("mark", "arrow"):
            self._state.day, self._state.dated = m["day"], True
            self._state.part = m["part"]
        else:
            last.day, last.dated, last.part = m["day"], True, m["part"]

    def _change(self, m: re.Match[str]) -> bool:
        """Explain a change: `down 3 kg` is no reading, `down to 88` is a reading."""
        text, state = self._text, self._state
        to = re.compile(r"[ ]*(?:to|at)[ ]+(?=[\dlmh])", re.I).match(text, m.end())
        source = re.compile(r"[ ]*from[ ]+(?=\d)", re.I).match(text, m.end())
        delta = DELTA.match(text, m.end())
        if to:
            state.apart, self._at = "mark", to.end()
        elif source:
            state.earlier, state.source, state.past, self._at = True, True, True, source.end()
            state.apart = state.apart or "mark"
        elif delta and not self._pressure_at(_skip(text, m.end())):
            new = re.compile(r"[ ]*,?[ ]*(?:to|now)[ ]+(?=\d)", re.I).match(text, delta.end())
            if self._last is None and new is None:
                return False
            self._at = new.end() if new else delta.end()
            state.apart = "mark" if new else state.apart
        else:
            self._at = m.end()
        return True

    def _value(self) -> bool:
        """Read a value, an equivalent in another unit, or a range beside a value."""
        text, at, vital, state, last = self._text, self._at, self._vital, self._state, self._last
        single = state.source
        m = (vital.one if single else vital.reading).match(text, at)
        if m is None:
            return self._aside()
        groups = m.groupdict()
        words = groups.get("range") or m["composite"] or m["value"]
        unit = m["unit"]
        if groups.get("range") and self._falls(words):
            m = vital.first.match(text, at)
            if m is None:
                return False
            groups, words, unit = m.groupdict(), m["composite"] or m["value"], m["unit"]
        if groups.get("range") and vital.key in ("BMI", "height", "head circumference"):
            return False
        pair = vital.key in ("BP", "pain")
        if not unit and not m["composite"] and not pair and FOREIGN.match(text, m.end()):
            return self._aside()
        shown = unit or (state.unit if last is None else None)
        if not plausible(vital, words, shown):
            return False
        if last is not None and not self._allowed(words, unit, ranged=bool(groups.get("range"))):
            return self._aside()
        if last is not None and self._is_equivalent(last, words, unit):
            if not self._out.understood:
                return False
            self._at = m.end()
            return True
        if MORE.match(text, m.end()) and vital.key != "BP":
            if last is None:
                return False
            self._at = m.end()
            return True
        self._add(m, words, shown)
        return True

    def _falls(self, words: str) -> bool:
        numbers = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", words)]
        if self._vital.key == "pain" or "%" in words:
            return False
        return (
            len(numbers) in (2, 4)
            and numbers[0] > numbers[len(numbers) // 2]
            and (len(numbers) == 2 or re.match(r"\d+s?[ ]?/", words) is not None)
        )

    def _allowed(self, words: str, unit: str | None, *, ranged: bool) -> bool:
        """Return whether a further value can only belong to this vital sign."""
        state, vital, last = self._state, self._vital, self._last
        if last is None or vital.key == "BP" or unit or state.apart in ("mark", "arrow"):
            return True
        if vital.key == "pain" and "10" in words:
            return True
        if state.earlier or state.dated or state.past or (ranged and self._depth):
            return True
        if vital.own_unit and system(vital, words, unit):
            return True
        if "-" in last.value and not state.apart and self._text[last.end : self._at].strip() == "]":
            return True
        if not state.apart or ranged:
            return False
        first, now = _first(last.value), _first(words)
        most = 3 if state.placed else 2
        near = first / most <= now <= first * most
        return near and not (vital.key == "Temp" and "." not in words)

    def _is_equivalent(self, last: VitalReading, words: str, unit: str | None) -> bool:
        """Explain the same amount in another unit, and a range in parentheses."""
        state, vital = self._state, self._vital
        if state.apart in ("mark", "arrow") or state.earlier or state.dated:
            return False
        if (
            self._depth
            and re.search(r"\d\)?[ ]?[-–]", words)
            and not re.search(r"[-–]", last.value)
        ):
            return True
        mine, theirs = system(vital, words, unit), system(vital, last.value, last.unit)
        if not mine or not theirs or mine == theirs or state.apart == "comma":
            return False
        one, other = base_amount(vital, words, unit), base_amount(vital, last.value, last.unit)
        if one is None or other is None or abs(one - other) > _TOLERANCE * max(one, other):
            self._out.understood = False
            self._out.end = self._at + len(words)
        return True

    def _aside(self) -> bool:
        """Explain the mean pressure in parentheses behind a pressure."""
        last = self._last
        if last is None or self._vital.key != "BP" or not self._depth:
            return False
        m = re.compile(r"(?:MAP[ ]?:?[ ]?)?(\d{2,3})(?=[)\]])").match(self._text, self._at)
        pair = re.fullmatch(r"(\d+)/(\d+)", last.value)
        if m is None or pair is None or not int(pair[2]) <= int(m[1]) <= int(pair[1]):
            return False
        self._at = m.end()
        return True

    def _add(self, m: re.Match[str], words: str, unit: str | None) -> None:
        state, vital = self._state, self._vital
        value = re.sub(r"[ ]*(?:over)[ ]*", "/", " ".join(words.split())).rstrip("%")
        signed = bool(state.sign) and not state.goal
        made = VitalReading(
            start=m.start(),
            end=m.end(),
            value=f"{state.sign}{value}" if signed else value,
            unit=unit,
            earlier=state.earlier,
            day=state.day,
            part=state.part,
            dated=state.dated,
            now=state.now,
            source=state.source,
        )
        if state.sign and not (state.goal or vital.key == "SpO2"):
            made.dropped = True
        made.dropped = made.dropped or state.goal
        self._out.readings.append(made)
        self._out.end = max(self._out.end, m.end())
        self._last, self._at = made, m.end()
        self._state = _State(goal=state.goal)
        tail = re.compile(r"[ ,]*(?:today|now|currently)(?!\w)(?![ ,:]*(?:\w+[ ])?\d)", re.I)
        if state.goal and self._forever_goal and tail.match(self._text, m.end()):
            made.dropped = False

    def _drop(self, last: VitalReading) -> None:
        last.dropped = True

    def _drop_all(self) -> None:
        for made in self._out.readings:
            made.dropped = True


def _first(value: str) -> float:
    m = re.search(r"\d+(?:\.\d+)?", value.replace(",", ""))
    return float(m[0]) if m else 0.0


def _skip(text: str, at: int) -> int:
    """Return the place of the next value behind blanks, a colon and a link word."""
    m = re.compile(r"[ :=]*(?:(?:was|is|were|of|at)[ ]+)?").match(text, at)
    return m.end() if m else at
