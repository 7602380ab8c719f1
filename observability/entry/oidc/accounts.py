"""The user of an identity: found by issuer and subject, created at the first log-in.

An e-mail address or a user name never finds a user: the provider may let its users choose both.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from observability.audit import log
from observability.audit.actor import acting_as
from observability.entry.oidc.refused import LogInRefusal, LogInRefusedError
from observability.models import FederatedIdentity
from observability.permissions import Role

PROVIDER = "identity provider"
"""The audit's name for who changes users and roles at a log-in; no user can have this name."""
_NOT_OF_NAMES = re.compile(r"[^\w.@+-]+")
_LONGEST_NAME = 100
_RESERVED = {log.ANONYMOUS, log.SCHEDULER}
"""The audit's names of actors that are no users, where a user name could be the same."""


@dataclass(frozen=True, kw_only=True)
class VerifiedIdentity:
    """What a verified token says about a person."""

    issuer: str
    subject: str
    wanted_name: str
    roles: frozenset[Role]
    has_second_factor: bool


def account_of(identity: VerifiedIdentity) -> User:
    """Return the user of an identity with the roles set. Raises LogInRefusedError.

    A user who has left all groups is refused, and loses the roles.
    """
    user, refusal = _settled(identity)
    if refusal is not None or user is None:
        raise LogInRefusedError(refusal or LogInRefusal.NO_ROLE)
    return user


# Another log-in at the same time can take the wanted name, then create the same user. The third
# attempt finds that user.
@retry(retry=retry_if_exception_type(IntegrityError), stop=stop_after_attempt(4), reraise=True)
def _settled(identity: VerifiedIdentity) -> tuple[User | None, LogInRefusal | None]:
    with transaction.atomic(), acting_as(PROVIDER):
        known = (
            FederatedIdentity.objects.select_for_update(of=("self",))
            .select_related("user")
            .filter(issuer=identity.issuer, subject=identity.subject)
            .first()
        )
        user = None if known is None else known.user
        refusal = _refusal_of(user, identity)
        if refusal is None and user is None:
            user = _created(identity)
        if user is not None and refusal in {None, LogInRefusal.NO_ROLE}:
            _set_roles(user, identity.roles)
        if user is not None and refusal is not None:
            log.record(
                log.ANONYMOUS,
                "log_in",
                target_kind="user",
                target_id=user.pk,
                result=log.AuditResult.REFUSED,
                facts={"username": user.username, "code": refusal.value},
            )
        return user, refusal


def _refusal_of(user: User | None, identity: VerifiedIdentity) -> LogInRefusal | None:
    if not identity.has_second_factor:
        return LogInRefusal.SECOND_FACTOR
    if user is not None and not user.is_active:
        return LogInRefusal.DEACTIVATED
    if user is not None and user.is_superuser:
        return LogInRefusal.SUPERUSER
    return None if identity.roles else LogInRefusal.NO_ROLE


def _created(identity: VerifiedIdentity) -> User:
    user = User.objects.create_user(_free_name(identity))
    FederatedIdentity.objects.create(issuer=identity.issuer, subject=identity.subject, user=user)
    return user


def _free_name(identity: VerifiedIdentity) -> str:
    """Return the name that the provider gives, or a longer one if another user has it."""
    digest = hashlib.sha256(f"{identity.issuer}\n{identity.subject}".encode()).hexdigest()
    wanted = _NOT_OF_NAMES.sub("-", User.normalize_username(identity.wanted_name)).strip("-")
    wanted = wanted[:_LONGEST_NAME]
    if not wanted:
        return f"user-{digest[:12]}"
    taken = User.objects.filter(username__iexact=wanted).exists()
    return f"{wanted}-{digest[:12]}" if taken or wanted.lower() in _RESERVED else wanted


def _set_roles(user: User, roles: frozenset[Role]) -> None:
    """Give the user exactly these roles. Groups that are no role stay."""
    held = set(user.groups.filter(name__in=list(Role)).values_list("name", flat=True))
    wanted = {role.value for role in roles}
    user.groups.remove(*Group.objects.filter(name__in=held - wanted))
    user.groups.add(*Group.objects.filter(name__in=wanted - held))
    if user.is_staff != bool(roles):
        user.is_staff = bool(roles)
        user.save(update_fields=["is_staff"])
