"""Private folders and files are created once, readable only by their owner."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from medproc import private


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_is_made_private_and_an_open_one_is_closed(tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir(mode=0o755)

    made = private.folder(tmp_path / "a" / "b")
    private.folder(open_folder)

    assert _mode(made) == _mode(open_folder) == 0o700


def test_a_link_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PermissionError):
        private.folder(tmp_path / "link")


def test_a_stored_secret_is_drawn_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "key"

    first = private.kept_text(path, lambda: "first")
    second = private.kept_text(path, lambda: "second")

    assert first == second == "first"
    assert _mode(path) == 0o600


def test_all_who_come_at_once_keep_the_same_text(tmp_path: Path) -> None:
    numbers = count()
    with ThreadPoolExecutor(8) as threads:
        seen = list(
            threads.map(
                lambda _: private.kept_text(tmp_path / "key", lambda: str(next(numbers))), range(8)
            )
        )

    assert len(set(seen)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
