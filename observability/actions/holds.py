"""The actions on a queue or a provider: the effect, the permission and the function of each.

One table, so that the pages, the tests and the table of roles use the same facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from observability.audit import log
from observability.permissions import Right
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.core.labels import PASS_TITLES, counted
from pipeline.core.states import IncidentState, Step
from pipeline.models import Incident, Pause
from pipeline.operations import operator_actions
from pipeline.operations.reasons import stated
from pipeline.providers.factory import NAMES

RunHold = Callable[[str, str, str], str]
"""From target, reason and user name to the result in words. Raises UserError."""


@dataclass(frozen=True, kw_only=True)
class HoldAction:
    """One action on one target."""

    name: str
    title: str
    target_kind: str
    right: Right
    effect: str
    """A sentence for the confirmation page: the effect of the action."""
    run: RunHold


def _pause(target: str, reason: str, by: str) -> str:
    operator_actions.queue_pause(Step(target), reason=reason, by=by)
    return "paused"


def _resume(target: str, reason: str, by: str) -> str:
    done = operator_actions.queue_resume(Step(target), reason=reason, by=by)
    return f"resumed; {done.released} released"


def _pause_provider(target: str, reason: str, by: str) -> str:
    provider, model = of_provider(target)
    operator_actions.provider_pause(provider, model, reason=reason, by=by)
    return "paused"


def _resume_provider(target: str, reason: str, by: str) -> str:
    provider, model = of_provider(target)
    done = operator_actions.provider_resume(provider, model, reason=reason, by=by)
    ended = counted(done.pauses, "pause") + " and " + counted(done.incidents, "incident")
    return f"resumed; {ended} ended, {done.released} released"


HOLD_ACTIONS: dict[str, HoldAction] = {
    action.name: action
    for action in (
        HoldAction(
            name="pause",
            title="Pause",
            target_kind="queue",
            right=Right.PAUSE,
            effect="No job of this pass starts any more, on any host. Running jobs continue to"
            " their end; waiting jobs are parked when a worker reaches them.",
            run=_pause,
        ),
        HoldAction(
            name="resume",
            title="Resume",
            target_kind="queue",
            right=Right.RESUME,
            effect="The hold on this pass ends, and its parked jobs go back to the queue.",
            run=_resume,
        ),
        HoldAction(
            name="pause-provider",
            title="Pause",
            target_kind="provider",
            right=Right.PAUSE,
            effect="No pass that calls this provider starts any more, on any host. Running steps"
            " start no more calls and keep the calls in flight. Waiting jobs are parked when a"
            " worker reaches them.",
            run=_pause_provider,
        ),
        HoldAction(
            name="resume-provider",
            title="Resume",
            target_kind="provider",
            right=Right.RESUME,
            effect="The provider's pauses end, its open incidents are closed, its rate limiter"
            " opens, and its parked jobs go back to the queue. If calls still fail, an incident"
            " opens again.",
            run=_resume_provider,
        ),
    )
}


def perform(action: HoldAction, target: str, *, reason: str, actor: log.RequestUser) -> str:
    """Run an action and audit it, refusals too; return the result in words. Raises UserError."""
    with log.audited(
        actor, action.name, target_kind=action.target_kind, target_id=target, reason=reason
    ) as facts:
        done = action.run(target, stated(reason), actor.get_username())
        facts["message"] = done
    return done


def applies(action: HoldAction, target: str) -> bool:
    """Return whether the action would change the target's present state."""
    if action.target_kind == "queue":
        is_paused = Pause.objects.filter(queue=target, ended_at=None).exists()
        return is_paused == (action.name == "resume")
    provider, model = of_provider(target)
    of = {"provider": provider} | ({} if model is None else {"model": model})
    is_paused = Pause.objects.filter(provider=provider, model=model, ended_at=None).exists()
    if action.name == "pause-provider":
        return not is_paused
    return is_paused or Incident.objects.filter(state=IncidentState.OPEN, **of).exists()


def target_of(action: HoldAction, text: str) -> str:
    """Return the target in the form to store. Raises UserError for an invalid target."""
    try:
        if action.target_kind == "provider":
            of_provider(text)
            return text
        return Step(text).value
    except ValueError:
        raise UserError(
            f"there is no such {action.target_kind}", code=UserErrorCode.NOT_FOUND
        ) from None


def of_provider(target: str) -> tuple[str, str | None]:
    """Return provider and model of `gemini` or `gemini:model`. Raises ValueError."""
    provider, _, model = target.partition(":")
    if provider not in NAMES or not re.fullmatch(r"[\w.-]{0,100}", model):
        raise ValueError
    return provider, model or None


def named(action: HoldAction, target: str) -> str:
    """Describe the target for people."""
    if action.target_kind == "queue":
        return f"the queue of {PASS_TITLES[Step(target)]}"
    return f"the provider {target.replace(':', ' ')}"
