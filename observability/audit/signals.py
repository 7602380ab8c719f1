"""Audit rows for changes of users, groups and permissions, and for log-ins.

Signals are used so that the admin, a command and a shell are audited alike. A password change is
an event without content. `QuerySet.update` and plain SQL send no signals and are not audited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save
from django.dispatch import receiver
from django.http import HttpRequest

from observability.audit import log
from observability.audit.actor import actor

WATCHED: dict[type[Model], tuple[str, ...]] = {
    User: ("username", "is_active", "is_staff", "is_superuser", "password"),
    Group: ("name",),
}
"""The audited fields of each model; personal facts other than the user name are excluded."""
THROUGH = "log_in_through"
"""Key of the session. Its value says what identified the user, if not a password."""
_BEFORE = "_audited_before"


@receiver(pre_save, sender=User)
@receiver(pre_save, sender=Group)
def remember(
    sender: type[Model], instance: Model, update_fields: Iterable[str] | None = None, **_: Any
) -> None:
    """Remember the audited fields as they are before the save."""
    fields = WATCHED[sender]
    if update_fields is not None:
        fields = tuple(name for name in fields if name in update_fields)
    before = None
    if fields and instance.pk is not None:
        before = sender._default_manager.filter(pk=instance.pk).values(*fields).first()
    setattr(instance, _BEFORE, before if fields else {})


@receiver(post_save, sender=User)
@receiver(post_save, sender=Group)
def saved(sender: type[Model], instance: Model, *, created: bool, **_: Any) -> None:
    """Audit a new row, or a changed row if an audited field has changed."""
    before: Mapping[str, Any] = instance.__dict__.pop(_BEFORE, None) or {}
    if created:
        _write("add", instance, {name: _shown(instance, name) for name in WATCHED[sender]})
        return
    changed = [name for name, was in before.items() if getattr(instance, name) != was]
    if changed:
        _write("change", instance, {name: _shown(instance, name) for name in changed})


@receiver(post_delete, sender=User)
@receiver(post_delete, sender=Group)
def deleted(sender: type[Model], instance: Model, **_: Any) -> None:
    """Audit a deletion."""
    _write("delete", instance, {"name": str(instance)})


@receiver(m2m_changed, sender=User.groups.through)
@receiver(m2m_changed, sender=User.user_permissions.through)
@receiver(m2m_changed, sender=Group.permissions.through)
def granted(
    sender: type[Model],
    instance: Model,
    action: str,
    *,
    reverse: bool,
    model: type[Model],
    pk_set: set[Any] | None,
    **_: Any,
) -> None:
    """Audit the groups or permissions that a user or group gained or lost."""
    if action not in {"post_add", "post_remove", "pre_clear"}:
        return
    if pk_set is None:
        far = "user_set" if model is User else "group_set" if model is Group else ""
        held = getattr(instance, far if reverse else _field(sender))
        pk_set = set(held.values_list("pk", flat=True))
    others = list(model._default_manager.filter(pk__in=pk_set))
    # The audit row is about the holder, whichever side of the relation was changed.
    for holder, given in (
        [(each, [instance]) for each in others] if reverse else [(instance, others)]
    ):
        if given:
            names = sorted(_name(each) for each in given)
            how = "added" if action == "post_add" else "removed"
            _write("change", holder, {f"{_field(sender)}_{how}": names})


@receiver(user_logged_in)
def logged_in(sender: Any, user: Any, request: HttpRequest, **_: Any) -> None:
    """Audit a log-in, and what identified the user if that is no password."""
    through = request.session.get(THROUGH)
    facts = {"through": through} if through else {}
    log.record(user, "log_in", target_kind="user", target_id=user.pk, facts=facts)


@receiver(user_logged_out)
def logged_out(sender: Any, user: Any, **_: Any) -> None:
    """Audit a log-out."""
    if user is not None:
        log.record(user, "log_out", target_kind="user", target_id=user.pk)


@receiver(user_login_failed)
def log_in_failed(
    sender: Any, credentials: Mapping[str, Any], request: HttpRequest | None = None, **_: Any
) -> None:
    """Audit a failed log-in by user name; an unknown name may be a password and is not stored."""
    tried = User.objects.filter(username=credentials.get("username") or "").first()
    if tried is not None:
        log.record(
            log.ANONYMOUS,
            "log_in",
            target_kind="user",
            target_id=tried.pk,
            result=log.AuditResult.REFUSED,
            facts={"username": tried.username},
        )


def _write(action: str, row: Model, facts: Mapping[str, Any]) -> None:
    kind = str(row._meta.model_name)
    log.record(actor(), action, target_kind=kind, target_id=row.pk, facts=facts)


def _shown(row: Model, name: str) -> Any:
    return "set" if name == "password" else getattr(row, name)


def _name(row: Model) -> str:
    return row.codename if isinstance(row, Permission) else str(row)


def _field(through: type[Model]) -> str:
    return "groups" if through is User.groups.through else "permissions"
