"""`python -m tests.chaos [SCENE …]`: break every part, and prove that no result is lost.

The command sets up its own servers, environment and Django. It prints the figures of each scene,
with `--json` one line per scene. It exits 1 if a scene has findings.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.chaos.environment import SHORT, chaos

if TYPE_CHECKING:
    from tests.chaos.environment import ChaosEnvironment

LATENCY = "0.25/call"
KILLS, FULL_KILLS = 10, 200
SECONDS, FULL_SECONDS = 8.0, 60.0
FULL_RECORDS = 300


def main() -> int:
    """Run the named scenes, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scene", nargs="*", help="kills, redis-stopped …; the default is all")
    parser.add_argument("--kills", type=int, default=FULL_KILLS)
    parser.add_argument("--seconds", type=float, default=FULL_SECONDS, help="of restarts")
    parser.add_argument("--records", type=int, default=FULL_RECORDS, help="of the crowd")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    is_clean = True
    with chaos(options.seed, LATENCY) as built:
        from tests.chaos.proof import references
        from tests.chaos.scenarios import scenes

        every = scenes(
            kills=options.kills,
            seconds=options.seconds,
            records=options.records,
            seed=options.seed,
        )
        references(built)
        for name in options.scene or [name for name in every if name != SHORT]:
            figures = _played(every[name], built)
            is_clean &= not figures["findings"]
            _say(name, figures, as_json=options.json)
    return 0 if is_clean else 1


def _played(
    scene: Callable[[ChaosEnvironment], dict[str, Any]], built: ChaosEnvironment
) -> dict[str, Any]:
    try:
        return scene(built)
    except Exception as error:  # noqa: BLE001 - the next scene runs all the same
        traceback.print_exc()
        return {"findings": [f"it broke off: {type(error).__name__}: {error}"]}


def _say(name: str, figures: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"scene": name, **figures}), flush=True)  # noqa: T201 - its output
        return
    findings = figures.pop("findings")
    said = ", ".join(f"{value} {key}" for key, value in figures.items())
    print(f"{name}: {said}: {'nothing found' if not findings else 'FOUND'}", flush=True)  # noqa: T201
    for finding in findings:
        print(f"  {finding}", flush=True)  # noqa: T201 - its output


if __name__ == "__main__":
    sys.exit(main())
