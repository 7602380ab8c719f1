"""The configuration of gunicorn. `manage.py serve` adds the address, processes and threads.

The first process of gunicorn imports only this module, `limits`, `log`, `worker`, `request_head`
and `printable`. Its workers import everything else after the fork, so SIGHUP loads new code of
everything else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from medproc.web import limits

wsgi_app = "medproc.wsgi:application"
worker_class = "medproc.web.worker.BoundedWorker"
logger_class = "medproc.web.log.ServerLog"
# The worker closes old connections beyond CONNECTIONS. At this number, gunicorn stops accepting.
worker_connections = 2 * limits.CONNECTIONS
backlog = limits.BACKLOG
keepalive = limits.KEEP_ALIVE_S
graceful_timeout = limits.DRAIN_S
# The event loop reports every second; a worker whose loop has stopped is replaced.
timeout = 30
preload_app = False
# The heartbeat of a worker is a file without a name; a file on a disk can block.
_MEMORY = Path("/dev/shm")  # noqa: S108 - no process can open a file without a name
worker_tmp_dir = str(_MEMORY) if _MEMORY.is_dir() else None
# `forwarding.py` decides about the headers of proxies.
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
# A socket with which other processes could control the server is not needed.
control_socket_disable = True
proc_name = "medproc-console"


def post_worker_init(worker: Any) -> None:
    """Prepare a worker that has just loaded the application."""
    # Imported here, so that a reloaded worker has the new code.
    from medproc.web.warming import warm

    del worker
    warm()
