"""The environment of a benchmark's processes: its own servers, files and key."""

from __future__ import annotations

import os
import secrets

from medproc.embedded import Places
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
