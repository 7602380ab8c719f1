"""Each reusable package exports its public names, and works without the rest of the project."""

from __future__ import annotations

import types

import pytest

from pipeline import ratelimit
from pipeline.execution import fanout

PACKAGES = pytest.mark.parametrize(
    "package", [fanout, ratelimit], ids=lambda package: package.__name__
)


@PACKAGES
def test_every_exported_name_exists_once(package: types.ModuleType) -> None:
    missing = [name for name in package.__all__ if not hasattr(package, name)]

    assert missing == []
    assert len(package.__all__) == len(set(package.__all__))


@PACKAGES
def test_every_public_name_is_exported(package: types.ModuleType) -> None:
    public = {
        name
        for name, value in vars(package).items()
        if not name.startswith("_")
        and not isinstance(value, types.ModuleType)
        and name != "annotations"
    }

    assert public == set(package.__all__)


@PACKAGES
def test_every_exported_class_or_function_comes_from_the_package(
    package: types.ModuleType,
) -> None:
    foreign = {
        name
        for name in package.__all__
        if (home := getattr(getattr(package, name), "__module__", None))
        and isinstance(getattr(package, name), type)
        and not home.startswith(package.__name__)
    }

    assert foreign == set()
