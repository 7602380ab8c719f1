"""Each process has one provider, of the kind in the settings, loaded at its first use."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.providers import factory
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import provider_for, warm
from pipeline.providers.gemini import GeminiProvider
from pipeline.providers.local import LocalProvider

ROOT = Path(__file__).parents[2]


GEMINI = ProviderConfig(name="gemini", model="gemini-3.5-flash-lite", api_key="k")
CONFIGS = {"local": ProviderConfig(name="local"), "gemini": GEMINI}


@pytest.mark.parametrize(("name", "kind"), [("local", LocalProvider), ("gemini", GeminiProvider)])
def test_the_settings_name_the_provider(name: str, kind: type) -> None:
    provider = provider_for(CONFIGS[name])

    assert isinstance(provider, kind)
    assert provider.name == name


def test_a_process_has_one_provider_for_its_settings() -> None:
    first = provider_for(GEMINI)

    assert provider_for(GEMINI) is first
    assert provider_for(replace(GEMINI, model="gemini-2.5-flash")) is not first


def test_another_process_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = provider_for(GEMINI)
    monkeypatch.setattr(os, "getpid", lambda: -1)

    assert provider_for(GEMINI) is not parents


def test_an_emulator_needs_no_key(settings: Any) -> None:
    settings.MEDPROC_PROVIDER = "gemini"
    settings.GEMINI_API_KEY = None
    settings.GEMINI_BASE_URL = "http://127.0.0.1:1"

    assert provider_for(ProviderConfig.of_settings()).name == "gemini"


def test_a_key_is_not_shown(settings: Any) -> None:
    settings.MEDPROC_PROVIDER = "gemini"
    settings.GEMINI_API_KEY = "a-key-of-ours"

    assert "a-key-of-ours" not in repr(ProviderConfig.of_settings())


@pytest.mark.parametrize("name", ["local", "gemini"])
def test_warming_makes_no_client(name: str) -> None:
    before = dict(factory._made)

    warm(CONFIGS[name])

    assert factory._made == before


def test_warming_builds_the_models_of_the_sdk() -> None:
    program = (
        "import sys; from pipeline.providers.config import ProviderConfig;"
        "from pipeline.providers.factory import warm; from google.genai import types;"
        "built = types.GenerateContentConfig, types.GenerateContentResponse;"
        "before = [each.__pydantic_complete__ for each in built];"
        "warm(ProviderConfig(name='gemini', model='none'));"
        "after = [each.__pydantic_complete__ for each in built];"
        "sys.exit((before, after) != ([False, False], [True, True]))"
    )

    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)

    assert ended.returncode == 0


def test_an_engine_that_is_warm_compiles_almost_nothing() -> None:
    """Cold, a first page compiles a thousand patterns: a second of work in every horse."""
    program = (
        "import re, sys; from pipeline.core.types import PageSlice;"
        "from pipeline.providers.factory import warm_engine;"
        "from pipeline.providers.local import answer_to;"
        "from pipeline.providers.prompts import Question;"
        "compiled = []; compile = re._compiler.compile;"
        "re._compiler.compile = lambda p, *rest: (compiled.append(p), compile(p, *rest))[1];"
        "warm_engine(); cold = len(compiled);"
        "page = PageSlice(page=1, start=0, text=open('samples/visit.txt').read());"
        "answer_to(Question(kind='entities', item_token='', include_zones=True, slices=(page,)));"
        "print(cold, len(compiled) - cold)"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )

    cold, first = map(int, ended.stdout.split())
    assert cold >= 800
    assert first <= 40


def test_local_use_never_loads_the_sdk() -> None:
    program = (
        "import sys; from pipeline.providers.config import ProviderConfig;"
        "from pipeline.providers.factory import provider_for, warm, warm_engine;"
        "local = ProviderConfig(name='local'); warm(local); warm_engine(); provider_for(local);"
        "sys.exit(any(m.startswith(('google', 'httpx')) for m in sys.modules))"
    )

    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)

    assert ended.returncode == 0
