"""The process from which `process.Emulator` forks its emulators; its argument is a descriptor.

The process has done the one-time work of the local engine, which answers: a cold first answer takes
seconds. The process starts without Django. It ends with the process that started it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gemini_emulator.scenario import read_scenario
from gemini_emulator.server import serve
from pipeline.providers.local.warm_up import warm_up


def main() -> None:
    """Fork an emulator for each order, and be an emulator in the fork."""
    warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Ctrl-C stops the emulators, and the process that started this one decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = _forked()
    if order is not None:
        path, starter = order
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with starter:
            _serve(json.loads(path.read_text("utf-8")), path.with_name("requests.jsonl"), starter)


def _forked() -> tuple[Path, socket.socket] | None:
    """Return in each fork: the path of its settings, and its connection. Return None at the end."""
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        while True:
            path, descriptors, _, _ = socket.recv_fds(orders, 4_096, 1)
            if not path:
                return None
            if os.fork() == 0:
                return Path(path.decode()), socket.socket(fileno=descriptors[0])
            os.close(descriptors[0])


def _serve(settings: Mapping[str, Any], log: Path, starter: socket.socket) -> None:
    scenario = read_scenario(settings["scenario"])
    changed = {"seed": settings["seed"]} if settings["seed"] is not None else {}
    options = scenario.options(
        scale=settings["scale"], log=log, answers=settings["answers"], **changed
    )
    if settings["latency_map"]:
        places = {place: float(seconds) for place, seconds in settings["latency_map"].items()}
        options = replace(options, latency=replace(options.latency, by_place=places))
    serve(
        options,
        port=settings["port"],
        announce=lambda url: starter.sendall(url.encode()),
        until_closed=starter,
    )


if __name__ == "__main__":
    main()
