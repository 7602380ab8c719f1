"""The child of `process.Emulator`: reads its settings as JSON from the first argument.

May import this package only; starts without Django, so that a test waits little for it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pipeline.provider.emulator.latency import read_latency
from pipeline.provider.emulator.script import read_rules
from pipeline.provider.emulator.server import serve
from pipeline.provider.emulator.service import Options


def _announce(url: str) -> None:
    sys.stdout.write(url + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve until standard input ends."""
    settings = json.loads(sys.argv[1])
    options = Options(
        rpm=settings["rpm"],
        tpm=settings["tpm"],
        rpd=settings["rpd"],
        window_s=settings["window_s"],
        latency=read_latency(settings["latency"], settings["latency_map"]),
        rules=read_rules({"fault": settings["faults"]}),
        seed=settings["seed"],
        log=Path(settings["log"]),
        answers=settings["answers"],
    )
    serve(options, port=settings["port"], announce=_announce, until_stdin_ends=True)


if __name__ == "__main__":
    main()
