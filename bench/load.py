"""1,000 uploads of 2 MB by 20 clients, while workers are killed and strangers send requests.

Run `python -m bench.load [--uploads 1000]`. Every 5 s a process of the workers gets SIGKILL; 700
requests with invented session cookies arrive; a reader requests pages of the console. Exits 1 if a
record is lost or doubled, if the 95th percentile of an upload exceeds 500 ms, or that of a page of
the console 200 ms. The clients use the plain client of Python, so that they need little of the
processor that they share with the service.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

import httpx2
import psutil

from bench._service import Installation, percentile, whole_service

CLIENTS, STRANGERS, THREADS_OF_STRANGERS = 20, 700, 50
KILL_EVERY_S, LOOK_EVERY_S = 5.0, 0.5
SIZE = 2_000_000
BOUNDARY = secrets.token_hex(16)
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
PADDING = secrets.token_hex(SIZE // 2).encode()
SUBMIT_P95_S, CONSOLE_P95_S = 0.5, 0.2
PAGES = ("/admin/overview/", "/admin/records/", "/admin/failures/", "/admin/incidents/")


def main() -> int:
    """Run the load, print the figures, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uploads", type=int, default=1_000)
    uploads = parser.parse_args().uploads
    # A process of the console for each core, as on a host of an API.
    with whole_service(WEB_WORKERS=str(os.cpu_count())) as service:
        tokens = [_token(service, number) for number in range(CLIENTS)]
        address = service.serve()
        pool = service.start("rqworker-pool")
        service.start("rqcron")
        _wait_for_workers()
        return _run(uploads, tokens, address, pool.pid)


def _run(uploads: int, tokens: Sequence[str], address: str, pool: int) -> int:
    # Drawn before the clock runs: the clients share the cores with the service.
    pages = [_page(number) for number in range(uploads)]
    over = threading.Event()
    kills: list[int] = []
    console: list[float] = []
    beside = [
        threading.Thread(target=_kill, args=(pool, kills, over)),
        threading.Thread(target=_read_console, args=(address, console, over)),
        threading.Thread(target=_knock, args=(address,)),
    ]
    for thread in beside:
        thread.start()
    began = time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as clients:
        parts = [
            clients.submit(_upload, address, token, pages[number::CLIENTS])
            for number, token in enumerate(tokens)
        ]
        results = [found for part in parts for found in part.result()]
    uploaded_s = time.monotonic() - began
    waits = [wait for _, wait in results]
    submit, page = percentile(waits, 0.95), percentile(console, 0.95)
    print(f"{uploads} uploads of {SIZE / 1e6:.0f} MB by {CLIENTS} clients in {uploaded_s:.0f} s")
    print(f"  upload p50 {percentile(waits, 0.5) * 1e3:.0f} ms, p95 {submit * 1e3:.0f} ms")
    print(f"  console p95 {page * 1e3:.0f} ms over {len(console)} pages", flush=True)
    ended = _wait_for_the_end(uploads)
    over.set()
    for thread in beside:
        thread.join()
    print(f"  {len(kills)} kills, {STRANGERS} strangers; all ended after", end=" ")
    print(f"{time.monotonic() - began:.0f} s")
    wrong = _lost_or_doubled([record for record, _ in results], ended)
    print(f"  lost or doubled: {', '.join(wrong) or 'nothing'}")
    return int(bool(wrong) or submit > SUBMIT_P95_S or page > CONSOLE_P95_S)


def _wait_for_workers() -> None:
    """Wait until the workers have done their one-time work and listen to all queues."""
    from pipeline.queueing.queues import QUEUES, queues_served

    while queues_served() != set(QUEUES):
        time.sleep(LOOK_EVERY_S)


def _token(service: Installation, number: int) -> str:
    return service.manage("api_client", "create", f"client-{number}").strip()


def _upload(address: str, token: str, pages: Sequence[bytes]) -> list[tuple[str, float]]:
    """Upload records one after the other; return the id and the seconds of each."""
    found = []
    connection = HTTPConnection(address.removeprefix("http://"), timeout=60)
    for page in pages:
        key = secrets.token_hex(8)
        body, headers = _form(key, _document(page)), {**FORM, "Authorization": f"Bearer {token}"}
        began = time.monotonic()
        connection.request("POST", "/api/v1/records", body, {**headers, "Idempotency-Key": key})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != HTTPStatus.CREATED:
            raise RuntimeError(f"{answer.status} {content!r}")
        found.append((str(json.loads(content)["id"]), time.monotonic() - began))
    connection.close()
    return found


def _form(patient: str, content: bytes) -> bytes:
    part = f"--{BOUNDARY}\r\nContent-Disposition: form-data; name="
    head = f'{part}"patient"\r\n\r\n{patient}\r\n{part}"file"; filename="record.pdf"\r\n\r\n'
    return head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()


def _page(number: int) -> bytes:
    from tests.support.short_records import short_pdf

    return short_pdf(1, more=(f"Note {number}",))


def _document(page: bytes) -> bytes:
    """Return a page of text with 2 MB behind it. The second trailer makes both one valid PDF."""
    table = page.rsplit(b"startxref", 1)[1].split()[0]
    return page + b"%" + PADDING + b"\nstartxref\n" + table + b"\n%%EOF\n"


def _kill(pool: int, kills: list[int], over: threading.Event) -> None:
    while not over.wait(KILL_EVERY_S):
        with suppress(psutil.Error, IndexError):
            victim = random.choice(psutil.Process(pool).children(recursive=True))
            victim.kill()
            kills.append(victim.pid)


def _read_console(address: str, seconds: list[float], over: threading.Event) -> None:
    with httpx2.Client(base_url=address, cookies={"sessionid": _session()}, timeout=60) as client:
        while not over.wait(LOOK_EVERY_S):
            for page in PAGES:
                began = time.monotonic()
                client.get(page).raise_for_status()
                seconds.append(time.monotonic() - began)


def _session() -> str:
    from django.contrib.auth.models import User
    from django.test import Client

    browser = Client(SERVER_NAME="127.0.0.1")
    browser.force_login(User.objects.create_superuser("reader"))
    return browser.cookies["sessionid"].value


def _knock(address: str) -> None:
    def ask(_: int) -> None:
        connection = HTTPConnection(address.removeprefix("http://"), timeout=60)
        with suppress(OSError, HTTPException), closing(connection):
            cookie = f"sessionid={secrets.token_hex(16)}"
            connection.request("GET", "/admin/", headers={"Cookie": cookie})
            connection.getresponse().read()

    with ThreadPoolExecutor(THREADS_OF_STRANGERS) as threads:
        list(threads.map(ask, range(STRANGERS)))


def _wait_for_the_end(uploads: int) -> bool:
    from pipeline.core.states import JOB_TERMINAL
    from pipeline.models import Job

    longest = time.monotonic() + 3.0 * uploads
    while Job.objects.filter(status__in=JOB_TERMINAL).count() < uploads:
        if time.monotonic() > longest:
            return False
        time.sleep(1.0)
    return True


def _lost_or_doubled(accepted: Sequence[str], ended: bool) -> list[str]:
    """Return what is wrong with the records; an empty list if nothing is."""
    from django.db.models import Count

    from pipeline.models import Entity, Job, ShellFile

    wrong = [] if ended else ["the records did not end in time"]
    if len(set(accepted)) != len(accepted):
        wrong.append("two uploads have one record")
    if {str(pk) for pk in ShellFile.objects.values_list("id", flat=True)} != set(accepted):
        wrong.append("the records are not the accepted uploads")
    statuses = Job.objects.values_list("status", "error_code").annotate(Count("id"))
    wrong += [f"{count} {status} {code}" for status, code, count in statuses if code]
    by_record = Entity.objects.values("shell_file_id").annotate(n=Count("id"))
    counts = by_record.values_list("n", flat=True)
    if len(set(counts)) != 1 or len(counts) != len(accepted):
        wrong.append(f"records differ in their entities: {sorted(set(counts))}")
    return wrong


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
    sys.exit(main())
