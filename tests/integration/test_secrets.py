"""No process shows a secret: in reprs, settings, pages of errors, or lines about refusing servers.

The passwords of accounts have the strength that OWASP ASVS 5.0 (V6.2) asks for.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from medproc.env import PROJECT_ROOT, SECRETS, VARIABLES
from medproc.web.passwords import NoCommonPasswords
from tests.support.wrong_values import CANARY

SECRET_VALUES = {
    # Nothing listens on port 1, so that each command reports a refusing server.
    "DATABASE_URL": f"postgresql://u:{CANARY}@127.0.0.1:1/x?sslpassword={CANARY}",
    "DATABASE_OWNER_URL": f"postgresql://o:{CANARY}@127.0.0.1:1/x",
    "REDIS_URL": f"redis://u:{CANARY}@127.0.0.1:1/0",
    "SECRET_KEY": CANARY * 8,
    "METRICS_TOKEN": CANARY * 8,
    "OIDC_CLIENT_SECRET": CANARY * 8,
    "STORAGE_SECRET_KEY": CANARY,
    "GEMINI_API_KEY": CANARY,
    "OTEL_EXPORTER_OTLP_HEADERS": f"x-key={CANARY}",
    "SENTRY_DSN": f"http://{CANARY}@127.0.0.1:1/7",
}
SHOWN_BY_DJANGO = """
import os, sys, traceback
import django
django.setup()
from django.conf import settings
from django.test import RequestFactory
from django.views.debug import ExceptionReporter
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import provider_for
def fail():
    environment, config, databases = settings.ENVIRONMENT, ProviderConfig.of_settings(), settings.DATABASES
    queues, key, provider = settings.RQ_QUEUES, settings.SECRET_KEY, provider_for(ProviderConfig.of_settings())
    print(repr(environment), str(environment), repr(config), str(config), databases, queues, provider)
    raise RuntimeError("the page of this error shows the variables above")
try:
    fail()
except RuntimeError:
    request = RequestFactory().get("/", **os.environ)
    reporter = ExceptionReporter(request, *sys.exc_info())
    print(traceback.format_exc(), reporter.get_traceback_text(), reporter.get_traceback_html())
"""  # noqa: E501 - the lines of a program
LONGEST = "x7" + "Qé☃ " * 31 + "q9"
"""128 characters."""
COMMANDS = {
    "settings": ("manage.py", "diffsettings", "--all"),
    "reprs and pages of errors": ("-c", SHOWN_BY_DJANGO),
    "services": ("manage.py", "services", "status"),
    "health": ("manage.py", "health"),
    "check": ("manage.py", "check", "--deploy", "--database", "default"),
    "migrate": ("manage.py", "migrate"),
    "worker": ("manage.py", "rqworker", "pages"),
    "supervisor": ("-m", "medproc.supervisor", "demo", "samples/lab_5p_8enc.pdf"),
}


WAYS = {"variables": (*COMMANDS,), "files": ("settings", "services")}
"""The commands that run with the secrets in variables, and with the secrets in files."""


@pytest.mark.slow(reason="starts ten processes, each of which loads Django")
def test_no_command_shows_a_secret(tmp_path: Path) -> None:
    assert set(SECRETS) == set(SECRET_VALUES)
    started = {
        f"{name} from {way}": subprocess.Popen(
            [sys.executable, *COMMANDS[name]],
            cwd=PROJECT_ROOT,
            env=environment(tmp_path, f"{name}-{way}", way),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for way, names in WAYS.items()
        for name in names
    }

    said = {name: process.communicate(timeout=240)[0] for name, process in started.items()}

    assert {name: text for name, text in said.items() if CANARY in text} == {}
    for way in WAYS:
        shown = said[f"settings from {way}"]
        assert re.search(r"^SECRET_KEY = '\*+'", shown, re.MULTILINE)
        assert shown.count("'PASSWORD': '********'") > 1
        assert "not running, not ours" in said[f"services from {way}"]
    page = said["reprs and pages of errors from variables"]
    assert page.count("the page of this error shows the variables above") > 1
    assert "DATABASE_OWNER_URL" in page
    for name in ("health", "migrate", "worker", "supervisor"):
        assert "127.0.0.1:1" in said[f"{name} from variables"], said[f"{name} from variables"]


def environment(folder: Path, name: str, way: str) -> dict[str, str]:
    """Return an environment with every secret, in variables or in files."""
    kept = {each: value for each, value in os.environ.items() if each not in VARIABLES}
    given = {
        "DJANGO_SETTINGS_MODULE": "medproc.settings",
        "MEDPROC_DATA_DIR": str(folder / name),
        "STORAGE_BUCKET": "records",
        "STORAGE_ENDPOINT_URL": "http://127.0.0.1:1",
        "STORAGE_KEY_ID": "id",
    }
    if way == "variables":
        return kept | given | SECRET_VALUES
    for each, value in SECRET_VALUES.items():
        (folder / each).write_text(f"{value}\n")
    return kept | given | {f"{each}_FILE": str(folder / each) for each in SECRETS}


@pytest.mark.parametrize(
    "password",
    [
        "Ab1!efgh90+",  # 11 characters, of four kinds
        "1q2w3e4r5t6y7u8i",
        "Password12345",
        "passwordPASSWORD",
        "medproc123456",
        "maria.gonzalez",
        "Maria.Gonzalez",
    ],
)
def test_a_short_a_common_or_a_similar_password_is_refused(password: str) -> None:
    user = User(username="maria.gonzalez", email="maria@example.org")

    with pytest.raises(ValidationError):
        validate_password(password, user)


def test_more_than_three_thousand_common_passwords_of_the_least_length_are_refused() -> None:
    validator = NoCommonPasswords()
    common = sorted(each for each in validator.passwords if len(each) >= 6)[:60]
    pairs = [first + second for first in common for second in common]

    accepted = [each for each in pairs if not is_refused(validator, each)]

    assert len(set(pairs)) > 3_000
    assert min(map(len, pairs)) >= 12
    assert accepted == []


def is_refused(validator: NoCommonPasswords, password: str) -> bool:
    """Return whether a validator refuses a password."""
    try:
        validator.validate(password)
    except ValidationError:
        return True
    return False


@pytest.mark.parametrize(
    "password",
    [
        "zephyr-lantern",
        "ohnegrossbuchstaben",
        "73095582016437",
        "каша из топора",
        "words with spaces, as managers of passwords draw them",
        LONGEST,
    ],
    ids=["words", "lower case", "digits", "Cyrillic", "spaces", "128 characters"],
)
def test_a_long_password_needs_no_kinds_of_characters(password: str) -> None:
    validate_password(password, User(username="maria.gonzalez"))


def test_a_password_of_128_characters_is_compared_whole_and_as_typed() -> None:
    user = User(username="maria.gonzalez")

    user.set_password(LONGEST)

    assert user.check_password(LONGEST)
    assert not user.check_password(LONGEST[:-1])
    assert not user.check_password(LONGEST.lower())
