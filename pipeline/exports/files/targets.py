"""Where an export goes: the folder and the name. Names hold the record's id and no PHI."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.conf import settings

from pipeline.core.errors import UserError, UserErrorCode


@dataclass(frozen=True, kw_only=True)
class Target:
    """A folder that exists, and the name of the file in it; for a pair the manifest's name."""

    folder: Path
    name: str

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / self.name


def target_of(output: Path | None, record_id: UUID, suffix: str, *, is_pair: bool) -> Target:
    """Return the target of `--output`: a folder, or for a single file its path.

    Raises UserError OUTPUT_INVALID. No message repeats the path, which can name a patient.
    """
    place = (output or Path()).absolute()
    if place.is_dir():
        target = Target(folder=place, name=f"{record_id}{suffix}")
    elif is_pair:
        raise _refused("The output of a pair is a folder. Make the folder first, then name it.")
    elif not place.parent.is_dir():
        raise _refused("The folder of the output does not exist. Make the folder first.")
    else:
        target = Target(folder=place.parent, name=place.name)
    _check(target)
    return target


def _check(target: Target) -> None:
    data = Path(settings.MEDPROC_DATA_DIR).resolve()
    if target.folder.resolve().is_relative_to(data):
        raise _refused("The output is inside MEDPROC_DATA_DIR. Name a folder outside of it.")
    if not os.access(target.folder, os.W_OK | os.X_OK):
        raise _refused("The folder of the output is not writable. Name another folder.")
    try:
        found = target.path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise _refused(f"The output cannot be used: {error.strerror}.") from None
    if not stat.S_ISREG(found.st_mode):
        raise _refused("The output exists and is no ordinary file. Name another file.")


def _refused(message: str) -> UserError:
    return UserError(message, code=UserErrorCode.OUTPUT_INVALID)
