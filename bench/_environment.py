"""The environment of a benchmark's processes: own servers, files, key, and seeded records."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from medproc.embedded import Places, throw_away_servers
from medproc.env import PROJECT_ROOT


def environment_of(places: Places, folder: str) -> dict[str, str]:
    """Return this process's environment with these servers and with files in `folder`."""
    return {
        # The files of a benchmark go to `folder`, never to a bucket.
        **{name: value for name, value in os.environ.items() if not name.startswith("STORAGE_")},
        "DJANGO_SETTINGS_MODULE": "medproc.settings",
        "DATABASE_URL": places.database_url,
        "DATABASE_OWNER_URL": places.owner_url,
        "REDIS_URL": places.redis_url,
        "MEDPROC_DATA_DIR": folder,
        "SECRET_KEY": secrets.token_urlsafe(64),
        "PYTHONPATH": str(PROJECT_ROOT),
    }


@contextmanager
def seeded_records(batches: int, say: Callable[[str], None]) -> Iterator[None]:
    """Set up Django for this process on servers of its own, with so many seeded batches."""
    with throw_away_servers() as places, tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            environment_of(places, folder),
            MEDPROC_PROVIDER="gemini",
            # The seeded calls and incidents name this model; nothing is sent.
            GEMINI_MODEL="gemini-3.5-flash-lite",
            GEMINI_BASE_URL="http://127.0.0.1:1",
        )
        import django

        django.setup()
        from django.core.management import call_command

        from bench._seeding import seed

        call_command("migrate", verbosity=0, interactive=False)
        seed(batches, say)
        yield
