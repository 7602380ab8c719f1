"""The error tracker gets types, codes and places, and nothing that an exception can quote."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from unittest.mock import ANY

import pytest

from medproc.env import PROJECT_ROOT
from medproc.telemetry.error_event import event_of
from medproc.telemetry.errors import FLUSH_S
from pipeline.core.errors import CallError, ErrorCode
from tests.support.phi_needles import Needles
from tests.support.telemetry_receiver import TelemetryReceiver, receiving_telemetry

PHI = "Zylphira Quandt 1965-02-11"
PROGRAM = f"""
import sys, threading
import django
django.setup()
from django.test import Client
from django.urls import path
from medproc import telemetry, urls
from medproc.telemetry import errors
from pipeline.core.errors import CallError, ErrorCode

class Named(Exception):
    pass

def page(request, name):
    patient = "{PHI}"
    try:
        raise ValueError(patient)
    except ValueError as error:
        raise Named(patient, str(request.POST)) from error

urls.urlpatterns.append(path("broken/<name>/", page))
sys.argv.append("{PHI}")
headers = {{"X-Patient": "{PHI}", "Cookie": "a={PHI}"}}
client = Client(raise_request_exception=False, headers=headers)
client.defaults["SERVER_NAME"] = "localhost"
client.post("/broken/{PHI}/?q={PHI}", {{"name": "{PHI}"}})
for _ in range(3):
    try:
        raise CallError("{PHI}", code=ErrorCode.PARSE_JSON)
    except CallError as error:
        errors.report(error, step="pass1")
import sentry_sdk, logging
sentry_sdk.capture_message("{PHI}")
logging.getLogger("pipeline").error("{PHI}")
threading.Thread(target=lambda: 1 / 0, name="{PHI}").start()
raise KeyError("{PHI}")
"""


@pytest.fixture(scope="module")
def receiver() -> Iterator[TelemetryReceiver]:
    with receiving_telemetry() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def ran(receiver: TelemetryReceiver) -> subprocess.CompletedProcess[str]:
    """Run a process with errors of every kind, and personal data everywhere around them."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        cwd=PROJECT_ROOT,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "medproc.settings",
            "SENTRY_DSN": receiver.dsn,
            "SENTRY_RELEASE": "r1",
            "OTEL_SERVICE_NAME": "medproc-test",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def frame(module: str, function: str, text: str = "") -> dict[str, Any]:
    """Return a frame; `text` is the beginning of its line in the program."""
    lines = PROGRAM.splitlines()
    number = next(n for n, line in enumerate(lines, 1) if text in line) if text else ANY
    return {
        "module": module,
        "function": function,
        "lineno": number,
        "in_app": module.startswith("medproc"),
    }


def of(receiver: TelemetryReceiver, name: str) -> Any:
    """Return the only event whose last exception has this type."""
    (event,) = (
        envelope[2]
        for envelope in receiver.events()
        if envelope[2]["exception"]["values"][-1]["type"] == name
    )
    return event


def test_an_envelope_holds_exactly_what_is_allowed(
    ran: subprocess.CompletedProcess[str], receiver: TelemetryReceiver
) -> None:
    (envelope,) = (each for each in receiver.events() if '"CallError"' in json.dumps(each))
    head, item, event = envelope

    assert set(head) == {"event_id", "sent_at"}
    assert item == {"type": "event", "content_type": "application/json", "length": ANY}
    assert event == {
        "event_id": head["event_id"],
        "timestamp": ANY,
        "platform": "python",
        "level": "error",
        "release": "r1",
        "tags": {"service": "medproc-test", "step": "pass1", "code": "PARSE_JSON"},
        "exception": {
            "values": [
                {
                    "type": "CallError",
                    "module": "pipeline.core.errors",
                    "stacktrace": {
                        "frames": [frame("__main__", "<module>", "        raise CallError")]
                    },
                }
            ]
        },
    }


def test_a_page_that_fails_names_its_place_and_the_cause_and_nothing_of_the_request(
    ran: subprocess.CompletedProcess[str], receiver: TelemetryReceiver
) -> None:
    event = of(receiver, "Named")

    assert set(event) == {
        "event_id", "timestamp", "platform", "level", "release", "tags", "exception",
    }  # fmt: skip
    assert event["tags"] == {"service": "medproc-test"}
    cause, named = event["exception"]["values"]
    assert (cause["type"], cause["module"]) == ("ValueError", "builtins")
    assert cause["stacktrace"]["frames"] == [
        frame("__main__", "page", "        raise ValueError(patient)")
    ]
    assert named["stacktrace"]["frames"] == [
        frame("django.core.handlers.exception", "convert_exception_to_response.<locals>.inner"),
        frame("django.core.handlers.base", "BaseHandler._get_response"),
        frame("__main__", "page", "        raise Named"),
    ]


def test_each_error_is_sent_once_and_a_message_never(
    ran: subprocess.CompletedProcess[str], receiver: TelemetryReceiver
) -> None:
    assert ran.returncode == 1
    kinds = sorted(each[2]["exception"]["values"][-1]["type"] for each in receiver.events())
    assert kinds == ["CallError", "KeyError", "Named", "ZeroDivisionError"]
    assert len(receiver.posted) == len(kinds)


def test_no_request_to_the_tracker_quotes_anything(
    ran: subprocess.CompletedProcess[str], receiver: TelemetryReceiver
) -> None:
    assert "Zylphira" in ran.stderr
    for each in receiver.posted:
        assert Needles(["zylphira", "quandt", "1965-02-11"]).found(each.everything) == set()
        assert set(each.headers) == {
            "Host", "Accept-Encoding", "Content-Length", "Content-Encoding", "Content-Type",
            "User-Agent", "X-Sentry-Auth",
        }  # fmt: skip
        assert socket.gethostname().encode() not in each.body


def test_a_tracker_that_hangs_delays_the_end_of_a_process_by_a_second_at_most() -> None:
    program = (
        "import time, django; django.setup()\n"
        "from medproc import telemetry\n"
        "telemetry.errors.report(KeyError())\n"
        "began = time.monotonic(); telemetry.flush(); print(time.monotonic() - began)\n"
        "import os; os._exit(0)"
    )
    with receiving_telemetry() as receiver:
        receiver.hangs = True
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            cwd=PROJECT_ROOT,
            env=os.environ
            | {"DJANGO_SETTINGS_MODULE": "medproc.settings", "SENTRY_DSN": receiver.dsn},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )

    assert FLUSH_S - 0.1 <= float(ran.stdout) < FLUSH_S + 5


class ForeignError(Exception):
    """An exception of another program, with a code of its own."""

    code = PHI


def test_only_our_codes_are_sent() -> None:
    ours = CallError(PHI, code=ErrorCode.API_5XX)
    foreign = ForeignError(PHI)
    foreign.__cause__ = ours
    both = [event_of(error, event_id="1", timestamp="2", release=None) for error in (ours, foreign)]

    assert [event["tags"] for event in both] == [{"code": "API_5XX"}] * 2
    alone = event_of(ForeignError(PHI), event_id="1", timestamp="2", release=None)
    assert alone["tags"] == {}
    assert PHI not in json.dumps([*both, alone])
