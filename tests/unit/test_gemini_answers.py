"""Answers that a proxy spoils, through the real client: the status outlives the body."""

from __future__ import annotations

import httpx2
import pytest

from pipeline.errors import CallError, ErrorCode
from pipeline.provider.gemini import GeminiProvider
from tests.emulation import MODEL, entities_request

GATEWAY = "<html><body>Défaut de la passerelle</body></html>"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (429, ErrorCode.RATE_LIMIT),
        (413, ErrorCode.CONTEXT_TOO_LARGE),
        (502, ErrorCode.API_5XX),
        (504, ErrorCode.API_TIMEOUT),
        (200, ErrorCode.PARSE_JSON),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_gateways_page_ends_in_the_code_of_its_status_in_any_encoding(
    encoding: str, status: int, code: ErrorCode
) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": f"text/html; charset={encoding}", "retry-after": "7"}
        return httpx2.Response(status, content=GATEWAY.encode(encoding), headers=headers)

    provider = GeminiProvider(api_key="k", model=MODEL, transport=httpx2.MockTransport(answer))

    with pytest.raises(CallError) as raised:
        provider.generate(entities_request())
    provider.close()

    assert (raised.value.code, raised.value.call.http_status) == (code, status)
    assert raised.value.call.retry_after_s == (None if status == 200 else 7.0)
    assert raised.value.__context__ is None
