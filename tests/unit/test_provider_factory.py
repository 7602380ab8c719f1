"""One provider for each process, of the kind that the settings name, loaded no earlier."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.providers import factory
from pipeline.providers.factory import provider_for, warm
from pipeline.providers.gemini import GeminiProvider
from pipeline.providers.local import LocalProvider

ROOT = Path(__file__).parents[2]


def settings(provider: str, **changed: str | None) -> SimpleNamespace:
    named = {
        "MEDPROC_PROVIDER": provider,
        "GEMINI_API_KEY": "k",
        "GEMINI_BASE_URL": None,
        "GEMINI_MODEL": "gemini-3.5-flash-lite",
    }
    return SimpleNamespace(**{**named, **changed})


@pytest.mark.parametrize(("name", "kind"), [("local", LocalProvider), ("gemini", GeminiProvider)])
def test_the_settings_name_the_provider(name: str, kind: type) -> None:
    provider = provider_for(settings(name))

    assert isinstance(provider, kind)
    assert provider.name == name


def test_a_process_has_one_provider_for_its_settings() -> None:
    first = provider_for(settings("gemini"))

    assert provider_for(settings("gemini")) is first
    assert provider_for(settings("gemini", GEMINI_MODEL="gemini-2.5-flash")) is not first


def test_another_process_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = provider_for(settings("gemini"))
    monkeypatch.setattr(os, "getpid", lambda: -1)

    assert provider_for(settings("gemini")) is not parents


def test_an_emulator_needs_no_key() -> None:
    emulated = settings("gemini", GEMINI_API_KEY=None, GEMINI_BASE_URL="http://127.0.0.1:1")

    assert provider_for(emulated).name == "gemini"


@pytest.mark.parametrize("name", ["local", "gemini"])
def test_warming_makes_no_client(name: str) -> None:
    before = dict(factory._made)

    warm(settings(name))

    assert factory._made == before


def test_local_use_never_loads_the_sdk() -> None:
    program = (
        "import sys; from types import SimpleNamespace as S;"
        "from pipeline.providers.factory import provider_for, warm;"
        "s = S(MEDPROC_PROVIDER='local'); warm(s); provider_for(s);"
        "sys.exit(any(m.startswith(('google', 'httpx')) for m in sys.modules))"
    )

    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)

    assert ended.returncode == 0
