"""The lock files have hashes, name no package index, and are complete."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = (
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-codes.lock",
    "requirements-extras.lock",
    "requirements-peers.lock",
)


def _names(text: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9.-]+)==", text, re.MULTILINE))


def _pins(text: str) -> dict[str, set[str]]:
    """Return the versions of each package: a lock can name one for each version of Python."""
    pins: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9.-]+)==(\S+)", text, re.MULTILINE):
        pins.setdefault(name, set()).add(version)
    return pins


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_versions_and_hashes_and_no_place(lock: str) -> None:
    lines = (ROOT / lock).read_text("utf-8").splitlines()[1:]

    allowed = re.compile(r"[a-z0-9.-]+==\S+( ; .+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")
    assert [line for line in lines if not allowed.fullmatch(line)] == []


def test_the_locks_hold_every_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    runtime = project["project"]["dependencies"]
    development = project["dependency-groups"]["dev"]
    peers = project["dependency-groups"]["peers"]
    extras = project["project"]["optional-dependencies"]
    codes = extras.pop("codes")
    optional = [requirement for extra in extras.values() for requirement in extra]

    def declared(requirements: list[str]) -> set[str]:
        # A lock spells a name with hyphens: `fhir.resources` is `fhir-resources`.
        return {re.split(r"[<>=\[]", item)[0].replace(".", "-") for item in requirements}

    assert declared(runtime) <= _names((ROOT / LOCKS[0]).read_text("utf-8"))
    assert declared(runtime + optional + development) <= _names(
        (ROOT / LOCKS[1]).read_text("utf-8")
    )
    assert declared(runtime + codes) <= _names((ROOT / LOCKS[2]).read_text("utf-8"))
    assert declared(runtime + optional) <= _names((ROOT / LOCKS[3]).read_text("utf-8"))
    assert declared(runtime + peers) <= _names((ROOT / LOCKS[4]).read_text("utf-8"))


def test_the_packages_of_the_peers_leave_every_package_of_the_tools_at_its_version() -> None:
    tools, peers = (_pins((ROOT / lock).read_text("utf-8")) for lock in (LOCKS[1], LOCKS[4]))

    assert {name: peers[name] for name in peers.keys() & tools if peers[name] != tools[name]} == {}
