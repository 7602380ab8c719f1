"""The child process of `process.Emulator`; its first argument is its settings as JSON.

The child starts without Django, so that a test waits only briefly for it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from gemini_emulator.scenario import read_scenario
from gemini_emulator.server import serve


def _announce(url: str) -> None:
    sys.stdout.write(url + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve until standard input is closed."""
    settings = json.loads(sys.argv[1])
    scenario = read_scenario(settings["scenario"])
    changed = {"seed": settings["seed"]} if settings["seed"] is not None else {}
    options = scenario.options(
        scale=settings["scale"], log=Path(settings["log"]), answers=settings["answers"], **changed
    )
    if settings["latency_map"]:
        places = {place: float(seconds) for place, seconds in settings["latency_map"].items()}
        options = replace(options, latency=replace(options.latency, by_place=places))
    serve(options, port=settings["port"], announce=_announce, until_stdin_ends=True)


if __name__ == "__main__":
    main()
