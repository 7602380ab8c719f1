"""`manage.py serve [ADDRESS:PORT]`: the console's web server, in the foreground."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from medproc import ports
from medproc.embedded.processes import exclusive
from medproc.env import PROJECT_ROOT
from medproc.static_files import stamp_of_sources
from pipeline.core.server_faults import line_of
from pipeline.documents import storage
from pipeline.management.plain_command import PlainCommand

DEFAULT = "127.0.0.1:8000"
UNUSED_FILES = ["jquery.js", "xregexp.js"]
"""Files of the admin that no page loads without DEBUG. They are larger than LARGEST_FILE."""


class Command(PlainCommand):
    help = "Serve the console until SIGTERM; SIGHUP loads new code without a lost request."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("address", nargs="?", default=DEFAULT, help="default: %(default)s")

    def handle(self, *args: Any, address: str, **options: Any) -> None:
        """Collect the static files, and become gunicorn."""
        try:
            ports.refuse_taken(*ports.address_of(address))
        except ports.PortError as error:
            raise CommandError(str(error)) from None
        collect()
        if fault := storage.fault():
            # All pages that need no file work without the bucket.
            self.stderr.write(line_of(fault))
        sys.stdout.flush()
        sys.stderr.flush()
        os.chdir(PROJECT_ROOT)
        # A new program: its workers import the application after each fork, so SIGHUP loads new
        # code.
        command = [
            *(sys.executable, "-m", "gunicorn"),
            *("--config", "python:medproc.web.gunicorn_config", "--bind", address),
            *("--workers", str(settings.WEB_WORKERS), "--threads", str(settings.WEB_THREADS)),
        ]
        os.execv(sys.executable, command)  # noqa: S606 - the arguments are ours


def collect() -> None:
    """Collect the static files, unless nothing has changed since the last collection."""
    # Beside the folder: every file in the folder is served.
    stamp = settings.MEDPROC_DATA_DIR / "static.stamp"
    sources = stamp_of_sources()
    with exclusive(settings.MEDPROC_DATA_DIR / "static.lock"):
        if not stamp.is_file() or stamp.read_text("utf-8") != sources:
            call_command(
                "collectstatic", interactive=False, verbosity=0, ignore_patterns=UNUSED_FILES
            )
            stamp.write_text(sources, "utf-8")
