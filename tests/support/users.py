"""Somebody with a role, and a browser in which he is logged in."""

from __future__ import annotations

from django.contrib.auth.models import Group, User
from django.test import Client


def client_of(role: str, name: str = "") -> Client:
    """Give a client of a new user with a role, who is called by it unless a name is given."""
    user = User.objects.create_user(name or str(role), is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    return client
