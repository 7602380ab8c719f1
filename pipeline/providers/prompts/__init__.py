"""Versioned prompts, and the only format in which pages enter a prompt.

`render_*` makes the text that every provider gets. `read_prompt` parses the rendered text, so that
the local engine and the emulator answer exactly the prompt a model would get. Page markers carry
the item token, so no document can forge a marker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pipeline.clinical.facts import EntityFacts
from pipeline.core.types import PageSlice
from pipeline.providers.tasks import TASKS, Task

PROMPT_VERSION = "3"
"""Part of the key of cached extractions; increment it with every change of a prompt."""

_FOLDER = Path(__file__).parent
_HEAD = re.compile(r"^<<<TASK ([a-z_]+) ([0-9a-f]{8,64}) zones=(yes|no)>>>$", re.M)
# The token of a marker is compared after the match: to compile a pattern for each token takes
# longer than to read the prompt.
_PAGE = re.compile(
    r"^<<<PAGE (?P<token>[0-9a-f]{8,64}) (?P<page>\d+) (?P<start>\d+) (?P<role>own|context)"
    r"(?: attached=(?P<attached>\d+))?>>>\n(?P<text>.*?)\n<<<END (?P=token)>>>$",
    re.M | re.S,
)
_LISTED = re.compile(
    r"\n<<<LIMITS (?P<token>[0-9a-f]{8,64}) (?P<limits>\{.*\})>>>\n<<<ENTITIES (?P=token)>>>\n"
    r"(?P<facts>.*?)\n?<<<END (?P=token)>>>",
    re.S,
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """The question that a rendered prompt asks."""

    kind: str
    """Name of the task (`tasks.TASKS`)."""
    item_token: str
    include_zones: bool
    slices: tuple[PageSlice, ...] = field(repr=False)
    facts: tuple[EntityFacts, ...] = field(default=(), repr=False)
    """The entities of earlier passes that the question is about."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Limits of the reply by name, such as `sentences`."""


def render_discovery(item_token: str, slices: Sequence[PageSlice]) -> str:
    """Render the prompt of Pass 0.5. Lines are numbered from 1 on each page."""
    return render(TASKS["discovery"], item_token, slices)


def render_entities(item_token: str, slices: Sequence[PageSlice], *, include_zones: bool) -> str:
    """Render the prompt of Pass 1."""
    return render(TASKS["entities"], item_token, slices, include_zones=include_zones)


def render_enrichment(
    item_token: str, slices: Sequence[PageSlice], facts: Sequence[EntityFacts]
) -> str:
    """Render the prompt of Pass 2: the entities of one zone, and the text around them."""
    return render(TASKS["enrichment"], item_token, slices, facts=facts)


def render_narrative(
    item_token: str, facts: Sequence[EntityFacts], limits: Mapping[str, int]
) -> str:
    """Render the prompt of Pass 3: the entities that the narrative may cite, and its limits."""
    return render(TASKS["narrative"], item_token, (), facts=facts, limits=limits)


def render(
    task: Task,
    item_token: str,
    slices: Sequence[PageSlice],
    *,
    include_zones: bool = False,
    facts: Sequence[EntityFacts] = (),
    limits: Mapping[str, int] | None = None,
) -> str:
    """Render the prompt of a task. A task without zones ignores `include_zones`."""
    zones = include_zones and task.has_zones
    words = _words(task.name, zones=zones, attached=any(s.attached for s in slices))
    head = f"<<<TASK {task.name} {item_token} zones={'yes' if zones else 'no'}>>>"
    pages = []
    for s in slices:
        role = "context" if s.context else "own"
        body = _with_numbers(s.text) if task.has_line_numbers else s.text
        if s.attached:
            role += f" attached={s.attached}"
            body = body if task.has_line_numbers or task.has_facts else ""
        pages.append(
            f"<<<PAGE {item_token} {s.page} {s.start} {role}>>>\n{body}\n<<<END {item_token}>>>"
        )
    listed = _listed(item_token, facts, limits or {}) if task.has_facts else ()
    return "\n".join([words, head, *listed, *pages])


@cache
def _words(name: str, *, zones: bool, attached: bool) -> str:
    """Return the words of a task: a step sends the same words with each of its calls."""
    words = (_FOLDER / f"{name}_v{PROMPT_VERSION}.txt").read_text(encoding="utf-8")
    words = _optional(words, "zones", shown=zones)
    return _optional(words, "attached", shown=attached).rstrip("\n")


def _listed(
    item_token: str, facts: Sequence[EntityFacts], limits: Mapping[str, int]
) -> tuple[str, ...]:
    """Return the lines of the entities: JSON escapes line breaks, so no text can end the list."""
    lines = [json.dumps(each.as_json(), ensure_ascii=False) for each in facts]
    return (
        f"<<<LIMITS {item_token} {json.dumps(dict(limits))}>>>",
        f"<<<ENTITIES {item_token}>>>",
        *lines,
        f"<<<END {item_token}>>>",
    )


def read_prompt(prompt: str) -> Question:
    """Parse a rendered prompt. Raises ValueError if `render_*` did not write the text."""
    head = _HEAD.search(prompt)
    task = TASKS.get(head[1]) if head else None
    if head is None or task is None:
        raise ValueError("not a prompt of medproc")
    _, token, zones = head.groups()
    body = prompt[head.end() :]
    slices = tuple(
        PageSlice(
            page=int(m["page"]),
            start=int(m["start"]),
            context=m["role"] == "context",
            text=_without_numbers(m["text"]) if task.has_line_numbers else m["text"],
            attached=int(m["attached"] or 0),
        )
        for m in _pages_of(body, token)
    )
    facts, limits = _facts_of(body, token) if task.has_facts else ((), {})
    return Question(
        kind=task.name,
        item_token=token,
        include_zones=zones == "yes",
        slices=slices,
        facts=facts,
        limits=limits,
    )


def _pages_of(body: str, token: str) -> Iterator[re.Match[str]]:
    """Yield the pages with the markers of this token. Other markers are words of a page."""
    at = 0
    while found := _PAGE.search(body, at):
        if found["token"] == token:
            yield found
            at = found.end()
        else:
            at = found.start() + 1


def _facts_of(body: str, token: str) -> tuple[tuple[EntityFacts, ...], Mapping[str, int]]:
    """Return the entities and the limits that `_listed` wrote."""
    found = _LISTED.match(body)
    if found is None or found["token"] != token:
        raise ValueError("not a prompt of medproc: the list of entities is missing")
    lines = [line for line in found["facts"].split("\n") if line]
    limits: Mapping[str, int] = json.loads(found["limits"])
    return tuple(EntityFacts.of_json(json.loads(line)) for line in lines), limits


def estimate_tokens(text: str) -> int:
    """Estimate the input tokens: four characters per token, as the API's documentation says."""
    return len(text) // 4 + 1


def page_tokens(model: str) -> int:
    """Return the tokens per attached page: 258 for Gemini 2, 560 for Gemini 3 (API docs)."""
    return 258 if model.startswith(("gemini-1", "gemini-2")) else 560


def _optional(words: str, part: str, *, shown: bool) -> str:
    """Keep or drop the text between `[part]` and `[/part]`."""
    if shown:
        return re.sub(rf"(?m)^\[/?{part}\]\n", "", words)
    return re.sub(rf"(?ms)^\[{part}\]\n.*?^\[/{part}\]\n", "", words)


def _with_numbers(text: str) -> str:
    return "\n".join(f"{n}| {line}" for n, line in enumerate(text.split("\n"), start=1))


def _without_numbers(text: str) -> str:
    return "\n".join(line.partition("| ")[2] for line in text.split("\n"))
