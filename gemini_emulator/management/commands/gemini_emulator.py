"""`manage.py gemini_emulator`: a Gemini-compatible service on loopback, to rehearse an outage.

The command runs until Ctrl-C or SIGTERM and prints its address on the first line. With `--check` it
serves nothing and proves a log against the database.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from gemini_emulator.fault_script import load_script
from gemini_emulator.latency import Latency, read_latency
from gemini_emulator.proof import Proof
from gemini_emulator.request_log import read_log
from gemini_emulator.scenario import Scenario, load_scenario, ready
from gemini_emulator.server import serve
from gemini_emulator.service import Options
from pipeline.management.plain_command import PlainCommand

PLAIN = Scenario(title="", expect="")


class Command(PlainCommand):
    """Serve until interrupted, or check a log."""

    help = "Serve a Gemini-compatible API on 127.0.0.1; set GEMINI_BASE_URL to the printed URL."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options of `docs/emulator.md`."""
        parser.add_argument("--port", type=int, default=8090, help="port; 0 picks a free port")
        parser.add_argument(
            "--scenario", metavar="NAME|FILE", help=f"a TOML file, or one of {', '.join(ready())}"
        )
        parser.add_argument(
            "--scale", type=float, default=1.0, help="factor of all seconds of the scenario"
        )
        parser.add_argument("--rpm", type=int, help="requests a minute; 0: no limit")
        parser.add_argument("--tpm", type=int, help="input tokens a minute")
        parser.add_argument("--rpd", type=int, help="requests a day, until midnight Pacific")
        parser.add_argument(
            "--spend", type=float, dest="spend_usd", help="US dollars in any ten minutes"
        )
        parser.add_argument(
            "--window", type=float, dest="window_s", help="seconds of a quota's minute"
        )
        parser.add_argument("--clock", help="Pacific time at the start: 23:59:30")
        parser.add_argument(
            "--latency",
            help="seconds for each own page: 0.2, 2/call, lognormal:0.2,0.5[/call], +stall:0.01,45",
        )
        parser.add_argument("--latency-map", type=Path, help="JSON: place of an item -> seconds")
        parser.add_argument("--faults", type=Path, help="fault script, TOML or JSON")
        parser.add_argument("--seed", type=int)
        parser.add_argument("--log", type=Path, help="append a JSON line for each request")
        parser.add_argument(
            "--answers",
            choices=["local", "minimal"],
            default="local",
            help="local: what the local engine finds; minimal: nothing, at no cost",
        )
        parser.add_argument(
            "--check", type=Path, metavar="LOG", help="prove a log against the database, then end"
        )
        parser.add_argument("--json", action="store_true", help="with --check: print one object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read the files, then serve."""
        if options["check"] is not None:
            self._check(options["check"], as_json=options["json"])
            return
        try:
            scenario = load_scenario(options["scenario"]) if options["scenario"] else PLAIN
            settings = _settings(scenario, options)

            def announce(url: str) -> None:
                self.stdout.write("\n".join(filter(None, [url, scenario.title, scenario.expect])))
                self.stdout.flush()

            serve(settings, port=options["port"], announce=announce)
        except (OSError, ValueError) as exc:
            raise CommandError(str(exc)) from None

    def _check(self, path: Path, *, as_json: bool) -> None:
        # Imported late: serving needs no database.
        from gemini_emulator.recorded_rows import prove_log

        if not path.exists():
            raise CommandError(f"{path.name}: no such file")
        try:
            lines = read_log(path)
        except (ValueError, TypeError):
            raise CommandError(f"{path.name}: not a log of the emulator") from None
        proof = prove_log(lines)
        self.stdout.write(json.dumps(proof.as_dict()) if as_json else _as_table(proof))
        if proof.findings:
            sys.exit(1)


def _settings(scenario: Scenario, options: dict[str, Any]) -> Options:
    """Return the scenario's settings, overridden by the given options."""
    if not options["scale"] > 0:
        raise ValueError("--scale: must be more than 0")
    names = ("rpm", "tpm", "rpd", "spend_usd", "window_s", "clock", "seed")
    changed = {name: options[name] for name in names if options[name] is not None}
    settings = scenario.options(
        scale=options["scale"], log=options["log"], answers=options["answers"], **changed
    )
    latency = settings.latency
    if options["latency"] is not None:
        latency = read_latency(options["latency"])
    if options["latency_map"]:
        latency = _with_map(latency, options["latency_map"])
    rules = load_script(options["faults"]) if options["faults"] else []
    return replace(settings, latency=latency, rules=[*settings.rules, *rules])


def _with_map(latency: Latency, path: Path) -> Latency:
    places = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(places, dict):
        raise ValueError(f"{path.name}: write an object of places and seconds")
    return replace(latency, by_place={str(at): float(seconds) for at, seconds in places.items()})


def _as_table(proof: Proof) -> str:
    lines = [f"{what:<44}{count:>8}" for what, count in proof.counts.items()]
    verdict = (
        f"{len(proof.findings)} findings" if proof.findings else "nothing lost, doubled or swapped"
    )
    return "\n".join([*lines, *proof.findings, verdict])
