"""The first line of a drill-down: the failure, its loss, its remedy and the cost of a retry.

This module reads the clock, and no database. Its sentences consist of codes, counts and page
numbers only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone

from observability.drilldown.nodes import Node, NodeKind
from observability.drilldown.queries import RecordRows
from pipeline.core.errors import ErrorCode
from pipeline.core.labels import PASS_TITLES, StatusWord, counted, duration, ranges
from pipeline.core.states import JobStatus, Step
from pipeline.incidents.assessment import Assessment, assess
from pipeline.models import OUTCOME_LATE
from pipeline.models.work_tables import table_named
from pipeline.operations.preview import prompt_tokens, waits_for_retry

_PHRASES: dict[str, str] = {
    ErrorCode.RATE_LIMIT: "rate limited",
    ErrorCode.QUOTA_EXHAUSTED: "a quota was used up",
    ErrorCode.API_TIMEOUT: "no answer in time",
    ErrorCode.API_5XX: "the provider failed",
    ErrorCode.API_4XX: "the provider refused the request",
    ErrorCode.API_AUTH: "the key was refused",
    ErrorCode.API_BILLING: "the provider asked for a payment",
    ErrorCode.API_PROXY: "a proxy or a wrong address answered",
    ErrorCode.PARSE_JSON: "the reply was not JSON",
    ErrorCode.PARSE_SCHEMA: "the reply did not fit the schema",
    ErrorCode.EMPTY_RESPONSE: "the reply was empty",
    ErrorCode.REPLY_MISMATCH: "the reply belonged to another request",
    ErrorCode.OUTPUT_TRUNCATED: "the reply was cut off",
    ErrorCode.CONTEXT_TOO_LARGE: "the pages were too long",
    ErrorCode.CONTENT_BLOCKED: "the provider's filter refused the pages",
}


def record_answer(rows: RecordRows, root: Node) -> str:
    """Describe the state of a record in one line."""
    match rows.job.status:
        case JobStatus.COMPLETED:
            return _completed(root)
        case JobStatus.FAILED | JobStatus.DEAD:
            return _failed(rows, root)
        case JobStatus.PARKED:
            return _parked(rows)
        case JobStatus.CANCELLED:
            return f"Cancelled in {_title(rows)}; completed work stays."
        case JobStatus.PENDING:
            since = duration((timezone.now() - rows.job.updated_at).total_seconds())
            return f"Waiting for {_title(rows)} since {since}."
        case _:
            return _running(rows, root)


def node_answer(path: Sequence[Node]) -> str:
    """Describe the state of a part in one line; `path` leads from the record to the part."""
    node = path[-1]
    where = ", ".join(n.title for n in path[1:])
    if node.cause is None:
        notes = f" Look at: {'; '.join(node.notes)}." if node.notes else ""
        absorbed = f" {counted(node.absorbed, 'failed call')} absorbed." if node.absorbed else ""
        return f"{where}: {node.status}.{absorbed}{notes}"
    happened = _happened(node) or node.cause.message or node.cause.code
    advice = f" Advice: {node.cause.advice}" if node.cause.advice else ""
    return f"{where}: {node.status}: {happened.rstrip('.')}.{advice}"


def _title(rows: RecordRows) -> str:
    return PASS_TITLES[Step(rows.job.current_step)]


def _parked(rows: RecordRows) -> str:
    job = rows.job
    when = f" until {_until(job.parked_until)}" if job.parked_until else ""
    if waits_for_retry(job):
        failed = f" {_title(rows)} failed: {job.last_error.rstrip('.')}." if job.last_error else ""
        number = f"{job.retry_count} of {job.max_retries}"
        return f"Parked{when} for retry {number}.{failed}"
    return f"Parked before {_title(rows)}{when}: {job.park_reason}."


def _until(at: datetime) -> str:
    """Return `07:39 (in 48 s)`, with the date if it is not today."""
    now = timezone.now()
    day = "" if at.date() == now.date() else f"{at:%Y-%m-%d} "
    left_s = (at - now).total_seconds()
    return f"{day}{at:%H:%M} UTC ({f'in {duration(left_s)}' if left_s > 0 else 'due'})"


def is_unpublished(root: Node) -> bool:
    """Return whether a record is done but published nothing, for a reason that needs a review."""
    return root.status is StatusWord.DONE and not root.counts["entity"] and bool(root.notes)


def _completed(root: Node) -> str:
    failed_calls = sum(n.absorbed for n in root.walk())
    took = f" in {duration(root.spent.took_ms / 1000)}" if root.spent.took_ms else ""
    absorbed = (
        f" {counted(failed_calls, 'failed call')} absorbed on the way." if failed_calls else ""
    )
    unread = root.counts.get("not_understood", 0)
    rows = [f"{counted(unread, 'row')} not understood, published without a value"] if unread else []
    look = f" Look at: {'; '.join((*rows, *root.notes))}." if rows or root.notes else ""
    if is_unpublished(root):
        return (
            f"Done{took}, but nothing was published: {'; '.join(root.notes)}."
            f" {counted(root.counts['page'], 'page')}, {counted(root.counts['call'], 'call')},"
            f" {cost(root)}.{absorbed}"
        )
    return (
        f"Done{took}: {counted(root.counts['encounter'], 'encounter')} and"
        f" {counted(root.counts['entity'], 'entity')} from {counted(root.counts['page'], 'page')};"
        f" {counted(root.counts['call'], 'call')}, {cost(root)}.{absorbed}{look}"
    )


def _running(rows: RecordRows, root: Node) -> str:
    step = next((n for n in root.children if n.id == rows.job.current_step), None)
    units = [n for n in step.walk() if n.is_work_item] if step else []
    done = sum(n.status is StatusWord.DONE for n in units)
    noun = str(units[0].kind) if units else ""
    progress = f": {done} of {counted(len(units), noun)} done" if units else ""
    began = rows.job.step_started_at
    since = duration((timezone.now() - began).total_seconds()) if began else "now"
    trouble = _trouble(rows, step) if step else ""
    if trouble:
        return f"Running {_title(rows)} since {since}, but {trouble}{progress}."
    return f"Running {_title(rows)} since {since}{progress}."


def _trouble(rows: RecordRows, step: Node) -> str:
    """Describe the problem of a running pass: `21 of 23 calls failed (API_5XX) and …`."""
    began = rows.job.step_started_at
    calls = [
        node
        for node in step.walk()
        if node.kind is NodeKind.CALL
        and not (began and node.spent.started_at and node.spent.started_at < began)
    ]
    failed = [n.cause.code for n in calls if n.cause and n.cause.code != OUTCOME_LATE]
    lost = [
        n for n in step.children if n.status is StatusWord.FAILED and n.kind is not NodeKind.CALL
    ]
    said = []
    if failed:
        codes = ", ".join(code for code, _ in Counter(failed).most_common(2))
        said.append(f"{len(failed)} of {counted(len(calls), 'call')} failed ({codes})")
    if lost and lost[0].kind is NodeKind.ENCOUNTER:
        numbers = [n.facts["encounter_index"] for n in lost]
        said.append(f"{_encounters(numbers)} {_are(len(lost))} lost")
    elif lost:
        said.append(f"{counted(len(lost), str(lost[0].kind))} {_are(len(lost))} lost")
    return " and ".join(said)


def is_in_trouble(rows: RecordRows, root: Node) -> bool:
    """Return whether the answer about a running record mentions a problem."""
    step = next((n for n in root.children if n.id == rows.job.current_step), None)
    return root.status is StatusWord.RUNNING and step is not None and bool(_trouble(rows, step))


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _failed(rows: RecordRows, root: Node) -> str:
    title = _title(rows)
    action = "is dead" if rows.job.status == JobStatus.DEAD else "failed"
    cause = root.cause
    advice = f" Advice: {cause.advice}" if cause and cause.advice else ""
    step = next(n for n in root.children if n.id == rows.job.current_step)
    broken = _broken(step)
    if not broken:
        message = (cause.message if cause else "").rstrip(".") or "no reason was stored"
        code = f" ({cause.root})" if cause else ""
        return f"{title} {action}: {message}{code}.{_visible(rows, step)}{advice}"
    units = [n for n in step.walk() if n.is_work_item]
    _, first, encounter = broken[0]
    where = f"{_short(encounter)}, {first.title}" if encounter else first.title
    noun = str(first.kind)
    many = (
        f"{len(broken)} of {counted(len(units), noun)} failed; the first is "
        if len(broken) > 1
        else ""
    )
    return (
        f"{title} {action}: {many}{where}: {_happened(first)}.{_visible(rows, step)}"
        f"{_assessment(broken)}{advice}{_retry_cost(root, step, units)}"
    )


Broken = tuple[int, Node, Node | None]
"""First page, the failed unit, and its encounter."""


def _broken(step: Node) -> list[Broken]:
    """Return the units that failed for good, lowest page first (requirement 9)."""
    found: list[Broken] = []
    for child in step.children:
        encounter = child if child.kind is NodeKind.ENCOUNTER else None
        for unit in child.children if encounter else (child,):
            if unit.status is StatusWord.FAILED and unit.is_work_item:
                found.append((unit.facts["page_range_start"], unit, encounter))
    return sorted(found, key=lambda each: each[0])


def first_broken(rows: RecordRows, root: Node) -> str | None:
    """Return the id of the first unit that failed for good; None if no unit failed.

    For a dead job return the unit that was running, or the next one.
    """
    if rows.job.status not in {JobStatus.FAILED, JobStatus.DEAD}:
        return None
    step = next(n for n in root.children if n.id == rows.job.current_step)
    if broken := _broken(step):
        return broken[0][1].id
    # In a dead job no unit has failed; the units that were running when its workers died say more.
    begun = [n for n in step.walk() if n.is_work_item and n.status is not StatusWord.DONE]
    return next((n for n in begun if n.facts.get("is_begun")), (begun or [step])[0]).id


def _short(encounter: Node) -> str:
    return f"encounter {encounter.facts['encounter_index']}"


def _happened(unit: Node) -> str:
    """Describe a unit's calls: `rate limited (RATE_LIMIT) 20 times over 14 min; last hint 39 s`."""
    # A late reply belongs to a call that was already counted as timed out.
    calls = [
        n
        for n in unit.children
        if n.kind is NodeKind.CALL and n.cause is not None and n.cause.code != OUTCOME_LATE
    ]
    if unit.kind is NodeKind.CALL:
        calls = [unit]
    if not calls:
        return unit.cause.message.rstrip(".") if unit.cause else ""
    met = Counter(call.cause.code for call in calls if call.cause)
    words = ", ".join(f"{_phrase(code)} {_times(n)}" for code, n in met.most_common())
    began = min(call.spent.started_at for call in calls if call.spent.started_at)
    last = calls[-1].spent
    over_s = (last.started_at - began).total_seconds() if last.started_at else 0.0
    over = f" over {duration(over_s + (last.took_ms or 0) / 1000)}"
    hints = [h for call in calls if (h := call.facts.get("retry_after_ms")) is not None]
    hint = f"; last hint {duration(hints[-1] / 1000)}" if hints else ""
    # The unit's own reason, if it differs from its calls: for example the step's time was over.
    own = unit.cause if unit.cause and unit.cause.code not in met else None
    ended = f"; {own.message}" if own and own.code != ErrorCode.MAX_RETRIES_EXCEEDED else ""
    return f"{words}{over if len(calls) > 1 else ''}{hint}{ended}"


def _phrase(code: str) -> str:
    phrase = _PHRASES.get(code)
    return f"{phrase} ({code})" if phrase else code


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _visible(rows: RecordRows, step: Node) -> str:
    if step.id in _LATER:
        return " The entities of Pass 1 stay visible."
    if step.id != Step.PASS1:
        return " Nothing of the record is visible." if not rows.encounters else ""
    done = [n.facts["encounter_index"] for n in step.children if n.facts["published"]]
    lost = [n.facts["encounter_index"] for n in step.children if not n.facts["published"]]
    if not step.children:
        return ""
    complete = (
        f"{_encounters(done)} {_are(len(done))} complete." if done else "no encounter is complete."
    )
    return f" Nothing of {_encounters(lost)} is visible; {complete}"


_LATER = frozenset({Step.PASS1_5.value, Step.PASS2.value, Step.PASS3.value})
"""Passes that add to published entities; their failure takes nothing away."""


def _encounters(numbers: Sequence[int]) -> str:
    return f"{'encounter' if len(numbers) == 1 else 'encounters'} {ranges(numbers)}"


def _assessment(broken: Sequence[Broken]) -> str:
    causes = Counter(unit.cause.root for _, unit, _ in broken if unit.cause)
    code, number = causes.most_common(1)[0] if causes else ("", 0)
    if assess(code, number) is Assessment.LIKELY_OUTAGE:
        return f" This looks like an outage of the provider ({number} with {code})."
    return ""


def _estimate(unit: Node) -> int:
    """Return the estimated input tokens of a work item; 0 if its table has no estimate."""
    estimate = table_named(str(unit.kind)).estimate
    return int(unit.facts.get(estimate, 0)) if estimate else 0


def _retry_cost(root: Node, step: Node, units: Sequence[Node]) -> str:
    """Describe the cost of a retry of a pass, with the calls and tokens of its preview."""
    left = [unit for unit in units if unit.status is not StatusWord.DONE]
    text = sum(map(_estimate, left))
    if not text:
        return ""
    tokens = text + len(left) * prompt_tokens(Step(step.id))
    spent = root.spent
    per_token = float(spent.cost_usd) / spent.input_tokens if spent.input_tokens else 0.0
    money = f", {dollars(per_token * tokens)}" if per_token else ""
    calls = counted(len(left), "call")
    return f" A retry costs about {calls}, {thousands(tokens)} input tokens{money}."


def thousands(number: int) -> str:
    """Return `840`, `7.6k`, `3.1M`."""
    if number < 1_000:
        return str(number)
    if number < 999_950:
        return f"{number / 1_000:.1f}k"
    return f"{number / 1_000_000:.1f}M"


def dollars(amount: float) -> str:
    """Return `$0.021`, `less than $0.001`, or `$0` if nothing was spent."""
    if not amount:
        return "$0"
    return f"${amount:.3f}" if amount >= 0.0005 else "less than $0.001"


def cost(node: Node) -> str:
    """Return the tokens and the cost of a node: `61.2k tokens, $0.021`."""
    spent = node.spent
    tokens = spent.input_tokens + spent.output_tokens + spent.thinking_tokens
    money = f", {dollars(float(spent.cost_usd))}" if spent.cost_usd else ""
    return f"{thousands(tokens)} tokens{money}"
