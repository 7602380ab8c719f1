"""Users with a role, and their logged-in test clients."""

from __future__ import annotations

from django.contrib.auth.models import Group, User
from django.test import Client


def client_of(role: str, name: str = "") -> Client:
    """Create a user with a role and give their client; the default name is the role's."""
    user = User.objects.create_user(name or str(role), is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    return client
