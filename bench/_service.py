"""The whole service for a benchmark: console, workers and scheduler as processes of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

from bench._environment import environment_of
from medproc.embedded import throw_away_servers
from medproc.env import PROJECT_ROOT

POLL_S = 0.1
READY = "/health/ready"


@dataclass
class Installation:
    """A migrated installation, and the processes that the benchmark has started."""

    environment: Mapping[str, str]
    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def manage(self, *arguments: str) -> str:
        """Run a command to its end and return what the command prints."""
        return subprocess.run(
            _manage(arguments),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        ).stdout

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command that runs until `stop`. Its output goes to a file of the folder."""
        with (self.folder / f"{arguments[0]}.log").open("ab") as log:
            process = subprocess.Popen(
                _manage(arguments), env=self.environment, stdout=log, stderr=log
            )
        self.processes.append(process)
        return process

    def serve(self) -> str:
        """Start the console on a free port, wait until it is ready, and return its address."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = self.start("serve", f"127.0.0.1:{port}")
        while process.poll() is None:
            with suppress(OSError), closing(HTTPConnection("127.0.0.1", port, timeout=60)) as probe:
                probe.request("GET", READY)
                if probe.getresponse().status == HTTPStatus.OK:
                    return f"http://127.0.0.1:{port}"
            time.sleep(POLL_S)
        raise RuntimeError((self.folder / "serve.log").read_text("utf-8"))

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End a command with SIGTERM and wait for its end."""
        self.processes.remove(process)
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextmanager
def whole_service(**variables: str) -> Iterator[Installation]:
    """Migrate servers of its own with the local engine, and set up Django for this process."""
    with throw_away_servers() as places, tempfile.TemporaryDirectory() as folder:
        environment = {
            **environment_of(places, f"{folder}/var"),
            "MEDPROC_PROVIDER": "local",
            **variables,
        }
        (Path(folder) / "var").mkdir()
        service = Installation(environment, Path(folder))
        service.manage("migrate", "--verbosity", "0")
        service.manage("load_codes", "ICD10CM")
        os.environ.update(environment)
        import django

        django.setup()
        try:
            yield service
        finally:
            for process in list(service.processes):
                service.stop(process)


def percentile(seconds: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values is."""
    return sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))]


def _manage(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, str(PROJECT_ROOT / "manage.py"), *arguments]
