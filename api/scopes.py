"""The scopes of tokens: what a client may do with its own records."""

from __future__ import annotations

from enum import StrEnum


class TokenScope(StrEnum):
    """A permission of a token."""

    SUBMIT = "records:write"
    READ = "records:read"
    ACT = "records:act"
    RESULTS = "results:read"
    REVIEWS = "reviews:read"
    INCIDENTS = "incidents:read"
    WEBHOOKS = "webhooks:manage"


SCOPE_NAMES: dict[TokenScope, str] = {
    TokenScope.SUBMIT: "submit records",
    TokenScope.READ: "read the status and the drill-down of records, without PHI",
    TokenScope.ACT: "retry and cancel records",
    TokenScope.RESULTS: "read entities, results and exports: PHI, each reading is audited",
    TokenScope.REVIEWS: "read the state of reviews; decisions stay with people",
    TokenScope.INCIDENTS: "hear of incidents of the provider by a webhook",
    TokenScope.WEBHOOKS: "create, test and delete webhooks, and read and replay their deliveries",
}
