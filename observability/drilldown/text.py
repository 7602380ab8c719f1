"""A drill-down as text: a tree on a terminal, indented lines elsewhere.

This module is pure. Nodes that differ have a row each. Nodes that are alike and done are folded
into one row, such as `12 encounters done`, unless the caller asks for everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from rich.text import Text
from rich.tree import Tree

from medproc.printable import printable
from observability.drilldown.nodes import DrillDown, Node, NodeKind
from observability.drilldown.summary import cost, thousands
from pipeline.core.labels import COLOURS, SHAPES, StatusWord, counted, duration

COUNTED = frozenset(
    {
        *("page", "encounter", "chunk", "batch", "zone", "narrative", "call"),
        *("entity", "entity with candidates", "sentence", "unsupported sentence"),
    }
)
"""The counts whose noun has a plural; other counts are adjectives, such as `failed`."""
_QUIET = frozenset({StatusWord.DONE, StatusWord.SKIPPED, StatusWord.WAITING})
"""States that are folded if the node has nothing else to report."""
WORTH_SAYING_MS = 50
"""A shorter wait for a slot is not shown."""


@dataclass(frozen=True, kw_only=True)
class TreeRow:
    """A row of the tree, with the rows below it."""

    text: Text
    node: Node | None = None
    """The node of the row; None for a remark."""
    folded: tuple[Node, ...] = ()
    """The nodes that a folded row represents."""
    below: tuple[TreeRow, ...] = field(default=())


def outline(drill_down: DrillDown, *, everything: bool = False) -> TreeRow:
    """Return the rows of a drill-down, folded unless `everything` is set."""
    kept = {node.id for node in drill_down.path()}
    return _line(drill_down.root, kept, drill_down.focus, everything)


def hides(drill_down: DrillDown, folded: TreeRow) -> bool:
    """Return whether folding hides rows; unfolded, every node and every remark has a row."""
    unfolded = (1 + len(node.notes) + bool(_reason(node)) for node in drill_down.root.walk())
    return _size(folded) < sum(unfolded)


def _size(line: TreeRow) -> int:
    return 1 + sum(_size(below) for below in line.below)


def as_tree(line: TreeRow) -> Tree:
    """Return the rows as a tree for a terminal."""
    tree = Tree(line.text, guide_style="dim")
    _hang(tree, line.below)
    return tree


def as_lines(line: TreeRow, depth: int = 0) -> Iterator[str]:
    """Yield the rows indented by two spaces for each level."""
    yield f"{'  ' * depth}{line.text.plain}"
    for below in line.below:
        yield from as_lines(below, depth + 1)


def _hang(tree: Tree, lines: Sequence[TreeRow]) -> None:
    for line in lines:
        _hang(tree.add(line.text), line.below)


def _line(node: Node, kept: set[str], focus: str, everything: bool) -> TreeRow:
    below = [TreeRow(text=_text(f"! {note}", style="yellow")) for note in node.notes]
    if reason := _reason(node):
        below.append(TreeRow(text=_text(f"→ {reason}", style="red")))
    open_all = everything or (node.id == focus and node.kind is not NodeKind.RECORD)
    for key, group in groupby(node.children, key=lambda child: _fold_key(child, kept)):
        alike = list(group)
        if open_all or key is None:
            shown = len(alike)
        else:
            # One failure is shown as the example of all alike failures; done nodes need none.
            shown = 0 if node.children and alike[0].status in _QUIET else 1
        if len(alike) - shown == 1:
            shown = len(alike)
        below += [_line(child, kept, focus, everything) for child in alike[:shown]]
        if alike[shown:]:
            rest = tuple(alike[shown:])
            below.append(TreeRow(text=_folded(rest, more=shown > 0), folded=rest))
    closed = node.kind is not NodeKind.PASS and node.id not in kept and not _speaks(node)
    if closed and not everything:
        below = []
    return TreeRow(text=_row(node, is_focus=node.id == focus), node=node, below=tuple(below))


def details(node: Node) -> list[str]:
    """Return the counts, facts and cost of a node in words."""
    return [*_counts(node), *_facts(node), *_spent(node)]


def code(node: Node) -> str:
    """Return the error code, such as `MAX_RETRIES_EXCEEDED ← API_5XX`; "" without a failure."""
    return _code(node).strip()


def _reason(node: Node) -> str:
    """Return why a node failed, unless its row or a row below it says so already."""
    if node.cause is None or any(child.cause for child in node.children):
        return ""
    if node.kind is NodeKind.PASS:
        return f"{node.cause.message.rstrip('.')}. {node.cause.advice}"
    return ""


def _fold_key(node: Node, kept: set[str]) -> tuple[NodeKind | str, StatusWord, str] | None:
    # Started passes are few, and each one is worth its own row.
    begun = node.kind is NodeKind.PASS and node.status not in {
        StatusWord.SKIPPED,
        StatusWord.WAITING,
    }
    if begun or node.id in kept or (node.status in _QUIET and _speaks(node)):
        return None
    return (node.kind, node.status, f"{node.cause.code} {node.cause.root}" if node.cause else "")


def _speaks(node: Node) -> bool:
    """Return whether a node, or a node below it, is worth a row of its own."""
    if node.kind is NodeKind.PASS and node.status in _QUIET:
        return any(_speaks(child) for child in node.children)
    return any(
        n.notes or (n.status not in _QUIET and n.kind is not NodeKind.CALL) for n in node.walk()
    ) or (node.kind is NodeKind.CALL and node.status is StatusWord.FAILED)


def _folded(nodes: Sequence[Node], *, more: bool) -> Text:
    first = nodes[0]
    if first.kind is NodeKind.PASS:
        what = ", ".join(node.title for node in nodes)
        word = first.notes[0] if first.notes else first.status
        return _text(f"{SHAPES[first.status]} {what}: {word}", style="dim")
    entities = sum(node.counts.get("entity", 0) for node in nodes)
    absorbed = sum(n.absorbed for node in nodes for n in node.walk())
    noun = counted(len(nodes), str(first.kind))
    said = [f"{len(nodes)} more {noun.split(' ', 1)[1]}" if more else noun]
    said[0] += f" {first.status}{_code(first)}"
    said += [counted(entities, "entity")] if entities else []
    said += [f"{counted(absorbed, 'failed call')} absorbed"] if absorbed else []
    return _text(f"{SHAPES[first.status]} {', '.join(said)}", style="dim")


def _code(node: Node) -> str:
    if node.cause is None:
        return ""
    root = f" ← {node.cause.underlying}" if node.cause.root != node.cause.code else ""
    return f" {node.cause.code}{root}"


def _row(node: Node, *, is_focus: bool) -> Text:
    text = _text(f"{SHAPES[node.status]} ", style=COLOURS[node.status])
    text.append(_text(node.title, style="bold reverse" if is_focus else "bold"))
    text.append(_text(f"  {node.status}", style=COLOURS[node.status]))
    text.append(_text(_code(node), style=COLOURS[node.status]))
    if said := details(node):
        text.append(_text(f"  {' · '.join(said)}", style="dim"))
    if node.kind is not NodeKind.PASS:
        text.append(_text(f"  {node.id}", style="dim cyan"))
    return text


def _text(words: str, *, style: str = "") -> Text:
    """Return styled words. A terminal gets them as they are, so control characters are escaped."""
    return Text(printable(words), style=style)


def _counts(node: Node) -> list[str]:
    return [
        counted(number, noun) if noun in COUNTED else f"{number:,} {noun.replace('_', ' ')}"
        for noun, number in node.counts.items()
        if number
    ]


def _facts(node: Node) -> list[str]:
    facts = node.facts
    if node.kind is NodeKind.CALL:
        said = [node.cause.message] if node.cause and node.cause.message else []
        if facts["http_status"] and not (said and said[0].startswith("HTTP")):
            said.append(f"HTTP {facts['http_status']}")
        said += [facts["finish_reason"]] if facts["finish_reason"] else []
        said += ["accepted"] if facts["accepted"] else []
        hint = facts["retry_after_ms"]
        said += [f"hint {duration(hint / 1000)}"] if hint is not None else []
        return [*said, facts["model_version"]]
    if tables := facts.get("code_tables"):
        return [tables]
    waits = facts.get("rate_limit_waits", 0)
    if not facts.get("attempt_count") and not waits:
        return []
    spent = facts["attempt_count"]
    said = [f"attempt {spent} of {facts['max_attempts']}"] if spent else ["no attempt spent"]
    said += [counted(waits, "limited call")] if waits else []
    return [*said, f"{counted(node.absorbed, 'failed call')} absorbed"] if node.absorbed else said


def _spent(node: Node) -> list[str]:
    spent = node.spent
    said = [f"took {duration(spent.took_ms / 1000)}"] if spent.took_ms is not None else []
    if spent.waited_ms and spent.waited_ms >= WORTH_SAYING_MS:
        said.insert(0, f"waited {duration(spent.waited_ms / 1000)}")
    if node.kind is NodeKind.CALL and spent.input_tokens:
        thinking = f" / {thousands(spent.thinking_tokens)}" if spent.thinking_tokens else ""
        tokens = f"{thousands(spent.input_tokens)} / {thousands(spent.output_tokens)}{thinking}"
        return [*said, f"tokens {tokens}"]
    return [*said, cost(node)] if spent.input_tokens else said
