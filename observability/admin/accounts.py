"""Users and groups, where nobody gives what he has not himself.

Imports Django's own admin of both. Stock, any holder of `change_user` makes himself superuser, or
sets the password of one.
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
    """Gives people their roles; rights of their own, and superusers, are a superuser's to make."""

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[Any]:
        """Return what only a superuser changes."""
        fields = list(super().get_readonly_fields(request, obj))
        return fields if request.user.is_superuser else [*fields, *_SUPERUSERS]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Leave those alone, their passwords too, who may more than whoever asks."""
        return super().has_change_permission(request, obj) and _reaches(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Likewise."""
        return super().has_delete_permission(request, obj) and _reaches(request, obj)

    def formfield_for_manytomany(
        self, db_field: ManyToManyField[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelMultipleChoiceField[Any] | None:
        """Offer the roles whose rights the user has himself, and what the other one is in."""
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
        """Set a password, and write it down, in one transaction."""
        with transaction.atomic():
            return super().user_change_password(request, id, form_url)


@admin.register(Group)
class GroupAdmin(stock.GroupAdmin):
    """Shows groups; what is in them is a superuser's to say."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Ask for a superuser."""
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Ask for a superuser."""
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Ask for a superuser."""
        return bool(request.user.is_superuser)


def _reaches(request: HttpRequest, obj: User | None) -> bool:
    asks = request.user
    if asks.is_superuser or obj is None:
        return True
    # Django says of who is not active that he may nothing; he may be made active again.
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
