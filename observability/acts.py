"""The verbs about one job or queue: what each will do, who may, and how it is done.

Imports the pipeline's services, rights and the audit. A table, so that pages, tests and the matrix
of roles read the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from observability import audit
from observability.rights import Right
from pipeline import services
from pipeline.errors import UserError
from pipeline.models import Job, Pause
from pipeline.states import JobStatus, Step
from pipeline.words import PASS_TITLES

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
    open_to: frozenset[JobStatus] = frozenset()
    """Statuses of a job that it applies to; the guard itself is in the service's UPDATE."""
    act: Act


def _cancel(target: str, reason: str, by: str) -> str:
    done = services.job_cancel(UUID(target), reason=reason, by=by)
    return "cancelled" if done.is_ended else "the running step was told; it ends within its grace"


def _requeue(target: str, reason: str, by: str) -> str:
    services.job_requeue(UUID(target), reason=reason, by=by)
    return "back in line"


def _release(target: str, reason: str, by: str) -> str:
    if not services.job_release([UUID(target)]):
        raise UserError("it is not parked any more")
    return "released"


def _pause(target: str, reason: str, by: str) -> str:
    services.queue_pause(Step(target), reason=reason, by=by)
    return "paused"


def _resume(target: str, reason: str, by: str) -> str:
    done = services.queue_resume(Step(target), reason=reason, by=by)
    return f"resumed; {done.released} released"


VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb(
            name="cancel",
            title="Cancel",
            target_kind="job",
            right=Right.CANCEL,
            effect="It asks for nothing more. What is complete stays; what is in flight is kept if"
            " it succeeds. A cancelled job can be retried.",
            open_to=frozenset({JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.PARKED}),
            act=_cancel,
        ),
        Verb(
            name="requeue",
            title="Requeue",
            target_kind="job",
            right=Right.REQUEUE,
            effect="The dead job goes back in line, and its crashes are counted anew. What has"
            " succeeded is not asked for again.",
            open_to=frozenset({JobStatus.DEAD}),
            act=_requeue,
        ),
        Verb(
            name="release",
            title="Release",
            target_kind="job",
            right=Right.RELEASE,
            effect="It goes back in line now, whatever it waits for. An incident or pause that"
            " still lasts parks it again.",
            open_to=frozenset({JobStatus.PARKED}),
            act=_release,
        ),
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
    )
}


def perform(
    verb: Verb, target: str, *, reason: str, actor: AbstractBaseUser | AnonymousUser
) -> str:
    """Do it and write it down, refusals too; return what was done. Raises UserError."""
    if not reason.strip():
        raise UserError("give a reason")
    try:
        done = verb.act(target, reason.strip(), actor.get_username())
    except UserError as error:
        _note(verb, target, actor, reason, audit.Result.REFUSED, error.message)
        raise
    _note(verb, target, actor, reason, audit.Result.DONE, done)
    return done


def applies(verb: Verb, target: str) -> bool:
    """Whether the target stands so that the verb does something."""
    if verb.target_kind == "job":
        return Job.objects.filter(id=target, status__in=verb.open_to).exists()
    is_paused = Pause.objects.filter(queue=target, ended_at=None).exists()
    return is_paused == (verb.name == "resume")


def target_of(verb: Verb, text: str) -> str:
    """Return the target as it is kept. Raises UserError where it is none."""
    try:
        return str(UUID(text)) if verb.target_kind == "job" else Step(text).value
    except ValueError:
        raise UserError(f"that names no {verb.target_kind}") from None


def named(verb: Verb, target: str) -> str:
    """Say the target to people."""
    if verb.target_kind == "queue":
        return f"the queue of {PASS_TITLES[Step(target)]}"
    return f"job {target[:8]}"


def _note(
    verb: Verb,
    target: str,
    actor: AbstractBaseUser | AnonymousUser,
    reason: str,
    result: audit.Result,
    said: str,
) -> None:
    audit.record(
        actor,
        verb.name,
        target_kind=verb.target_kind,
        target_id=target,
        reason=reason.strip(),
        result=result,
        facts={"said": said},
    )
