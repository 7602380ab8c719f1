"""Every operation answers any request as its OpenAPI text says.

Schemathesis makes the requests from the text: right ones, and ones that break the text. They go
through the WSGI application with its middleware, to a database and a Redis of their own.
"""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from api.middleware import OPENAPI_PATH
from api.models import WebhookEndpoint
from api.v1 import api
from api.webhooks.endpoints import endpoint_create
from api.webhooks.events import WebhookEvent
from pipeline.models import ShellFile
from tests.support.api_clients import RECORDS, ApiProgram, a_program
from tests.support.rows import a_job

pytestmark = pytest.mark.xdist_group("api-schema")
schema = schemathesis.openapi.from_dict(api.get_openapi_schema())
_handler = WSGIHandler()


def closed(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Answer a request as a server does: the answer is read to its end, and then closed."""
    answer: Any = _handler(environ, start_response)
    try:
        return [b"".join(answer)]
    finally:
        answer.close()


schema.app = closed
# A body that is the file itself is sent as made, whatever its type.
schemathesis.serializer.alias("application/pdf", "application/octet-stream")
EXAMPLES = 12
"""Requests per operation; the seed is fixed, so that a failure comes again."""


@pytest.fixture(scope="module")
def program(module_db: str) -> ApiProgram:
    """Provide a client with a record and a webhook."""
    program = a_program()
    a_job()
    ShellFile.objects.update(owner=program.owner)
    endpoint_create(
        program.api_client, "https://hooks.example.org", [WebhookEvent.RECORD_DEAD], "a test"
    )
    return program


def test_the_text_needs_no_token_and_names_what_each_operation_needs(program: ApiProgram) -> None:
    del program.defaults["HTTP_AUTHORIZATION"]
    answer = program.get(OPENAPI_PATH)
    program.defaults["HTTP_AUTHORIZATION"] = f"Bearer {program.token}"

    text = answer.json()
    operations = [each for path in text["paths"].values() for each in path.values()]

    assert text["openapi"].startswith("3.1")
    assert len(operations) == 19
    for operation in operations:
        assert operation["security"] == [{"BearerToken": []}]
        assert {"401", "403", "429", "500", "503"} < set(operation["responses"])
        for status, said in operation["responses"].items():
            kinds = set(said["content"])
            assert (kinds == {"application/problem+json"}) == (status >= "400")
    assert text["components"]["securitySchemes"]["BearerToken"]["scheme"] == "bearer"


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
def test_the_openapi_text_names_every_answer(case: Any, program: ApiProgram) -> None:
    case.headers["Authorization"] = f"Bearer {program.token}"
    if case.path_parameters and case.operation.path.startswith(RECORDS):
        own = str(ShellFile.objects.values_list("id", flat=True)[0])
        if str(case.path_parameters.get("record_id", "")).startswith(("0", "8")):
            case.path_parameters["record_id"] = own

    if case.path_parameters and str(case.path_parameters.get("webhook_id", "")).startswith("0"):
        oldest = WebhookEndpoint.objects.order_by("created_at").first()
        case.path_parameters["webhook_id"] = str(oldest and oldest.id)

    # The text cannot say which bytes are a record, or which words are a cursor or a reason.
    is_opaque = case.method == "POST" or "cursor" in (case.query or {})
    case.call_and_validate(excluded_checks=[positive_data_acceptance] if is_opaque else [])
