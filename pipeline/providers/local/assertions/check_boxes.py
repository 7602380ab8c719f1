"""Check boxes and Yes/No answers: which words of a line are ticked, and which are not stated.

A box belongs to the words behind it, or to the words before it if the line ends with a box.
A ticked item is stated. An unticked item, or an item with both answers, is not stated and yields no
entity.
"""

from __future__ import annotations

import bisect
import itertools
import re
from enum import Enum, auto
from typing import NamedTuple

from pipeline.clinical.page_text.lines import PrintedLine, Sentence
from pipeline.providers.local.assertions.tick_tables import TickTable


class BoxTick(Enum):
    """The state of an item of a form."""

    STATED = auto()
    DENIED = auto()
    """The answer No is ticked or written."""
    OPEN = auto()
    """Not ticked, not answered, or both answers are ticked."""


class BoxItem(NamedTuple):
    """The words of an item, `text[start:end]`, and its state."""

    start: int
    end: int
    tick: BoxTick


_MARK = r"[xX✓✔√*vV]"
_BOX = re.compile(
    rf"(?P<on>\[\+\]|\[[ _]*{_MARK}[ _]*\]|\([ _]*[xX✓✔√*][ _]*\)|[☑☒🗹🗷✅]"
    rf"|(?<![\w_])_+{_MARK}_*(?!\w)"
    rf"|(?<![\w_])[xX]_+(?!\w))"
    r"|(?P<off>\[[ _]*\]|\([ _]*\)|[☐□▢◻❏❑]|(?<![\w_])_{2,}(?![\w]))"
    r"|(?P<minus>\[-\])|(?P<glyph>[■◼▣✓✔●○◯◉⚫⚪✗✘])"
)
_MAY_HAVE_BOX = re.compile(r"[\[(_☑☒🗹🗷✅☐□▢◻❏❑■◼▣✓✔●○◯◉⚫⚪✗✘]")
"""A character without which no line has a box. This test is much faster than `_BOX`."""
_OPEN_GLYPHS = "○◯⚪"
_WORDS = (
    r"(?:Yes|No|Y|N|Pos(?:itive)?|Neg(?:ative)?|True|False|Present|Absent|Unknown|Unk|N/A|Denies)"
)
_HEADS = (
    r"(?:Yes|No|Y|N|Positive|Negative|True|False|Present|Absent|Unknown|Unsure|N/A|Self|Patient|You"
    r"|Pt|Family|Relatives?|Mother|Father|Siblings?|Sister|Brother|Child(?:ren)?|Grandparents?"
    r"|Spouse|Current|Now|Past|Previous|Ever|Never|Other)"
)
"""The heads of columns of ticks: answers, times and persons."""
_IS_NO = re.compile(r"(?:no?|neg(?:ative)?|false|absent|denies|never)$", re.I)
_IS_YES = re.compile(
    r"(?:y(?:es)?|pos(?:itive)?|true|present|self|patient|you|pt|current|now)$", re.I
)
_ANSWER_HEADER = re.compile(
    rf"[ ]*(?:[A-Za-z][A-Za-z/ ()-]{{0,40}}?[ :|\t]+)?"
    rf"(?P<answers>{_HEADS}(?:[ |\t]+{_HEADS}){{1,5}})[ ]*",
    re.I,
)
_PERSON_HEAD = re.compile(
    r"(?:family|relative|mother|father|sibling|sister|brother|child|grandparent|spouse|other)", re.I
)
_ONLY_ANSWER = re.compile(rf"[\s:|/,-]*({_WORDS})[\s:|/,.-]*$", re.I)
_ANSWERED = re.compile(
    r"(?P<label>[A-Za-z][A-Za-z0-9 /'’&-]{1,48}?(?:[ ]?\([A-Za-z ]{1,24}\))?)[ ]*"
    r"(?:[:=?]|[ ]-|\.{3,}|\t|[ ]{2})[ \t]*"
    r"(?P<answer>Yes|No|YES|NO|yes|no|Y|N|y|n|Never|never|NEVER|(?i:unknown|unk|n/a|not asked"
    r"|not known|not assessed"
    r"|unsure)|(?<=\t)(?i:denie[sd]|absent|none)|(?<=\t)(?i:present|endorse[sd]|reports?|reported))"
    r"(?=[ ]{2,}|\t|[ ]*[,;|]|[ ]*\.?[ ]*$"
    r"|[ ]+[A-Z][A-Za-z /-]{2,40}[:?])"
    r"|(?P<bare>[A-Za-z][A-Za-z0-9 /'’&-]{1,48}?)[ ]*\((?P<paren>Yes|No|YES|NO|Y|N|y|n)\)"
)
_NO_ANSWERS = frozenset({"n", "no", "never", "denies", "denied", "absent", "none"})
_YES_ANSWERS = frozenset({"y", "yes", "present", "endorses", "endorsed", "report", "reports"})
_UNDECIDED = re.compile(
    r"(?P<label>[A-Za-z][A-Za-z0-9 '’&-]{1,48}?)[ :]*(?:\b(?:Yes[ ]?/[ ]?No|Y[ ]?/[ ]?N|Y[ ]+N"
    r"|Yes[ ]+No)\b)"
)
_LABEL = r"[A-Z][A-Za-z0-9/'’&-]*(?:[ ](?!(?:Yes|No|YES|NO|Y|N)\b)[A-Za-z0-9/'’&-]+){0,4}"
_PAIR = re.compile(rf"(?P<label>{_LABEL})[ ]+(?P<answer>Yes|No|YES|NO|Y|N)(?![\w-])[ ,;.]*")
_PAIR_BACK = re.compile(rf"(?P<answer>Yes|No|YES|NO|Y|N)[ ]+(?P<label>{_LABEL})[ ,;.]*")
_SIGN = re.compile(
    r"\b(?:yes|no|y|n|never|unk|unknown|n/a|not|unsure|denie[sd]|absent|none|present|endorse[sd]"
    r"|report(?:s|ed)?)\b",
    re.I,
)
"""A word without which no line has an answer. This test is much faster than the patterns above."""
_MAY_ANSWER = re.compile(
    r"(?:[:=?\t]|[ ]-|\.\.\.|[ ]{2})[ \t]*(?:yes|no|never|y|n|unk|n/a|unsure)(?![a-su-z])"
    r"|\t[ \t]*(?:denie[sd]|absent|none|present|endorse[sd]|report)"
    r"|\([ynYN]|\b(?:yes|y)[ ]{0,9}/?[ ]?no?\b",
    re.I,
)
"""The place of an answer. This test is much faster than the patterns of whole items."""
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|without|denies|denied|negative|NKDA|NKA|declin\w+|refus\w+)\b", re.I
)


def box_items(
    lines: list[PrintedLine], text: str, raw: str = "", headings: frozenset[int] = frozenset()
) -> list[BoxItem]:
    """Return the items of all lines with boxes or answers, in the order of the text.

    `headings` holds the starts of the lines that begin a section.
    """
    glyphs = {m["glyph"] for m in _boxes_in(text) if m["glyph"]}
    found: list[BoxItem] = []
    answers: list[str] = []
    table = TickTable()
    for line in lines:
        row_of_ticks = raw[line.start : line.end]
        rows = table.items(row_of_ticks, is_heading=line.start in headings) if raw else []
        if rows:
            found += [
                BoxItem(line.start + a, line.start + b, _decided(said)) for a, b, said in rows
            ]
            continue
        answers = _answer_columns(line.text) or (answers if line.text.strip() else [])
        cells = raw[line.start : line.end].split("\t") if answers and raw else []
        row = _cell_row(cells, answers) or _answer_row(line.text, answers)
        if row is not None:
            found.append(BoxItem(line.start + row[0], line.start + row[1], row[2]))
            continue
        if not _boxes_in(line.text) and not _SIGN.search(line.text):
            continue
        found.extend(
            BoxItem(line.start + a, line.start + b, tick)
            for a, b, tick in _items(line.text, glyphs)
        )
    return found


def _boxes_in(text: str) -> list[re.Match[str]]:
    return list(_BOX.finditer(text)) if _MAY_HAVE_BOX.search(text) else []


def _answer_columns(line: str) -> list[str]:
    """Return the answers that head the columns of boxes (`Condition  Yes  No`)."""
    m = _ANSWER_HEADER.fullmatch(line)
    if m is None or _boxes_in(line):
        return []
    heads = re.findall(rf"\b{_HEADS}\b", m["answers"], re.I)
    return heads if any(_IS_YES.match(head) or _IS_NO.match(head) for head in heads) else []


def _cell_row(cells: list[str], answers: list[str]) -> tuple[int, int, BoxTick] | None:
    """Return the item of a row whose cells are empty or ticked (`Gout`, ``, `X`)."""
    marks = [cell.strip() for cell in cells[1:]]
    if len(cells) < 2 or not cells[0].strip() or not any(marks):
        return None
    if not all(re.fullmatch(r"[xX✓✔√•]?", mark) for mark in marks):
        return None
    if len(marks) > len(answers):
        return 0, len(cells[0]), BoxTick.OPEN
    said = {answer: bool(mark) for answer, mark in zip(answers, marks, strict=False)}
    return 0, len(cells[0]), _decided(said)


def _answer_row(line: str, answers: list[str]) -> tuple[int, int, BoxTick] | None:
    """Return the item of a row with one box for each answer of the header."""
    boxes = [m for m in _boxes_in(line) if not m["glyph"]]
    leading = _leading_boxes(line, boxes, answers)
    if leading is not None:
        return leading
    if not answers or not boxes or line[boxes[-1].end() :].strip():
        return None
    if not line[: boxes[0].start()].strip():
        return None
    if any(line[a.end() : b.start()].strip() for a, b in itertools.pairwise(boxes)):
        return None
    if len(boxes) != len(answers):
        return 0, boxes[0].start(), BoxTick.OPEN
    said = {answer: _is_on(box) for answer, box in zip(answers, boxes, strict=True)}
    return 0, boxes[0].start(), _decided(said)


def _leading_boxes(
    line: str, boxes: list[re.Match[str]], answers: list[str]
) -> tuple[int, int, BoxTick] | None:
    """Return the item of a row that begins with one box for each answer (`[ ] [x] Fever`).

    Without a header of as many answers, the row does not say which box means what.
    """
    if len(boxes) < 2 or line[: boxes[0].start()].strip(" -*•"):
        return None
    if any(line[a.end() : b.start()].strip(" |\t/") for a, b in itertools.pairwise(boxes)):
        return None
    if not re.search(r"[A-Za-z]{2}", line[boxes[-1].end() :]):
        return None
    if len(boxes) != len(answers):
        return boxes[-1].end(), len(line), BoxTick.OPEN
    said = {answer: _is_on(box) for answer, box in zip(answers, boxes, strict=True)}
    return boxes[-1].end(), len(line), _decided(said)


def _blanks_to_fill(line: str, boxes: list[re.Match[str]]) -> list[tuple[int, int, BoxTick]]:
    """Return the items of a line of blanks behind colons (`Fever: ___ Cough: ___`).

    A blank behind a colon is the missing answer of the words before the colon.
    """
    if not all(
        box.group().startswith("__") and box["off"] and line[: box.start()].rstrip()[-1:] in ":="
        for box in boxes
    ):
        return []
    starts = [0, *(box.end() for box in boxes[:-1])]
    return [(a, box.start(), BoxTick.OPEN) for a, box in zip(starts, boxes, strict=True)]


def _items(line: str, glyphs: set[str | None]) -> list[tuple[int, int, BoxTick]]:
    boxes = [m for m in _boxes_in(line) if not m["glyph"] or _is_box(m["glyph"], line, glyphs)]
    if not boxes:
        return _answers(line)
    if re.fullmatch(r"[\s_]*", line):
        return []
    blanks = _blanks_to_fill(line, boxes)
    if blanks:
        rest = blanks[-1][1]
        return [*blanks, *((a + rest, b + rest, tick) for a, b, tick in _answers(line[rest:]))]
    answered = _answers_first(line, boxes)
    if answered is not None:
        return [answered]
    gaps = [(a.end(), b.start()) for a, b in itertools.pairwise(boxes)]
    first = (0, boxes[0].start())
    last = (boxes[-1].end(), len(line))
    leads = bool(re.search(r"\w", line[first[0] : first[1]]))
    trails = bool(re.search(r"\w", line[last[0] : last[1]]))
    behind = not leads or trails
    if leads and trails and _ONLY_ANSWER.match(line[slice(*_before_answer(line, boxes[0]))]):
        behind = False
    spans = [*gaps, last] if behind else [first, *gaps]
    if (
        leads
        and behind
        and len(boxes) == 1
        and not re.search(r"[:?]\s*$", line[: boxes[0].start()])
    ):
        spans = [last]
    return _by_answer(line, boxes, spans, first if behind else None)


def _answers_first(line: str, boxes: list[re.Match[str]]) -> tuple[int, int, BoxTick] | None:
    """Return the item of a line that begins with its answers (`[ ] Yes [x] No  Asthma`)."""
    if len(boxes) != 2 or line[: boxes[0].start()].strip(" -*•"):
        return None
    first = _ONLY_ANSWER.match(line[boxes[0].end() : boxes[1].start()])
    second = re.match(rf"[ ]*({_WORDS})[ :]+(?=\w)", line[boxes[1].end() :], re.I)
    if first is None or second is None:
        return None
    said = {first[1]: _is_on(boxes[0]), second[1]: _is_on(boxes[1])}
    return boxes[1].end() + second.end(), len(line), _decided(said)


def _before_answer(line: str, box: re.Match[str]) -> tuple[int, int]:
    m = re.search(rf"\b{_WORDS}[\s:]*$", line[: box.start()], re.I)
    return (m.start(), box.start()) if m else (box.start(), box.start())


def _by_answer(
    line: str,
    boxes: list[re.Match[str]],
    spans: list[tuple[int, int]],
    lead: tuple[int, int] | None,
) -> list[tuple[int, int, BoxTick]]:
    """Return the items; boxes beside `Yes` and `No` answer the label before them."""
    found: list[tuple[int, int, BoxTick]] = []
    label = lead
    answers: dict[str, bool] = {}

    def close() -> None:
        if label is not None and answers:
            found.append((*label, _decided(answers)))
        answers.clear()

    for box, (start, end) in zip(boxes, spans, strict=True):
        words = line[start:end]
        is_on = _is_on(box)
        whole = _ONLY_ANSWER.match(words)
        if whole is not None:
            answers[whole[1]] = is_on
            continue
        opening = re.match(rf"[\s:]*({_WORDS})(?=[\s:|/,;.-]+\w)", words, re.I)
        closing = re.search(rf"[\s:,-]({_WORDS})[\s:]*$", words, re.I)
        if lead is not None and opening is not None and label is not None:
            answers[opening[1]] = is_on
            close()
            label = (start + opening.end(), end)
            continue
        if lead is None and closing is not None:
            close()
            label = (start, start + closing.start())
            answers[closing[1]] = is_on
            continue
        close()
        label = None if lead is None else label
        tick = BoxTick.STATED if is_on else BoxTick.DENIED if box["minus"] else BoxTick.OPEN
        found.append((start, end, tick))
    close()
    return [(a, b, t) for a, b, t in found if line[a:b].strip()]


def _decided(answers: dict[str, bool]) -> BoxTick:
    ticked = [word for word, is_on in answers.items() if is_on]
    own = [word for word in ticked if _IS_YES.match(word) or _IS_NO.match(word)]
    if own and all(_PERSON_HEAD.match(word) for word in ticked if word not in own):
        ticked = own
    if len(ticked) != 1:
        return BoxTick.OPEN
    if _IS_NO.match(ticked[0]):
        return BoxTick.DENIED
    return BoxTick.STATED if _IS_YES.match(ticked[0]) else BoxTick.OPEN


def _is_box(glyph: str, line: str, glyphs: set[str | None]) -> bool:
    """Return whether a glyph that also serves as a bullet is a box here."""
    if glyph in _OPEN_GLYPHS:
        return bool(glyphs & set("●◉⚫")) and bool(re.search(r"[●◉⚫]", line))
    if glyph in "●◉⚫":
        return bool(re.search(f"[{_OPEN_GLYPHS}]", line))
    if glyph in "■◼▣":
        return "□" in line or "☐" in line or "◻" in line
    return line.lstrip().startswith(glyph) or glyph in "✓✔"


def _is_on(box: re.Match[str]) -> bool:
    if box["glyph"]:
        return box["glyph"] not in _OPEN_GLYPHS and box["glyph"] not in "✗✘"
    return box["on"] is not None


def _answers(line: str) -> list[tuple[int, int, BoxTick]]:
    found = _pairs(line)
    if found:
        return found
    if not _MAY_ANSWER.search(line):
        return found
    for m in _UNDECIDED.finditer(line):
        found.append((m.start("label"), m.end("label"), BoxTick.OPEN))
    for m in _ANSWERED.finditer(line):
        name = "label" if m["label"] else "bare"
        answer = m["answer"] or m["paren"]
        label = m[name]
        is_no = answer.lower() in _NO_ANSWERS
        if (not is_no and answer.lower() not in _YES_ANSWERS) or (
            is_no and _NEGATION.search(label)
        ):
            tick = BoxTick.OPEN
        else:
            tick = BoxTick.DENIED if is_no else BoxTick.STATED
        found.append((m.start(name), m.end(name), tick))
        # The answer is an item of its own, so that `Never` does not reach the next label.
        place = "answer" if m["answer"] else "paren"
        found.append((m.start(place), m.end(place), BoxTick.OPEN))
    return sorted(found, key=lambda item: item[:2])


def parted(sentences: list[Sentence], items: list[BoxItem]) -> list[Sentence]:
    """Split sentences so that no cue reaches from one item of a form into another item."""
    if not items:
        return sentences
    cuts = sorted({place for item in items for place in (item.start, item.end)})
    found: list[Sentence] = []
    for sentence in sentences:
        at = sentence.start
        first = bisect.bisect_right(cuts, sentence.start)
        for cut in cuts[first : bisect.bisect_left(cuts, sentence.end)]:
            if cut > at:
                found.append(Sentence(at, cut))
                at = cut
        found.append(Sentence(at, sentence.end))
    return found


def _pairs(line: str) -> list[tuple[int, int, BoxTick]]:
    """Read a line that consists of labels and answers only (`Asthma No Gout Yes`)."""
    words = line.strip()
    begin = len(line) - len(line.lstrip())
    for pattern, least in ((_PAIR, 1), (_PAIR_BACK, 2)):
        pairs = list(pattern.finditer(line, begin))
        reach = sum(m.end() - m.start() for m in pairs)
        if len(pairs) < least or reach != len(line.rstrip()) - begin:
            continue
        if pattern is _PAIR_BACK and not any(m["answer"][0] == "Y" for m in pairs):
            continue
        if pattern is _PAIR and words.lower().endswith(("type no", "case no", "account no")):
            continue
        return [
            (
                m.start("label"),
                m.end("label"),
                BoxTick.DENIED if m["answer"][0] == "N" else BoxTick.STATED,
            )
            for m in pairs
        ]
    return []
