"""Version 1 of the HTTP API: its routers, its errors, and its OpenAPI text."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from api import records, results, reviews
from api.openapi import with_problems
from api.problems import problem_of
from api.webhooks import views as webhooks

DESCRIPTION = (
    "Submit medical records and read their results. A client sees only its own records. Every"
    " error is `application/problem+json` with a named `code`; docs/errors.md explains the codes."
)


class MedprocApi(NinjaAPI):
    """The framework's API with our errors; its OpenAPI text is made once."""

    @cached_property
    def _text(self) -> dict[str, Any]:
        return with_problems(dict(super().get_openapi_schema()))

    def get_openapi_schema(self, **kwargs: Any) -> Any:
        """Return the OpenAPI text."""
        return self._text


api = MedprocApi(
    title="medproc",
    version="1",
    description=DESCRIPTION,
    urls_namespace="api",
    docs_url=None,
    openapi_url="/openapi.json",
)
api.add_router("/records", records.router)
api.add_router("/records", results.router)
api.add_router("/reviews", reviews.router)
api.add_router("/webhooks", webhooks.router)


def _answer(request: HttpRequest, error: Any) -> HttpResponse:
    return problem_of(request, error)


for _kind in (Exception, Http404, HttpError, ValidationError):
    api.add_exception_handler(_kind, _answer)
