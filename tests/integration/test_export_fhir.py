"""The FHIR export is valid for two independent models of R4, and loses nothing FHIR can hold."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from fhir.resources.R4B.bundle import Bundle
from fhirclient.models import bundle as fhirclient_bundle

from tests.support import exported, records

pytestmark = pytest.mark.xdist_group("exports")


@pytest.fixture(scope="module", params=["LAB", "TRAPS"])
def record_id(request: pytest.FixtureRequest, module_db: str) -> UUID:
    return exported.completed(getattr(records, request.param))


@pytest.fixture(scope="module")
def bundle(record_id: UUID) -> dict[str, Any]:
    return exported.bundle_of(record_id)


def test_two_independent_models_of_r4_accept_the_bundle(bundle: dict[str, Any]) -> None:
    Bundle.model_validate(bundle)
    fhirclient_bundle.Bundle(exported.plain(bundle), strict=True)
