"""A Gemini server whose replies a test chooses: well formed, but wrong.

The emulator's answers are correct, and its faults are those of the network. This server runs in a
thread of the test process. The client is the real one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from django.test import override_settings

from pipeline.providers.prompts import Question, read_prompt

Say = Callable[[Question], dict[str, Any]]
"""Maps a question to the fields of the reply; the item token is added unless given."""


@contextmanager
def lying_model(say: Say) -> Iterator[list[Question]]:
    """Let steps of this process ask a model that replies `say(question)`; return the questions."""
    asked: list[Question] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            question = read_prompt(request["contents"][0]["parts"][0]["text"])
            asked.append(question)
            body = _body({"item_token": question.item_token, **say(question)})
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        with override_settings(MEDPROC_PROVIDER="gemini", GEMINI_BASE_URL=url):
            yield asked
    finally:
        server.shutdown()
        server.server_close()


def _body(said: dict[str, Any]) -> bytes:
    reply = {
        "candidates": [
            {"content": {"parts": [{"text": json.dumps(said)}]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10},
        "modelVersion": "gemini-liar",
        "responseId": said["item_token"],
    }
    return json.dumps(reply).encode()
