"""The doses of a prescription, step by step: tapers, split doses, changes, limits, corrections.

Each amount with a unit gets a role, or the prescription is not understood. A dose of a
prescription that is not understood is never published.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pipeline.clinical.medications.sig import (
    BETWEEN,
    COMPOSED,
    DOSE,
    DURATION,
    FREQUENCY,
    PRODUCT,
    RIGHT_EYE,
    ROUTE,
    SUPPLY,
    Amount,
    kind_of,
    printed,
)
from pipeline.providers.local.medications.changes import (
    AND,
    BARE,
    CHANGE,
    CHANGING,
    CORRECT,
    ENDS_WITH_TO,
    FROM_BARE,
    FROM_TO,
    GOAL,
    LATER,
    LIST,
    MARKERS,
    MIXTURE,
    NEW_AMOUNT,
    NEXT,
    NOT,
    OR,
    PLAIN,
    REPEATED,
    STEP_VERB,
    TARGET_VERB,
    THEN,
    TO,
    WAS,
)
from pipeline.providers.local.medications.cursor import StepCursor
from pipeline.providers.local.medications.parts import (
    Directions,
    DoseStep,
    Tense,
    after_gap,
    explains,
    is_amount_next,
    is_directed,
    is_strength,
)
from pipeline.providers.local.names.word_lists import words

_MAX_BETWEEN = 6


def read_directions(
    text: str, start: int, limit: int, *, changes: bool = False, titrates: bool = False
) -> Directions:
    """Read the directions in `text[start:limit]`.

    `changes` says that a verb of change precedes the name, `titrates` that the verb plans a target.
    """
    return _StepReader(text, start, limit, changes=changes, titrates=titrates).read()


class _StepReader(StepCursor):
    """Reads the parts from left to right."""

    def read(self) -> Directions:
        while self._at < self._limit:
            self._skip_gap()
            if self._at >= self._limit:
                break
            if not (
                self._read_supply()
                or self._read_change()
                or self._read_marker()
                or self._read_duration()
                or self._read_frequency()
                or self._read_amount()
                or self._read_route()
                or self._read_filler()
                or self._read_unknown()
            ):
                break
        if self._pending in ("to", "with"):
            self._out.is_switched = True
        if self._early and self._early[0] < self._early[1] and not self._out.steps:
            self._add(self._early[0], self._early[1], None)
        for step in self._out.steps:
            step.route = step.route or self._route
        return self._out

    def _read_supply(self) -> bool:
        m = self._match(SUPPLY)
        if m:
            self._at = m.end()
        return m is not None

    def _read_change(self) -> bool:
        m = self._match(CHANGE)
        if m is None:
            return False
        way, verb = m["way"] or "to", m["verb"] or ""
        step = self._step()
        follows = step is not None and step.has_duration and way == "to"
        if (STEP_VERB.match(verb) and way == "to") or (follows and NEXT.search(m.group())):
            self._pending, self._separator = "", "then"
        elif way == "by":
            self._pending = "aside"
        elif way == "from":
            self._pending, self._titrates = "from", False
        elif way == "until":
            return False
        elif m["modal"] or TARGET_VERB.search(verb) or self._is_later(m.end(), verb):
            self._pending = "target"
        else:
            self._pending = "with" if way == "with" else "to"
        self._at = m.end()
        return True

    def _is_later(self, at: int, verb: str) -> bool:
        """Return whether a change is announced for later (`increase to 20 mg in 2 weeks`)."""
        later = LATER.match(self._text, at, self._limit) is not None
        return later and not re.search(r"ed$|ing$|^went", verb)

    def _read_marker(self) -> bool:
        has_dose = any(s.dose for s in self._out.steps)
        for pattern, usual in MARKERS:
            pending = "from" if pattern is WAS and not has_dose else usual
            m = self._match(pattern)
            if m is None:
                continue
            if pattern is CORRECT and not has_dose:
                return False
            if pattern in (NOT, WAS, GOAL) and not DOSE.match(
                self._text, after_gap(self._text, m.end(), self._limit), self._limit
            ):
                return False
            if pattern is GOAL and not has_dose and not self._titrates:
                pending = "" if m.group().lower().startswith(("may", "can")) else "upto"
            self._pending = pending
            self._titrates = self._titrates and pending != "from"
            self._at = m.end()
            return True
        m = self._match(THEN)
        if m is not None:
            self._separator = "then"
            self._alternates = self._alternates or bool(REPEATED.match(m.group()))
            self._at = m.end()
            return True
        m = self._match(TO)
        if m is not None and any(s.dose for s in self._out.steps):
            if self._out.steps[-1].role is Tense.OLD or self._changes:
                self._pending = "target" if self._titrates else "to"
            else:
                self._has_range = True
            self._at = m.end()
            return True
        for pattern, separator in ((AND, "and"), (OR, "or")):
            m = self._match(pattern)
            if m is not None:
                self._separator = separator
                self._at = m.end()
                return True
        return False

    def _read_duration(self) -> bool:
        m = self._match(DURATION)
        if m is None:
            return False
        step = self._step()
        if step is None or step.dose is None or self._leads(m.end()):
            self._early = self._early or (m.start(), m.start())
            self._frequency_first = True
            if step is not None:
                self._separator = "then"
        else:
            step.is_closed = step.has_duration = True
            if not self._is_lost:
                step.end = max(step.end, m.end())
        self._at = m.end()
        self._is_lost, self._between = False, 0
        return True

    def _leads(self, end: int) -> bool:
        """Return whether a frequency or duration begins the next step (`PM: 20 mg`)."""
        return self._frequency_first and is_amount_next(self._text, end, self._limit)

    def _read_frequency(self) -> bool:
        step = self._step()
        if step and step.dose and re.search(r"drop|gtt", step.dose, re.I):
            eye = self._match(RIGHT_EYE)
            if eye is not None:
                self._route = self._route or eye.group()
                self._explain(eye.end())
                return True
        m = self._match(FREQUENCY)
        if m is None:
            return False
        if self._is_struck:
            self._at = m.end()
            return True
        if self._after_aside >= 0 and not self._is_aside_done(m.start()):
            old = self._out.steps[-1] if self._out.steps else None
            if old and old.role is Tense.OLD and (step is None or step.frequency is not None):
                old.frequency = (m.start(), m.end())
            elif old and old.role is Tense.OLD and step is not None:
                step.frequency = (m.start(), m.end())
                step.is_closed = True
            self._after_aside = m.end()
            self._explain(m.end())
            return True
        if self._pending in ("to", "target", "from") and step is not None and step.dose:
            self._change_frequency(step, m)
            return True
        if self._is_lost:
            self._at = m.end()
            return True
        if step is None or self._leads(m.end()):
            if step is not None:
                self._separator = "then"
                self._early = None
            begin = self._early[0] if self._early else m.start()
            self._early = (begin, m.end())
            self._frequency_first = step is not None or is_amount_next(
                self._text, m.end(), self._limit
            )
        elif self._separator == "then" and step.is_closed and step.dose:
            self._repeat_dose(step, step.role, m)
            return True
        elif step.frequency is None:
            step.frequency = (m.start(), m.end())
        elif self._joins(step.frequency[1], m.start()):
            step.frequency = (step.frequency[0], m.end())
        separator = self._separator if step is not None and self._frequency_first else ""
        if step is not None and separator != "then":
            step.is_closed = True
            step.end = max(step.end, m.end())
        self._explain(m.end())
        self._separator = separator
        return True

    def _is_aside_done(self, start: int) -> bool:
        return self._text[self._after_aside : start].strip(" /") != ""

    def _joins(self, end: int, start: int) -> bool:
        # A length between a rate and its condition belongs to both: `q6h x 5 days prn`.
        between = " ".join(DURATION.sub(" ", self._text[end:start]).split()).lower()
        return between in ("", ",", "and", "&", ", and", "(", "at", "-", "in", "plus")

    def _change_frequency(self, step: DoseStep, m: re.Match[str]) -> None:
        """Record a change of the frequency with the same dose (`daily, changed to BID`)."""
        if self._pending == "from":
            step.frequency = step.frequency or (m.start(), m.end())
            self._pending = "to"
            at = after_gap(self._text, m.end(), self._limit)
            to = re.compile(r"to[ ]+").match(self._text, at, self._limit)
            self._explain(to.end() if to else m.end())
            return
        role = Tense.TARGET if self._pending == "target" else Tense.CURRENT
        if role is Tense.CURRENT:
            self._retire()
        self._pending = ""
        step.is_closed = True
        self._repeat_dose(step, role, m)

    def _repeat_dose(self, step: DoseStep, role: Tense, frequency: re.Match[str]) -> None:
        """Add a step with the dose of the step before and another frequency."""
        span = frequency.span()
        self._out.steps.append(
            replace(step, role=role, end=span[1], frequency=span, is_closed=True)
        )
        self._explain(span[1])

    def _retire(self) -> None:
        for step in self._out.steps:
            if step.role is Tense.CURRENT:
                step.role = Tense.OLD

    def _read_amount(self) -> bool:
        composed = self._match(COMPOSED)
        if composed is not None:
            step = self._step()
            if step is None or step.dose is None:
                self._add(composed.start(), composed.end(), composed.group())
            elif step.kind is not Amount.MASS and not self._is_inside:
                self._out.unexplained = composed.end()
            self._explain(composed.end())
            return True
        m = self._match(DOSE)
        if m is None:
            return self._read_bare_number()
        if self._is_lost and not self._pending and self._is_other_drug():
            return False
        self._place(m)
        return True

    def _is_other_drug(self) -> bool:
        word = self._last_word
        if self._text[self._last_end : self._at].strip(" (\n"):
            return False
        return len(word) >= 5 and word.isalpha() and word.lower() not in words("common_words.txt")

    def _read_bare_number(self) -> bool:
        step = self._step()
        old = self._match(FROM_BARE)
        if old is not None and step is None:
            self._at = old.end()
            return True
        if step is None and self._at > self._name_end and not self._between:
            m = self._match(MIXTURE)
            if m is not None and not self._is_lost:
                self._at = m.end()
                return True
        m = self._match(BARE)
        if m is None or self._is_lost or (step is None and self._between):
            return False
        if step is None or m.group() != "1":
            self._out.unexplained = m.end()
        self._at = m.end()
        return True

    def _change_to(self, m: re.Match[str], old: str, new: str) -> None:
        """Replace the dose by the new dose of `decreased from 10 to 5 mg`."""
        step = self._step()
        if step is None or step.dose is None:
            self._add(m.start(), m.end(), new)
            return
        self._out.is_changed = True
        if printed(new) == step.dose:
            return
        if step.dose.split()[0] == old:
            self._retire()
            self._add(m.start(), m.end(), new)
        else:
            self._out.unexplained = m.end()

    def _place(self, m: re.Match[str]) -> None:
        """Give an amount its role."""
        dose, inside = m[1], self._is_inside
        pending = "old" if self._is_struck else self._pending
        kind, separator, lost = kind_of(dose), self._separator, self._is_lost
        step = self._step()
        self._pending = ""
        changed = pending == "from" or (self._changes and step is None)
        if changed and (parts := FROM_TO.match(dose)) is not None:
            self._change_to(m, dose.split()[0], parts[1])
        elif LIST.match(dose):
            self._out.unexplained = m.end()
        elif pending == "aside":
            self._after_aside = m.end()
        elif lost and kind is Amount.VOLUME and step and step.kind is Amount.MASS and not pending:
            pass
        elif pending in ("old", "from"):
            retire = pending == "from" and step is not None and step.dose is not None
            if retire and not NEW_AMOUNT.match(self._text, m.end(), self._limit):
                # `20 units, increased from 14 units`: the dose before the verb is the new dose.
                retire, self._out.is_changed = False, True
            if not retire:
                self._out.steps.append(DoseStep(Tense.OLD, m.start(), m.end(), printed(dose), kind))
                self._after_aside = m.end()
            elif printed(dose) != (step.dose if step else None):
                self._out.unexplained = m.end()
        elif pending == "target":
            self._out.steps.append(DoseStep(Tense.TARGET, m.start(), m.end(), printed(dose), kind))
        elif pending in ("to", "with", "correct"):
            self._out.is_changed = self._out.is_changed or pending != "correct"
            if kind is Amount.CONTENT:
                self._out.unexplained = m.end()
            for earlier in self._out.steps:
                if earlier.role is Tense.CURRENT:
                    earlier.role = Tense.WRONG if pending == "correct" else Tense.OLD
            self._add(m.start(), m.end(), dose)
        elif step is None:
            if lost:
                self._out.unexplained = m.end()
            else:
                up_to = self._titrates and ENDS_WITH_TO.search(
                    self._text[self._name_end : m.start()]
                )
                self._add(m.start(), m.end(), dose, Tense.TARGET if up_to else Tense.CURRENT)
                if pending == "upto" and not up_to:
                    self._out.unexplained = m.end()
        elif step.dose is None:
            step.dose, step.kind, step.end = printed(dose), kind, m.end()
        elif not explains(step, m, self._limit, inside=inside):
            self._follow(step, m, kind, separator, lost)
        self._has_range = False
        self._explain(m.end())

    def _follow(
        self, step: DoseStep, m: re.Match[str], kind: Amount, separator: str, lost: bool
    ) -> None:
        """Place an amount after a dose: the dose was a strength, or a new step begins."""
        dose = m[1]
        alike = kind is step.kind
        if self._has_range and alike and not step.is_closed and not lost:
            step.dose = printed(self._text[step.start : m.end()])
            step.end = m.end()
        elif alike and self._begins_step(step, separator, m.end(), lost=lost):
            self._add(m.start(), m.end(), dose, step.role)
        elif not step.is_closed and not lost and is_strength(step, kind, inside=self._is_inside):
            step.strength, step.dose, step.kind = step.dose, printed(dose), kind
            step.end = m.end()
        else:
            self._out.unexplained = m.end()

    def _begins_step(self, step: DoseStep, separator: str, end: int, *, lost: bool) -> bool:
        """Return whether an amount of the same kind begins a new step."""
        if separator == "then" or (self._alternates and not lost):
            return True
        if not step.is_closed or separator in ("", "or"):
            return False
        return self._frequency_first or is_directed(self._text, end, self._limit)

    def _add(self, start: int, end: int, dose: str | None, role: Tense = Tense.CURRENT) -> None:
        step = DoseStep(role, start, end, printed(dose), kind_of(dose) if dose else None)
        if self._early is not None:
            if self._early[0] < self._early[1]:
                step.frequency = self._early
            step.is_closed = True
            step.end = max(end, self._early[1])
            self._early = None
        self._out.steps.append(step)

    def _read_route(self) -> bool:
        m = self._match(ROUTE)
        if m is None:
            return False
        if self._is_lost:
            self._at = m.end()
            return True
        self._route = self._route or printed(m.group())
        step = self._step()
        if step is not None:
            step.end = max(step.end, m.end())
        separator = self._separator
        self._explain(m.end())
        self._separator = separator
        return True

    def _read_filler(self) -> bool:
        m = self._match(BETWEEN)
        if m is None:
            return False
        step = self._step()
        if step is not None and PRODUCT.match(m.group()):
            step.has_product = True
        self._alternates = self._alternates or bool(REPEATED.match(m.group()))
        if CHANGING.match(m.group()):
            self._changes = True
            if step is not None and step.dose:
                self._out.passed.append(m.span())
        self._between += 1
        if self._between > _MAX_BETWEEN:
            self._is_lost = True
        self._at = m.end()
        self._last_word, self._last_end = m.group(), m.end()
        return True

    def _read_unknown(self) -> bool:
        """Pass an unknown word; directions after an unknown word need a sign of their own."""
        m = self._match(PLAIN)
        if m is None:
            return False
        self._is_lost = True
        self._separator = ""
        self._out.passed.append(m.span())
        if self._pending in ("to", "with", "from"):
            self._pending = ""
        self._last_word, self._last_end = m.group(), m.end()
        self._at = m.end()
        return True
