"""`manage.py api_client create|token|revoke|list`: the clients of the HTTP API and their tokens.

A token is printed once, when it is made, and is stored nowhere.
"""

from __future__ import annotations

import argparse
import json
import re
from datetime import timedelta
from typing import Any

from django.utils import timezone

from api.clients import client_create, client_of, issue_token, revoke_tokens
from api.models import ApiClient, ApiToken
from api.scopes import SCOPE_NAMES, TokenScope
from observability.audit.actor import command_line
from observability.management.audited_command import one_line
from pipeline.management.plain_command import PlainCommand

_DAYS = re.compile(r"([1-9]\d{0,3})d", re.ASCII)


class Command(PlainCommand):
    """Manage the clients of the HTTP API."""

    help = (
        "Create a client of the HTTP API, give a client another token, revoke tokens, or list the"
        " clients. A token is printed once. Scopes: "
        + "; ".join(f"{scope} ({name})" for scope, name in SCOPE_NAMES.items())
        + "."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the actions and their options."""
        actions = parser.add_subparsers(dest="act", required=True, metavar="ACTION")
        for name, says in (
            ("create", "create a client and its first token"),
            ("token", "create another token; the earlier tokens stay valid"),
            ("revoke", "revoke one token, or all tokens of a client"),
            ("list", "list clients and tokens"),
        ):
            action = actions.add_parser(name, help=says)
            if name != "list":
                action.add_argument("name", metavar="CLIENT", help="the client's name")
            if name in {"create", "token"}:
                action.add_argument(
                    "--scopes",
                    type=_scopes,
                    metavar="A,B",
                    default=tuple(TokenScope),
                    help="the scopes, separated by commas (default: all)",
                )
                action.add_argument(
                    "--expires", type=_days, metavar="90d", help="days until the token expires"
                )
            if name == "revoke":
                action.add_argument("--token", metavar="PREFIX", help="the prefix of one token")
            action.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError with one line if the action cannot be carried out."""
        with one_line():
            getattr(self, f"_{options['act']}")(options)

    def _create(self, options: dict[str, Any]) -> None:
        self._issue(client_create(options["name"], by=command_line()), options)

    def _token(self, options: dict[str, Any]) -> None:
        self._issue(client_of(options["name"]), options)

    def _issue(self, client: ApiClient, options: dict[str, Any]) -> None:
        expires_at = timezone.now() + options["expires"] if options["expires"] else None
        row, token = issue_token(
            client, options["scopes"], expires_at=expires_at, by=command_line()
        )
        if options["json"]:
            self.stdout.write(json.dumps({**_as_json(row), "token": token}))
            return
        self.stderr.write(
            f"Token {row.prefix} of {client.name}, valid {_until(row)}. It is shown only now:"
        )
        self.stdout.write(token)

    def _revoke(self, options: dict[str, Any]) -> None:
        client = client_of(options["name"])
        revoked = revoke_tokens(client, options["token"], by=command_line())
        if options["json"]:
            self.stdout.write(json.dumps({"client": client.name, "revoked": revoked}))
            return
        self.stdout.write(f"Revoked {', '.join(revoked)} of {client.name}.")

    def _list(self, options: dict[str, Any]) -> None:
        tokens = ApiToken.objects.select_related("client").order_by("client__name", "created_at")
        if options["json"]:
            for row in tokens:
                self.stdout.write(json.dumps(_as_json(row)))
            return
        for row in tokens:
            used = f"{row.last_used_at:%Y-%m-%d %H:%M} UTC" if row.last_used_at else "never"
            self.stdout.write(
                f"{row.client.name}  {row.prefix}  {_state(row)}  last used {used}"
                f"  {','.join(row.scopes)}"
            )


def _state(row: ApiToken) -> str:
    if row.revoked_at is not None:
        return f"revoked {row.revoked_at:%Y-%m-%d %H:%M} UTC"
    if row.expires_at is not None and row.expires_at <= timezone.now():
        return f"expired {row.expires_at:%Y-%m-%d %H:%M} UTC"
    return f"valid {_until(row)}"


def _until(row: ApiToken) -> str:
    return f"until {row.expires_at:%Y-%m-%d %H:%M} UTC" if row.expires_at else "without an end"


def _as_json(row: ApiToken) -> dict[str, Any]:
    times = ("created_at", "expires_at", "revoked_at", "last_used_at")
    row.refresh_from_db(fields=times)
    return {
        "client": row.client.name,
        "prefix": row.prefix,
        "scopes": row.scopes,
        **{name: at and at.isoformat() for name in times for at in [getattr(row, name)]},
    }


def _scopes(text: str) -> tuple[TokenScope, ...]:
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in list(TokenScope)]:
        raise argparse.ArgumentTypeError(
            f"{', '.join(map(repr, unknown))}: the scopes are {', '.join(TokenScope)}"
        )
    return tuple(map(TokenScope, names))


def _days(text: str) -> timedelta:
    found = _DAYS.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError("give a number of days, such as 90d")
    return timedelta(days=int(found[1]))
