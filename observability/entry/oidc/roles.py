"""The roles of a user, from the groups that the identity provider names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from observability.permissions import Role


def groups_of(claims: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the groups in the claims, or None if the claim is absent.

    OIDC_GROUPS_CLAIM is the name of a claim, which may hold dots, or a path through nested claims.
    """
    name = settings.OIDC_GROUPS_CLAIM
    found: Any = claims.get(name)
    if found is None:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    if found is None:
        return None
    values = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    return frozenset(each for each in values if isinstance(each, str))


def roles_of(groups: frozenset[str]) -> frozenset[Role]:
    """Return the roles that OIDC_ROLES gives to the groups."""
    pairs = (pair.rpartition("=") for pair in settings.OIDC_ROLES)
    return frozenset(Role(role) for group, _, role in pairs if group in groups)
