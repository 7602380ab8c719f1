"""Log-ins that fail are bounded, for a user and for an address, and so is what the audit keeps."""

from __future__ import annotations

from typing import Any, cast

import pytest
import redis
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from observability.entry.throttle import OF_ACCOUNT, OF_ADDRESS
from observability.models import AuditEvent
from pipeline.queueing.queues import producer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_db")]
PASSWORD = "a long password of a test"
WRONG = "wrong"


@pytest.fixture
def anna(settings: Any) -> User:
    # A hundred slow hashes would take a minute and show nothing more.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return User.objects.create_user("anna", password=PASSWORD, is_staff=True)


def log_in(
    username: str, password: str = WRONG, address: str = "192.0.2.1", **extra: Any
) -> HttpResponse:
    values = {"username": username, "password": password}
    answer = Client().post("/admin/login/", values, REMOTE_ADDR=address, **extra)
    return cast("HttpResponse", answer)


def statuses(count: int, **how: Any) -> list[int]:
    return [log_in("anna", **how).status_code for _ in range(count)]


def test_the_right_password_opens_nothing_after_too_many_wrong_ones(anna: User) -> None:
    assert statuses(OF_ACCOUNT) == [200] * OF_ACCOUNT

    refused = log_in("anna", PASSWORD)

    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 900
    assert "Too many failed log-ins from this address. Try again in" in refused.content.decode()
    # The owner of the account is not locked out by a stranger elsewhere.
    assert log_in("anna", PASSWORD, address="192.0.2.2").status_code == 302


def test_a_success_forgets_the_attempts_of_the_user(anna: User) -> None:
    for _ in range(10):
        assert statuses(OF_ACCOUNT - 1) == [200] * (OF_ACCOUNT - 1)
        assert log_in("anna", PASSWORD).status_code == 302

    # The count of the address keeps the failed attempts only.
    assert [producer().get(key) for key in keys()] == [b"%d" % (10 * (OF_ACCOUNT - 1))]


def test_an_address_that_tries_many_users_is_refused_for_every_user(anna: User) -> None:
    answers = [log_in(f"stranger {n}").status_code for n in range(OF_ADDRESS)]

    assert set(answers) == {200}
    assert statuses(20) == [429] * 20
    assert AuditEvent.objects.filter(action="log_in").count() == 0


def test_the_audit_keeps_no_more_failures_than_the_throttle_allows(anna: User) -> None:
    statuses(OF_ACCOUNT + 20)

    assert AuditEvent.objects.filter(action="log_in").count() == OF_ACCOUNT


def test_addresses_of_one_customer_of_ipv6_count_together(anna: User) -> None:
    for n in range(OF_ACCOUNT):
        log_in("anna", address=f"2001:db8::{n + 1}")

    assert log_in("anna", PASSWORD, address="2001:db8::ffff").status_code == 429
    assert log_in("anna", PASSWORD, address="2001:db8:0:1::1").status_code == 302


def test_a_client_does_not_choose_its_address(anna: User) -> None:
    for n in range(OF_ACCOUNT):
        log_in("anna", HTTP_X_FORWARDED_FOR=f"198.51.100.{n}")

    assert log_in("anna", PASSWORD).status_code == 429


def test_redis_holds_no_user_name_and_no_address(anna: User) -> None:
    log_in("anna")

    assert len(keys()) == 2
    assert not any("anna" in key or "192" in key for key in keys())
    assert all(0 < producer().ttl(key) <= 900 for key in keys())


def test_users_log_in_while_redis_is_away(anna: User, monkeypatch: pytest.MonkeyPatch) -> None:
    away = redis.Redis(host="127.0.0.1", port=1)
    monkeypatch.setattr("observability.entry.throttle.producer", lambda: away)

    assert log_in("anna").status_code == 200
    assert log_in("anna", PASSWORD).status_code == 302


def keys() -> list[str]:
    return [key.decode() for key in producer().scan_iter("medproc:log-in:*")]
