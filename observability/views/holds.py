"""Holds of queues and providers: a confirmation page, then the action with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from observability.actions.holds import HOLD_ACTIONS, HoldAction, applies, named, perform, target_of
from observability.metrics.queue_depths import Depth, queue
from observability.views.decorators import RequestedAction, action, page
from observability.views.render import render_page
from pipeline.core.errors import UserError
from pipeline.core.labels import PASS_TITLES, StatusWord
from pipeline.core.states import IncidentState
from pipeline.models import Incident, Pause
from pipeline.operations.liveness import last_task_runs
from pipeline.operations.reasons import ReasonError
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import named_provider


@page()
def confirm(request: HttpRequest, name: str) -> HttpResponse:
    """Show the effect of an action on `?target=`."""
    chosen = _named(name)
    if not request.user.has_perm(chosen.right.permission):
        raise PermissionDenied
    return _confirm(request, chosen, request.GET.get("target", ""))


def _asked(request: HttpRequest, name: str) -> RequestedAction:
    chosen = _named(name)
    try:
        target = target_of(chosen, request.POST.get("target", ""))
    except UserError:
        target = ""
    return RequestedAction(
        action=chosen.name, right=chosen.right, target_kind=chosen.target_kind, target_id=target
    )


@action(_asked)
def perform_action(request: HttpRequest, name: str) -> HttpResponse:
    """Perform the action and show the queues; after a refusal, show the confirmation page again."""
    chosen = _named(name)
    text, reason = request.POST.get("target", ""), request.POST.get("reason", "")
    try:
        target = target_of(chosen, text)
        said = perform(chosen, target, reason=reason, actor=request.user)
    except UserError as error:
        return _confirm(request, chosen, text, error=error, reason=reason)
    messages.success(request, f"{named(chosen, target)}: {said}.")
    return redirect("admin:queues")


@page()
def queues(request: HttpRequest) -> HttpResponse:
    """List the queues: the waiting jobs, the age of the oldest, and the pauses."""
    found = queue()
    paused = {
        pause.queue: pause
        for pause in Pause.objects.filter(ended_at=None, queue__isnull=False)[:50]
    }
    return render_page(
        request,
        "console/queues.html",
        "Queues",
        rows=[
            (
                step.value,
                PASS_TITLES[step],
                {word.value: of.get(word, Depth()) for word in StatusWord},
                paused.get(step.value),
            )
            for step, of in found.by_pass.items()
        ],
        providers=_providers(),
        ticks=last_task_runs(),
    )


@dataclass(frozen=True, kw_only=True)
class _Provider:
    """A provider, or one model of a provider, and its pause and incidents."""

    target: str
    pause: Pause | None
    incidents: Sequence[Incident]


def _providers() -> list[_Provider]:
    """Return the configured provider, and each other provider with a pause or an incident."""
    pauses = list(Pause.objects.filter(ended_at=None, provider__isnull=False)[:50])
    incidents = list(Incident.objects.filter(state=IncidentState.OPEN).defer("evidence")[:50])
    asked = named_provider(ProviderConfig.of_settings())
    targets = [asked.provider, f"{asked.provider}:{asked.model}"]
    targets += [_target(each) for each in pauses] + [_target(each) for each in incidents]
    return [
        _Provider(
            target=target,
            pause=next((each for each in pauses if _target(each) == target), None),
            incidents=[each for each in incidents if _target(each) == target],
        )
        for target in dict.fromkeys(targets)
    ]


def _target(held: Pause | Incident) -> str:
    return f"{held.provider}:{held.model}" if held.model else str(held.provider)


def _named(name: str) -> HoldAction:
    if name not in HOLD_ACTIONS:
        raise Http404
    return HOLD_ACTIONS[name]


def _confirm(
    request: HttpRequest,
    chosen: HoldAction,
    text: str,
    *,
    error: UserError | None = None,
    reason: str = "",
) -> HttpResponse:
    try:
        target = target_of(chosen, text)
    except UserError:
        raise Http404 from None
    return render_page(
        request,
        "console/confirm.html",
        f"{chosen.title} {named(chosen, target)}",
        action=chosen,
        target=target,
        is_open=applies(chosen, target),
        status=HTTPStatus.BAD_REQUEST if isinstance(error, ReasonError) else HTTPStatus.OK,
        problem=error.message if error else "",
        reason=reason,
    )
