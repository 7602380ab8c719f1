"""The verbs about a queue or a provider: what each will do, who may, and how it is done.

Imports the pipeline's services, rights and the audit. A table, so that pages, tests and the matrix
of roles read the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from observability.audit import log
from observability.permissions import Right
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.core.labels import PASS_TITLES, counted
from pipeline.core.states import IncidentState, Step
from pipeline.models import Incident, Pause
from pipeline.operations import services
from pipeline.operations.reasons import stated
from pipeline.providers.factory import NAMES

Act = Callable[[str, str, str], str]
"""From target, reason and user's name to what was done, in words. Raises UserError."""


@dataclass(frozen=True, kw_only=True)
class Verb:
    """One verb about one thing."""

    name: str
    title: str
    target_kind: str
    right: Right
    effect: str
    """What will happen, in a sentence."""
    act: Act


def _pause(target: str, reason: str, by: str) -> str:
    services.queue_pause(Step(target), reason=reason, by=by)
    return "paused"


def _resume(target: str, reason: str, by: str) -> str:
    done = services.queue_resume(Step(target), reason=reason, by=by)
    return f"resumed; {done.released} released"


def _pause_provider(target: str, reason: str, by: str) -> str:
    provider, model = of_provider(target)
    services.provider_pause(provider, model, reason=reason, by=by)
    return "paused"


def _resume_provider(target: str, reason: str, by: str) -> str:
    provider, model = of_provider(target)
    done = services.provider_resume(provider, model, reason=reason, by=by)
    ended = counted(done.pauses, "pause") + " and " + counted(done.incidents, "incident")
    return f"resumed; {ended} ended, {done.released} released"


VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb(
            name="pause",
            title="Pause",
            target_kind="queue",
            right=Right.PAUSE,
            effect="Nothing of this pass is begun any more, on any host. What runs goes on to its"
            " end; what waits is parked as workers come to it.",
            act=_pause,
        ),
        Verb(
            name="resume",
            title="Resume",
            target_kind="queue",
            right=Right.RESUME,
            effect="The hold on this pass ends, and what it has parked goes back in line.",
            act=_resume,
        ),
        Verb(
            name="pause-provider",
            title="Pause",
            target_kind="provider",
            right=Right.PAUSE,
            effect="No pass that asks it is begun any more, on any host, and running steps start"
            " no more calls; calls in flight are kept. What waits is parked as workers come to it.",
            act=_pause_provider,
        ),
        Verb(
            name="resume-provider",
            title="Resume",
            target_kind="provider",
            right=Right.RESUME,
            effect="Its pauses end, its open incidents are closed, its gate opens, and what they"
            " have parked goes back in line. If it still fails, an incident opens again.",
            act=_resume_provider,
        ),
    )
}


def perform(
    verb: Verb, target: str, *, reason: str, actor: AbstractBaseUser | AnonymousUser
) -> str:
    """Do it and write it down, refusals too; return what was done. Raises UserError."""
    with log.deed(
        actor, verb.name, target_kind=verb.target_kind, target_id=target, reason=reason
    ) as facts:
        done = verb.act(target, stated(reason), actor.get_username())
        facts["message"] = done
    return done


def applies(verb: Verb, target: str) -> bool:
    """Whether the target stands so that the verb does something."""
    if verb.target_kind == "queue":
        is_paused = Pause.objects.filter(queue=target, ended_at=None).exists()
        return is_paused == (verb.name == "resume")
    provider, model = of_provider(target)
    of = {"provider": provider} | ({} if model is None else {"model": model})
    is_paused = Pause.objects.filter(provider=provider, model=model, ended_at=None).exists()
    if verb.name == "pause-provider":
        return not is_paused
    return is_paused or Incident.objects.filter(state=IncidentState.OPEN, **of).exists()


def target_of(verb: Verb, text: str) -> str:
    """Return the target as it is kept. Raises UserError where it is none."""
    try:
        if verb.target_kind == "provider":
            of_provider(text)
            return text
        return Step(text).value
    except ValueError:
        raise UserError(f"that names no {verb.target_kind}", code=UserErrorCode.NOT_FOUND) from None


def of_provider(target: str) -> tuple[str, str | None]:
    """Return provider and model of `gemini` or `gemini:model`. Raises ValueError."""
    provider, _, model = target.partition(":")
    if provider not in NAMES or not re.fullmatch(r"[\w.-]{0,100}", model):
        raise ValueError
    return provider, model or None


def named(verb: Verb, target: str) -> str:
    """Say the target to people."""
    if verb.target_kind == "queue":
        return f"the queue of {PASS_TITLES[Step(target)]}"
    return f"the provider {target.replace(':', ' ')}"
