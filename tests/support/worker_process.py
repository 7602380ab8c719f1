"""A process that forks worker commands, so that a test does not wait for the start of Django.

`python -m tests.support.worker_process [ENTRY_POINT]` reads orders from stdin, one JSON object per
line, and ends at the end of the file. The default steps are those of `tests.support.jobs`.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import django


def main() -> None:
    """Fork a command for each order; its parent records the pid and the exit code."""
    django.setup()
    from pipeline.queueing.queues import StepEntry
    from pipeline.workers.warming import warm, warm_engine

    warm()
    StepEntry.entry_point = "tests.support.jobs.run_step"
    if sys.argv[1:]:
        # Real steps: each horse inherits the compiled engine.
        StepEntry.entry_point = sys.argv[1]
        warm_engine()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os._exit(_supervise(json.loads(line)))


def _supervise(order: dict[str, Any]) -> int:
    folder = Path(order["folder"])
    pid = os.fork()
    if pid == 0:
        os._exit(_command(order, folder))
    _note(folder / "pid", pid)
    _note(folder / "exit", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return 0


def _note(path: Path, number: int) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(str(number))
    partial.rename(path)


def _command(order: dict[str, Any], folder: Path) -> int:
    log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.environ.update(STEP_DOES=order["does"], STEP_SEEN=str(folder / "seen.jsonl"))
    os.environ.update(order["environment"])
    # The parent may have looked up its folder already.
    tempfile.tempdir = None
    from django.conf import settings
    from django.core.management import execute_from_command_line
    from django.db import connection

    settings.STOP_GRACE_S = order["grace_s"]
    for name, value in order["settings"].items():
        setattr(settings, name, value)
    connection.settings_dict["NAME"] = order["database"]
    if order["pool"]:
        # As a settings module could do it, against the system check.
        connection.settings_dict["CONN_MAX_AGE"] = 0
        connection.settings_dict["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 2}
    if order["parent_queries"]:
        from tests.support.jobs import report_backend

        report_backend("parent")
    if order["file_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"],) * 2)
    try:
        execute_from_command_line(["manage.py", *order["arguments"]])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


if __name__ == "__main__":
    main()
