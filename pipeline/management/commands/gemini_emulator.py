"""`manage.py gemini_emulator`: a Gemini-compatible service on loopback, to rehearse an outage.

May import the emulator. Runs until Ctrl-C or SIGTERM; the first line of its output is its address.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from pipeline.provider.emulator.latency import read_latency
from pipeline.provider.emulator.script import load_script
from pipeline.provider.emulator.server import serve
from pipeline.provider.emulator.service import Options


class Command(BaseCommand):
    """Serve until interrupted."""

    help = "Serve a Gemini-compatible API on 127.0.0.1; set GEMINI_BASE_URL to the printed URL."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options of `docs/emulator.md`."""
        parser.add_argument("--port", type=int, default=8090, help="0 picks a free one")
        parser.add_argument("--rpm", type=int, default=0, help="requests a minute; 0: no limit")
        parser.add_argument("--tpm", type=int, default=0, help="input tokens a minute")
        parser.add_argument("--rpd", type=int, default=0, help="requests a day")
        parser.add_argument(
            "--window", type=float, default=60.0, help="seconds of a quota's minute, to scale it"
        )
        parser.add_argument(
            "--latency",
            default="0",
            help="seconds for each own page: 0.2, 2/call, lognormal:0.2,0.5[/call]",
        )
        parser.add_argument("--latency-map", type=Path, help="JSON: place of an item -> seconds")
        parser.add_argument("--faults", type=Path, help="fault script, TOML or JSON")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--log", type=Path, help="append a JSON line for each call")
        parser.add_argument(
            "--answers",
            choices=["local", "minimal"],
            default="local",
            help="local: what the local engine finds; minimal: nothing, at no cost",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Read the files, then serve."""
        try:
            settings = Options(
                rpm=options["rpm"],
                tpm=options["tpm"],
                rpd=options["rpd"],
                window_s=options["window"],
                latency=read_latency(options["latency"], _read_map(options["latency_map"])),
                rules=load_script(options["faults"]) if options["faults"] else (),
                seed=options["seed"],
                log=options["log"],
                answers=options["answers"],
            )
            serve(settings, port=options["port"], announce=self._announce)
        except (OSError, ValueError) as exc:
            raise CommandError(str(exc)) from None

    def _announce(self, url: str) -> None:
        self.stdout.write(url)
        self.stdout.flush()


def _read_map(path: Path | None) -> dict[str, float]:
    if path is None:
        return {}
    places = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(places, dict):
        raise ValueError(f"{path.name}: write an object of places and seconds")
    return {str(place): float(seconds) for place, seconds in places.items()}
