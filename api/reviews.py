"""The state of the reviews of a client's records. The API decides nothing: people do."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import P, QueryEx, Router

from api.access import BearerToken, owner_of
from api.openapi import ANSWERS
from api.pagination import DEFAULT, Cursor, Limit, cursor_of, place_of_rows
from api.schemas import ReviewsPage
from api.scopes import TokenScope
from api.states import review_state
from medproc.reading import reading
from observability.listing.pagination import sifted_page
from pipeline.models import ReviewStatus, ShellFile

router = Router(tags=["reviews"])

READ = 10_000
"""Records that are examined for a page: not each record has a review yet."""


@router.get(
    "",
    auth=BearerToken(TokenScope.REVIEWS),
    response={200: ReviewsPage, **ANSWERS.listed},
    operation_id="list_reviews",
    summary="List the reviews of the client's records",
)
def listed(
    request: HttpRequest,
    status: QueryEx[ReviewStatus | None, P(description="Only reviews in this state.")] = None,
    limit: Limit = DEFAULT,
    cursor: Cursor = None,
) -> ReviewsPage:
    """Return reviews by the submission of their records, newest first.

    A page can have fewer reviews than the limit; `next_cursor` decides whether more follow.
    """
    place = place_of_rows(cursor)
    rows = ShellFile.objects.select_related("review_item").only("created_at", "review_item")
    own = rows.filter(owner=owner_of(request))

    def sieve(found: QuerySet[ShellFile, ShellFile]) -> QuerySet[ShellFile, ShellFile]:
        asked = {"review_item__status": status} if status else {"review_item__isnull": False}
        return found.filter(**asked)

    with reading():
        page = sifted_page(own, sieve, "created_at", place, limit, READ)
    return ReviewsPage(
        items=[review_state(each.review_item) for each in page.rows],
        next_cursor=cursor_of(page.next_place),
    )
