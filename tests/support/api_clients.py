"""Clients of the HTTP API for tests: a client with a token, and its requests."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.test import Client

from api.clients import client_create, issue_token
from api.models import ApiClient
from api.scopes import TokenScope

RECORDS = "/api/v1/records"


class ApiProgram(Client):
    """Django's test client with the token of an API client; checks CSRF as a server does."""

    def __init__(self, client: ApiClient, token: str) -> None:
        super().__init__(
            enforce_csrf_checks=True,
            raise_request_exception=False,
            headers={"Authorization": f"Bearer {token}"},
        )
        self.api_client = client
        self.token = token

    @property
    def owner(self) -> str:
        """The owner of the client's records."""
        return f"user:{self.api_client.user_id}"

    def submit(self, body: bytes, kind: str = "application/pdf", **headers: str) -> Any:
        """Submit a file as the body itself; `_` in the name of a header is a dash."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        # Django's client drops the type of an empty body.
        typed: dict[str, Any] = {"CONTENT_TYPE": kind}
        return self.post(RECORDS, body, content_type=kind, headers=named, **typed)


def a_program(
    name: str = "mercy", scopes: Collection[TokenScope] = tuple(TokenScope)
) -> ApiProgram:
    """Create an API client with a token."""
    client = client_create(name, by="a test")
    _, token = issue_token(client, scopes, expires_at=None, by="a test")
    return ApiProgram(client, token)
