"""The real client keeps the status of an answer whose body a proxy spoiled."""

from __future__ import annotations

import httpx2
import pytest

from pipeline.core.errors import CallError, ErrorCode
from pipeline.providers.gemini import GeminiProvider
from tests.support.emulator import MODEL, entities_request

GATEWAY = "<html><body>Défaut de la passerelle</body></html>"
NOT_GZIP = b"no archive"
BODIES = {
    "a page": GATEWAY.encode(),
    "a page in Latin-1": GATEWAY.encode("latin-1"),
    "a number without end": b"9" * 20_000,
    "brackets without end": b"[" * 200_000,
    "nothing": b"",
    "what is not gzip": NOT_GZIP,
}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (429, ErrorCode.RATE_LIMIT),
        (413, ErrorCode.CONTEXT_TOO_LARGE),
        (502, ErrorCode.API_5XX),
        (504, ErrorCode.API_TIMEOUT),
    ],
)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_every_error_gets_the_code_of_its_status_whatever_its_message(
    body: bytes, status: int, code: ErrorCode
) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        encoding = {"content-encoding": "gzip"} if body is NOT_GZIP else {}
        sent = {"retry-after": "7", **encoding}
        # A stream, so that the client decodes the body as if it came from a socket.
        return httpx2.Response(status, content=iter([body]), headers=sent)

    provider = GeminiProvider(api_key="k", model=MODEL, transport=httpx2.MockTransport(answer))

    with pytest.raises(CallError) as raised:
        provider.generate(entities_request())
    provider.close()

    assert (raised.value.code, raised.value.details.http_status) == (code, status)
    assert raised.value.details.retry_after_s == 7.0
    assert raised.value.__context__ is None
