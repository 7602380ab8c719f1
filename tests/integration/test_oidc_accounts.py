"""The users of an identity provider are one user per identity, whatever happens at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from redis import Redis

from observability.entry.oidc.accounts import VerifiedIdentity, account_of
from observability.models import FederatedIdentity
from observability.permissions import Role

AT_ONCE = 6
PASSWORD = "a long password of a test"


def test_first_log_ins_at_once_make_one_user_for_each_identity(cloned_db: str) -> None:
    barrier = Barrier(AT_ONCE)

    def log_in(number: int) -> tuple[str, str]:
        subject = f"000{number % 2}"
        identity = VerifiedIdentity(
            issuer="https://login.example.org",
            subject=subject,
            wanted_name="jane",
            roles=frozenset({Role.VIEWER}),
            has_second_factor=True,
        )
        try:
            barrier.wait()
            return subject, account_of(identity).username
        finally:
            connections.close_all()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = set(pool.map(log_in, range(AT_ONCE)))

    assert {subject for subject, _ in found} == {"0000", "0001"}
    assert len(found) == FederatedIdentity.objects.count() == User.objects.count() == 2
    assert "jane" in {name for _, name in found}


@pytest.mark.django_db
def test_only_a_superuser_has_a_password_with_oidc_only(redis_db: Redis, settings: Any) -> None:
    settings.OIDC_ISSUER, settings.OIDC_ONLY = "https://login.example.org", True
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    User.objects.create_user("anna", password=PASSWORD, is_staff=True)
    User.objects.create_superuser("root", password=PASSWORD)

    refused = Client().post("/admin/login/", {"username": "anna", "password": PASSWORD})
    let_in = Client().post("/admin/login/", {"username": "root", "password": PASSWORD})

    assert refused.status_code == 200
    assert "correct username and password" in refused.content.decode()
    assert let_in["Location"] == "/admin/"
