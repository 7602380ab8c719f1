"""The embedded servers under odd paths, full disks, hostile locks and several users at once."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import unquote

import pytest

from medproc import addresses, embedded, unprivileged
from medproc.embedded import Places, binaries, places, postgres, processes, valkey
from medproc.env import PROJECT_ROOT
from tests.support.plain_user import as_plain_user, newcomer, plain_folder

AS_ROOT = os.geteuid() == 0
ODD = "q\"uote $HOME `id` sp  ace ap'os back\\slash ünï #x%20&;"

START_AND_STOP = """
import json, os
from pathlib import Path
from medproc import embedded
found = embedded.places_of(Path(os.environ["MEDPROC_DATA_DIR"]))
embedded.up(found, throw_away=True)
servers = embedded.status(found)
print(json.dumps({"running": [server.running for server in servers],
    "data": str(servers[0].data), "stopped": embedded.down(found)}))
"""
USE_AND_WAIT = """
import signal, sys
from pathlib import Path
from medproc import embedded
base = Path(sys.argv[1])
with embedded.in_use(embedded.Places(base=base, sockets=base / "run"), with_postgres=False):
    print("in use", flush=True)
    signal.pause()
"""


@pytest.fixture
def empty_places() -> Iterator[Places]:
    found = embedded.throw_away_places()
    yield found
    embedded.throw_away(found)


def _pids(found: Places) -> list[int | None]:
    return [server.pid for server in embedded.status(found)]


def test_servers_start_under_a_path_with_every_odd_sign() -> None:
    with plain_folder() as folder:
        ran = as_plain_user(folder, "-c", START_AND_STOP, environment=newcomer(folder / ODD))

        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout) == {
            "running": [True, True],
            "data": str(folder / ODD / "servers" / "postgres"),
            "stopped": ["PostgreSQL", "Valkey"],
        }


def test_a_path_with_a_line_break_gives_one_line() -> None:
    with plain_folder() as folder:
        environment = newcomer(folder / "new\nline")

        up = as_plain_user(folder, "manage.py", "services", "up", environment=environment)

        assert up.returncode == 1
        assert up.stderr.count("\n") == 1
        assert "MEDPROC_DATA_DIR: has a control character" in up.stderr
        assert list(folder.iterdir()) == []


def test_addresses_keep_every_odd_sign(tmp_path: Path) -> None:
    found = Places(base=tmp_path, sockets=tmp_path / ODD)

    assert addresses.database_settings(found.database_url)["HOST"] == str(found.sockets)
    assert addresses.redis_kwargs(found.redis_url)["unix_socket_path"] == str(found.valkey_socket)
    assert unquote(found.redis_url).startswith("unix://")


def test_sockets_never_lie_under_a_comma_and_never_in_the_folder_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sockets = tmp_path / "a,b" / "run"

    first = places._short_sockets(tmp_path, sockets)
    again = places._short_sockets(tmp_path, sockets)
    first.mkdir()
    monkeypatch.setattr(places, "_is_ours", lambda path: path != first)
    after_theft = places._short_sockets(tmp_path, sockets)
    first.rmdir()

    assert "," not in str(first)
    assert first == again != after_theft


@pytest.mark.skipif(not AS_ROOT, reason="only root mounts a small disk")
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    base = Path("/tmp") / f"medproc-full-{os.getpid()}"  # noqa: S108 - the servers' user enters it
    base.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m,mode=0755", "none", str(base)],  # noqa: S607
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        base.rmdir()
        pytest.skip("this machine refuses a mount")
    found = Places(base=base / "servers", sockets=base / "servers" / "run")
    try:
        with pytest.raises(embedded.EmbeddedError) as raised:
            embedded.up(found)

        assert str(raised.value).startswith("STORAGE_FULL: the disk of ")
        assert _pids(found) == [None, None]
    finally:
        with suppress(embedded.EmbeddedError, OSError):
            embedded.down(found)
        subprocess.run(["umount", str(base)], check=True)  # noqa: S607 - as above
        base.rmdir()


def test_a_server_that_does_not_start_takes_the_other_down(
    empty_places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The binary of one server is missing, then that of the other."""
    with monkeypatch.context() as patch:
        patch.setattr(binaries, "POSTGRES_WHEEL", "no_such_wheel")
        with pytest.raises(embedded.EmbeddedError, match="PostgreSQL's binaries are missing"):
            embedded.up(empty_places, throw_away=True)
    after_postgres = _pids(empty_places)
    embedded.up(empty_places, with_valkey=False, throw_away=True)
    running = postgres.running_pid(empty_places)
    with monkeypatch.context() as patch:
        patch.setattr(binaries, "VALKEY_WHEEL", "no_such_wheel")
        patch.setenv("PATH", "/nonexistent")
        with pytest.raises(embedded.EmbeddedError, match="Valkey's binary is missing"):
            embedded.up(empty_places, throw_away=True)

    assert after_postgres == [None, None]
    assert running is not None
    assert _pids(empty_places) == [running, None]


def test_the_last_user_stops_the_servers_and_a_killed_user_counts_no_longer(
    empty_places: Places,
) -> None:
    killed = subprocess.Popen(
        [sys.executable, "-c", USE_AND_WAIT, str(empty_places.base)],
        cwd=PROJECT_ROOT,
        stdout=subprocess.PIPE,
    )
    assert killed.stdout is not None
    assert killed.stdout.readline() == b"in use\n"
    with ExitStack() as second:
        with ExitStack() as first:
            for stack in (first, second):
                stack.enter_context(embedded.in_use(empty_places, with_postgres=False))
            started = valkey.running_pid(empty_places)
        after_first = valkey.running_pid(empty_places)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        killed.stdout.close()
        after_kill = valkey.running_pid(empty_places)
    after_last = valkey.running_pid(empty_places)

    assert started == after_first == after_kill
    assert started is not None
    assert after_last is None


def test_servers_that_services_up_started_outlive_their_users(empty_places: Places) -> None:
    embedded.up(empty_places, with_postgres=False)
    with embedded.in_use(empty_places, with_postgres=False):
        pass

    assert valkey.running_pid(empty_places) is not None


def test_no_other_user_can_hold_the_locks(empty_places: Places) -> None:
    embedded.up(empty_places, with_postgres=False, throw_away=True)

    assert stat.S_IMODE(empty_places.locks.stat().st_mode) == 0o700
    files = list(empty_places.locks.iterdir())
    assert files
    assert {stat.S_IMODE(path.stat().st_mode) & 0o177 for path in files} == {0}
    assert {path.stat().st_uid for path in files} == {os.geteuid()}


@pytest.mark.skipif(not AS_ROOT, reason="only root gives a file to another user")
def test_a_lock_of_another_user_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch(0o666)
    os.chown(lock, unprivileged.server_user().uid, -1)
    with lock.open("w") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)

        with (
            pytest.raises(PermissionError, match="belongs to another user"),
            processes.exclusive(lock),
        ):
            pass


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_start_follows_no_link_that_the_servers_user_has_put_in_place_of_a_lock(
    link: Callable[[Path, Path], None], empty_places: Places, tmp_path: Path
) -> None:
    """Root would otherwise overwrite the file behind the link."""
    passwords = tmp_path / "passwords"
    passwords.write_text("root:x:0:0\n", "utf-8")
    lock = empty_places.postgres_data / "postmaster.pid"
    lock.parent.mkdir()
    link(passwords, lock)

    with pytest.raises(PermissionError, match="link"):
        postgres._disown_stale_locks(empty_places, places.server_user())

    assert passwords.read_text("utf-8") == "root:x:0:0\n"
