"""The review of one record: its page, and the decisions of the reviewer who holds it.

A page changes nothing: a reviewer claims a review by a form. Each action is a form with a token of
its own, answers with a redirect, and works without a script. No URL contains a value of the record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from medproc.reading import reading
from medproc.timing import scaled
from observability.actions import reviews
from observability.actions.reviews import REVIEW_ITEM, reviewer_of
from observability.permissions import Right
from observability.phi.images import ticket
from observability.phi.review import ReviewPage, review_page
from observability.phi.review_changes import changed_entity, changed_waiting
from observability.phi.review_fields import ADDED, CATEGORIES, LABELS, changes_of, missed_of
from observability.phi.review_words import DONE, REJECTIONS
from observability.views.decorators import (
    PhiResponse,
    RequestedAction,
    action,
    phi,
    written_down,
)
from observability.views.render import render_page
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models import DecisionAction, Entity, ReviewItem, ReviewStatus

CLAIMING = frozenset({"accept", "correct", "reject", "accept-all", "add", "move"})
"""The actions that claim a free review first, if their form asks for it."""
_ANSWERS = {
    UserErrorCode.VALUE_INVALID: HTTPStatus.BAD_REQUEST,
    UserErrorCode.REASON_INVALID: HTTPStatus.BAD_REQUEST,
}
"""The status of a refusal; every other refusal is a conflict with the state."""

_STATE = re.compile(r"[0-9]+-[-0-9a-f]+", re.ASCII)


@phi
def review(request: HttpRequest, item_id: UUID) -> PhiResponse:
    """Show a review with one selected entity (`?entity=`), by default the first that waits."""
    if not request.user.has_perm(Right.REVIEW.permission):
        raise PermissionDenied
    return _shown(request, item_id, _uuid(request.GET.get("entity", "")))


@dataclass(frozen=True, kw_only=True)
class _CarriedOut:
    """What an action has done, and the page that follows."""

    said: str
    item_id: UUID
    entity_id: UUID | None = None
    """The entity that is selected next."""
    decided: UUID | None = None
    """The entity of the decision, for the way back."""


def _asked(request: HttpRequest, item_id: UUID, name: str) -> RequestedAction:
    if name not in ACTS:
        raise Http404
    return RequestedAction(
        action=f"review {name}", right=Right.REVIEW, target_kind=REVIEW_ITEM, target_id=item_id
    )


@action(_asked)
def review_act(request: HttpRequest, item_id: UUID, name: str) -> HttpResponse:
    """Carry out an action; after a refusal, show the page again with what was typed."""
    try:
        # The page of a review that the reviewer does not hold says that a decision claims it.
        if request.POST.get("claim") == "1" and name in CLAIMING:
            reviews.take(request.user, item_id)
        done = ACTS[name](request, item_id)
    except UserError as error:
        if error.code is UserErrorCode.NOT_FOUND:
            raise Http404 from None
        return _refused(request, item_id, name, error)
    if done is None:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    asked = {"entity": done.entity_id, "said": done.said, "last": done.decided}
    query = urlencode({key: str(each) for key, each in asked.items() if each})
    return redirect(f"{reverse('admin:review', args=[done.item_id])}?{query}")


def _refused(request: HttpRequest, item_id: UUID, name: str, error: UserError) -> HttpResponse:
    status = _ANSWERS.get(error.code, HTTPStatus.CONFLICT)
    if name == "renew":
        return HttpResponse(f"{error.message}.", "text/plain; charset=utf-8", status)
    if not request.user.has_perm(Right.READ_PHI.permission):
        raise PermissionDenied
    posted = request.POST.dict()
    chosen = _uuid(posted.get("entity", ""))
    problem = error.message
    if error.code is UserErrorCode.REVIEW_CHANGED:
        problem = _changed(request, item_id, name, posted)
        # The page shows the new state, so its forms carry the new state.
        posted = {**posted, "shown": "", "shown_unflagged": ""}
    shown = _shown(
        request,
        item_id,
        chosen,
        problem=problem,
        status=status,
        form=name,
        posted=posted,
        wrong=error.field,
    )
    response = written_down(request, shown)
    # The address of a form is no page, so the browser keeps the address that it has.
    response["HX-Replace-Url"] = "false"
    return response


def _changed(request: HttpRequest, item_id: UUID, name: str, posted: Mapping[str, str]) -> str:
    """Say what has changed since the page was shown."""
    me = reviewer_of(request.user)
    if name == "accept-all":
        return changed_waiting(_item(item_id).shell_file_id, me)
    return changed_entity(_uuid(posted.get("entity", "")), posted.get("shown", ""), me)


def _decide(decision: DecisionAction) -> Callable[[HttpRequest, UUID], _CarriedOut]:
    def decides(request: HttpRequest, item_id: UUID) -> _CarriedOut:
        posted = request.POST.dict()
        entity = _entity(posted)
        reviews.decide(
            request.user,
            item_id,
            entity,
            decision,
            token=_token(posted),
            changes=changes_of(posted) if decision is DecisionAction.CORRECT else None,
            reason=_reason(posted),
            shown=_state(posted, "shown"),
        )
        return _next(item_id, decision, posted)

    return decides


def _accept_all(request: HttpRequest, item_id: UUID) -> _CarriedOut:
    posted = request.POST.dict()
    shown = _state(posted, "shown_unflagged")
    reviews.accept_all_unflagged(request.user, item_id, token=_token(posted), shown=shown)
    return _CarriedOut(said="accept-all", item_id=item_id)


def _add(request: HttpRequest, item_id: UUID) -> _CarriedOut:
    posted = request.POST.dict()
    item = _item(item_id)
    missed = missed_of(item.shell_file_id, posted)
    added = reviews.add_missed_entity(request.user, item_id, missed, token=_token(posted))
    return _CarriedOut(said="add", item_id=item_id, entity_id=added.entity_id)


def _move(request: HttpRequest, item_id: UUID) -> _CarriedOut:
    posted = request.POST.dict()
    encounter = _uuid(posted.get("encounter", ""))
    if encounter is None:
        raise UserError("choose an encounter", code=UserErrorCode.VALUE_INVALID)
    reviews.move_to_encounter(
        request.user,
        item_id,
        _entity(posted),
        encounter,
        token=_token(posted),
        shown=_state(posted, "shown"),
    )
    return _next(item_id, DecisionAction.MOVE, posted)


def _claim(request: HttpRequest, item_id: UUID) -> _CarriedOut:
    reviews.take(request.user, item_id)
    return _CarriedOut(
        said="claim", item_id=item_id, entity_id=_uuid(request.POST.get("entity", ""))
    )


def _renew(request: HttpRequest, item_id: UUID) -> None:
    reviews.keep(request.user, item_id)


def _give_back(request: HttpRequest, item_id: UUID) -> _CarriedOut:
    reviews.give_back(request.user, item_id)
    return _CarriedOut(said="give-back", item_id=item_id)


def _skip(request: HttpRequest, item_id: UUID) -> _CarriedOut:
    reviews.give_back(request.user, item_id, skips=True)
    return _onward(request, item_id, "skip")


def _close(request: HttpRequest, item_id: UUID) -> _CarriedOut:
    status = reviews.close(request.user, item_id)
    return _onward(request, item_id, "close" if status is ReviewStatus.CLOSED else "round")


def _reopen(request: HttpRequest, item_id: UUID) -> _CarriedOut:
    reviews.reopen(request.user, item_id, reason=request.POST.get("reason", ""))
    return _CarriedOut(said="reopen", item_id=item_id)


ACTS: Mapping[str, Callable[[HttpRequest, UUID], _CarriedOut | None]] = {
    "accept": _decide(DecisionAction.ACCEPT),
    "correct": _decide(DecisionAction.CORRECT),
    "reject": _decide(DecisionAction.REJECT),
    "accept-all": _accept_all,
    "add": _add,
    "move": _move,
    "claim": _claim,
    "renew": _renew,
    "give-back": _give_back,
    "skip": _skip,
    "close": _close,
    "reopen": _reopen,
}
"""The actions of a review by the last part of their URL; None answers without a page."""


def _shown(
    request: HttpRequest,
    item_id: UUID,
    chosen: UUID | None,
    *,
    problem: str = "",
    status: HTTPStatus = HTTPStatus.OK,
    form: str = "",
    posted: Mapping[str, str] | None = None,
    wrong: str = "",
) -> PhiResponse:
    me = reviewer_of(request.user)
    last = _uuid(request.GET.get("last", ""))
    added = posted or {} if form == "add" else {}
    with reading():
        try:
            view = review_page(
                item_id, me, chosen, last=last, posted=posted if form == "correct" else None
            )
        except (ReviewItem.DoesNotExist, Entity.DoesNotExist):
            raise Http404 from None
        response = render_page(
            request,
            "console/review.html",
            f"Review of record {str(view.item.shell_file_id)[:8]}",
            status=status,
            view=view,
            record_id=view.item.shell_file_id,
            image=_image(request, view),
            tokens=[str(uuid4()) for _ in range(6)],
            problem=problem,
            form=form,
            wrong=wrong if form == "add" else "",
            part="v",
            unheld=_unheld(view),
            encounter=_encounter_number(view, added),
            posted=posted or {},
            shown=(posted or {}).get("shown") or (view.selected and view.selected.state) or "",
            shown_unflagged=(posted or {}).get("shown_unflagged") or view.unflagged_state,
            done=DONE.get(request.GET.get("said", ""), ""),
            last=last,
            rejections=REJECTIONS,
            categories=CATEGORIES,
            category=added.get("category") or _category(view),
            add_fields=[(each, LABELS.get(each, each), added.get(each, "")) for each in ADDED],
            renew_s=scaled(settings.REVIEW_CLAIM_S) / 3,
        )
    selected = view.selected and str(view.selected.entity.id)
    return PhiResponse(
        response=response,
        target_kind="record",
        target_id=view.item.shell_file_id,
        facts={"what": "review", "entity": selected, "entities": len(view.part.rows)},
    )


def _unheld(view: ReviewPage) -> str:
    """Say why a key of the page does nothing; empty for a reviewer who holds the review."""
    if view.is_mine:
        return ""
    if not view.is_open:
        return "Nothing was done: this review is closed; reopen it first."
    if view.is_second and view.is_first_reviewer:
        return "Nothing was done: another person does the second review of this record."
    if view.holder:
        return (
            f"Nothing was done: {view.holder} holds this review. When the claim has ended,"
            " load the page again and claim it first with the key h."
        )
    return "Nothing was done: claim this review first with the key h."


def _encounter_number(view: ReviewPage, added: Mapping[str, str]) -> int:
    """Return the number of the encounter that the form for a missed entity chooses."""
    given = added.get("encounter", "")
    if given.isdecimal() and len(given) < 6:
        return int(given)
    return view.selected.entity.healthcare_encounter.encounter_index if view.selected else 0


def _category(view: ReviewPage) -> str:
    return view.selected.entity.category if view.selected else ""


def _image(request: HttpRequest, view: ReviewPage) -> str:
    """Return the address of the image of the source, as part of this reading."""
    if view.source is None:
        return ""
    record_id, page = view.item.shell_file_id, view.source.page
    shown = ticket(str(request.user.pk), record_id, page)
    return f"{reverse('admin:page_image', args=[record_id, page])}?shown={shown}"


def _onward(request: HttpRequest, item_id: UUID, said: str) -> _CarriedOut:
    """Claim the next review; without one, return to the page of this one."""
    following = reviews.take_next(request.user, but=[item_id])
    if following is None:
        return _CarriedOut(said="none", item_id=item_id)
    return _CarriedOut(said=said, item_id=following)


def _next(item_id: UUID, decision: DecisionAction, posted: Mapping[str, str]) -> _CarriedOut:
    entity = _entity(posted)
    return _CarriedOut(
        said=decision.value,
        item_id=item_id,
        entity_id=_uuid(posted.get("next", "")) or entity,
        decided=entity,
    )


def _item(item_id: UUID) -> ReviewItem:
    found = ReviewItem.objects.filter(id=item_id).only("shell_file_id").first()
    if found is None:
        raise UserError("there is no such review", code=UserErrorCode.NOT_FOUND)
    return found


def _entity(posted: Mapping[str, str]) -> UUID:
    found = _uuid(posted.get("entity", ""))
    if found is None:
        raise UserError("the form names no entity", code=UserErrorCode.VALUE_INVALID)
    return found


def _token(posted: Mapping[str, str]) -> UUID:
    found = _uuid(posted.get("token", ""))
    if found is None:
        raise UserError("the form has no token", code=UserErrorCode.VALUE_INVALID)
    return found


def _state(posted: Mapping[str, str], name: str) -> str:
    """Return the state that the page showed; a form without a state is refused."""
    found = posted.get(name, "")
    if not _STATE.fullmatch(found):
        raise UserError(
            "the form does not say what it showed; open the review again",
            code=UserErrorCode.VALUE_INVALID,
        )
    return found


def _reason(posted: Mapping[str, str]) -> str:
    """Return the chosen reason, by its digit."""
    digit = posted.get("reason", "")
    known = {str(n): reason for n, reason in enumerate(REJECTIONS, start=1)}
    return known.get(digit, "")


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
