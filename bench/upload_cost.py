"""The processor time that one upload costs a process of the console.

Run `python -m bench.upload_cost [--uploads 100]`. One client sends files of 2 MB one after the
other to the real web server, as forms and as whole bodies. The time is that of the web process
alone, as the system counts it.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection

import psutil

from bench._service import whole_service
from bench.load import FORM, _document, _form, _page

WARM_UP = 20


def main() -> int:
    """Upload, and print milliseconds per upload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uploads", type=int, default=100)
    uploads = parser.parse_args().uploads
    with whole_service(WEB_WORKERS="1") as service:
        token = service.manage("api_client", "create", "client").strip()
        address = service.serve().removeprefix("http://")
        (web,) = psutil.Process(service.processes[0].pid).children()
        with closing(HTTPConnection(address, timeout=60)) as connection:
            for kind in ("form", "body"):
                _upload(connection, token, kind, WARM_UP)
                before = web.cpu_times()
                _upload(connection, token, kind, uploads)
                after = web.cpu_times()
                user = (after.user - before.user) / uploads * 1e3
                system = (after.system - before.system) / uploads * 1e3
                print(f"{kind}: user {user:.1f} ms, system {system:.1f} ms per upload", flush=True)
    return 0


def _upload(connection: HTTPConnection, token: str, kind: str, uploads: int) -> None:
    document = _document(_page(0))
    for _ in range(uploads):
        key = secrets.token_hex(8)
        content = document + f"{key}\n".encode()
        body, headers = content, {"Content-Type": "application/pdf", "Patient-Reference": key}
        if kind == "form":
            body, headers = _form(key, content), dict(FORM)
        headers |= {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
        connection.request("POST", "/api/v1/records", body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != HTTPStatus.CREATED:
            raise RuntimeError(f"{answer.status}")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
    sys.exit(main())
