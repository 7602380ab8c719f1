"""A process of the web server does its one-time work before its first request."""

from __future__ import annotations

from tests.support.fresh_process import printed_by

_PROCESS = """
import gc, sys
import django
django.setup()
from medproc.web import gunicorn_config
loaded = lambda: "observability.urls" in sys.modules
before = loaded()
gunicorn_config.post_worker_init(None)
print(before, loaded(), gc.get_freeze_count() > 50_000, gc.get_threshold()[0])
"""


def test_a_worker_loads_the_pages_and_exempts_them_from_garbage_collection() -> None:
    printed = printed_by(_PROCESS)

    assert printed.split() == ["False", "True", "True", "10000"]
