"""A webhook reaches public addresses alone, and no receiver holds a sender longer than its time."""

from __future__ import annotations

import socket
from base64 import b64encode
from ipaddress import ip_address
from typing import Any
from uuid import uuid4

import pytest
from django.test import override_settings

from api.webhooks import receiver
from api.webhooks.models import DeliveryFailure
from api.webhooks.signing import signed
from clients.python.medproc_client import SignatureError, verify_webhook
from pipeline.core.errors import UserError
from tests.support.webhook_receiver import HOST, ToldAnswer, receiving

BODY = b'{"type": "ping"}'


def failure_of(url: str, **options: Any) -> DeliveryFailure:
    """Return why a POST failed."""
    with pytest.raises(receiver.NotDeliveredError) as caught:
        receiver.post(url, BODY, {}, **options)
    return caught.value.failure


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1", "fc00::1",
        "fec0::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
        "2002:7f00:1::", "2001:0:7f00:1::", "2001:db8::1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_of_the_public_internet_is_refused(address: str) -> None:
    assert not receiver.is_public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_a_public_address_is_accepted(address: str) -> None:
    assert receiver.is_public(ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/", "ftp://hooks.example.org/", "https://", "https:///path",
        "https://127.0.0.1/", "https://[::1]/", "https://[fe80::1%25eth0]/", "https://localhost/",
        "https://a.localhost/", "https://user:secret@hooks.example.org/", "hooks.example.org",
        "https://hooks.example.org/#part", "https://hooks.example.org/a b",
        "https://hooks.example.org/\r\nX: y", "https://hooks.example.org:0/",
        "https://hooks.example.org:99999/", "https://h\u00f6oks.example.org/",
        "https://hooks.example.org/" + "x" * 500, "https://[::1", "javascript:alert(1)",
    ],
)  # fmt: skip
def test_a_wrong_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(UserError):
        receiver.check_url(url)


def test_only_a_host_that_the_settings_name_may_be_private_or_without_tls() -> None:
    receiver.check_url("https://hooks.example.org:8443/path?key=k")
    with receiving() as found:
        receiver.check_url(found.url)
        answer = receiver.post(found.url, BODY, {})
        with override_settings(WEBHOOK_ALLOWED_HOSTS=[]):
            refused = failure_of(found.url)

    assert (answer.status, answer.is_ok) == (200, True)
    assert refused == DeliveryFailure.ADDRESS_REFUSED
    assert len(found.got) == 1


def test_a_name_is_resolved_once_and_one_private_address_refuses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    addresses = ["8.8.8.8", HOST]

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    monkeypatch.setattr(receiver, "getaddrinfo", resolve)
    refused = failure_of("https://hooks.example.org/")
    addresses.remove("8.8.8.8")
    with receiving() as found, override_settings(WEBHOOK_ALLOWED_HOSTS=["hooks.example.org"]):
        receiver.post(f"http://hooks.example.org:{found.port}/", BODY, {})

    assert refused == DeliveryFailure.ADDRESS_REFUSED
    assert asked == ["hooks.example.org"] * 2
    assert found.got[0].headers["Host"] == f"hooks.example.org:{found.port}"


def test_a_receiver_that_sends_its_answer_byte_by_byte_has_one_time_for_all() -> None:
    with receiving(ToldAnswer(hangs=True)) as found:
        assert failure_of(found.url, timeout_s=0.3) == DeliveryFailure.TIMEOUT


def test_each_failure_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror

    with receiving() as found:
        no_tls = failure_of(found.url.replace("http:", "https:"))
    with override_settings(WEBHOOK_ALLOWED_HOSTS=[HOST]):
        closed = failure_of(found.url)

    assert no_tls == DeliveryFailure.TLS_FAILED
    assert closed == DeliveryFailure.CONNECTION_FAILED
    monkeypatch.setattr(receiver, "getaddrinfo", unknown)
    assert failure_of("https://name.invalid/") == DeliveryFailure.NAME_UNKNOWN


def test_the_client_accepts_the_signature_of_the_specification_and_refuses_any_other() -> None:
    # The example of the Standard Webhooks libraries.
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    body = b'{"test": 2432232314}'

    event = verify_webhook(headers, body, secret, now_s=1614265330 + 299)

    assert event == {"test": 2432232314}
    for changed, text, at_s in (
        ({}, body + b" ", 1614265330),
        ({"webhook-id": "msg_other"}, body, 1614265330),
        ({"webhook-timestamp": "1614265331"}, body, 1614265330),
        ({"webhook-signature": "v2,x v1,AAAA"}, body, 1614265330),
        ({"webhook-signature": ""}, body, 1614265330),
        ({}, body, 1614265330 + 301),
        ({}, body, 1614265330 - 301),
    ):
        with pytest.raises(SignatureError):
            verify_webhook({**headers, **changed}, text, secret, now_s=at_s)
    with pytest.raises(SignatureError):
        verify_webhook({}, body, secret)
    with pytest.raises(SignatureError):
        verify_webhook(headers, body, "whsec_" + b64encode(b"x" * 24).decode(), now_s=1614265330)


def test_a_delivery_carries_one_signature_for_each_secret() -> None:
    found = signed(uuid4(), 1614265330, BODY, [b"a" * 32, b"b" * 32])

    for key in (b"a", b"b"):
        secret = "whsec_" + b64encode(key * 32).decode()
        assert verify_webhook(found, BODY, secret, now_s=1614265330) == {"type": "ping"}
