"""Users and groups: no user can give rights that they do not have.

In the stock admin, each holder of `change_user` can become a superuser or set the password of a
superuser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth import admin as stock
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db import transaction
from django.db.models import ManyToManyField, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse

from observability.permissions import Role

if TYPE_CHECKING:
    from django.forms import ModelMultipleChoiceField

    # Django's own class takes no parameter at run time.
    _UserAdmin = stock.UserAdmin[User]
else:
    _UserAdmin = stock.UserAdmin

admin.site.unregister([User, Group])


_SUPERUSERS = ("is_superuser", "user_permissions")


@admin.register(User)
class UserAdmin(_UserAdmin):
    """Gives roles to users; only a superuser edits single permissions and superusers."""

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[Any]:
        """Return the fields that only a superuser may edit."""
        fields = list(super().get_readonly_fields(request, obj))
        return fields if request.user.is_superuser else [*fields, *_SUPERUSERS]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Forbid editing a user (or their password) with more permissions than the editor."""
        return super().has_change_permission(request, obj) and _reaches(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Forbid deleting a user who has more permissions than the editor."""
        return super().has_delete_permission(request, obj) and _reaches(request, obj)

    def formfield_for_manytomany(
        self, db_field: ManyToManyField[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelMultipleChoiceField[Any] | None:
        """Offer the roles whose permissions the editor holds, and the current roles of the user."""
        if db_field.name == "groups" and not request.user.is_superuser:
            match = request.resolver_match
            kwargs["queryset"] = _to_give(request, match.kwargs.get("object_id") if match else None)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def user_change_password(
        self,
        request: HttpRequest,
        id: str,  # noqa: A002 - its URL names it so
        form_url: str = "",
    ) -> HttpResponse:
        """Set a password and record the change in the audit, in one transaction."""
        with transaction.atomic():
            return super().user_change_password(request, id, form_url)


@admin.register(Group)
class GroupAdmin(stock.GroupAdmin):
    """Shows groups; only a superuser edits a group."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return whether the user is a superuser."""
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return whether the user is a superuser."""
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return whether the user is a superuser."""
        return bool(request.user.is_superuser)


def _reaches(request: HttpRequest, obj: User | None) -> bool:
    asks = request.user
    if asks.is_superuser or obj is None:
        return True
    # Django reports no permission for an inactive user, but the user can become active again.
    held = Permission.objects.filter(Q(user=obj.pk) | Q(group__user=obj.pk))
    stored = User.objects.filter(pk=obj.pk, is_superuser=True).exists()
    return not stored and _names(held) <= _own(asks)


def _to_give(request: HttpRequest, user_id: str | None) -> QuerySet[Group]:
    offered = Q(name__in=list(Role))
    if user_id is not None and user_id.isdecimal():
        offered |= Q(user=int(user_id))
    own = _own(request.user)
    groups = Group.objects.filter(offered).distinct()
    ids = [each.pk for each in groups if _names(each.permissions.all()) <= own]
    return Group.objects.filter(pk__in=ids)


def _own(user: User | AnonymousUser) -> set[str]:
    return set(user.get_all_permissions())


def _names(permissions: QuerySet[Permission]) -> set[str]:
    named = permissions.values_list("content_type__app_label", "codename")
    return {f"{label}.{codename}" for label, codename in named}
