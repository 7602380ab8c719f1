"""The parts of `make up`: the port, the first user, survivors of a kill, logs, and owners."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from medproc import children, ports, private, rotation, supervisor, unprivileged
from medproc.embedded import places, processes
from medproc.env import PROJECT_ROOT
from medproc.stop_signal import StopSignal
from pipeline.documents import storage
from tests.support.plain_user import as_plain_user, newcomer, plain_folder

AS_ROOT = os.geteuid() == 0
RUN_A_CHILD = """
import os, signal
os.environ["DJANGO_SETTINGS_MODULE"] = "medproc.settings"
import django
django.setup()
from medproc.children import children
with children() as running:
    running.start("emulator", "gemini_emulator", "--port", "0")
    print(running.started[0].process.pid, running._leash.pid, flush=True)
    signal.pause()
"""
"""A supervisor with one child, which needs no server."""


@pytest.mark.parametrize("text", ["99999", "0", "abc", "", "-1", "80.0", "²", "8" * 5000])
def test_a_wrong_port_gives_one_line(text: str) -> None:
    with pytest.raises(ports.PortError) as raised:
        ports.port_number(text)

    assert str(raised.value).startswith("PORT must be a number from 1 to 65535; ")
    assert "\n" not in str(raised.value)


def test_a_taken_port_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(ports.PortError, match=f"^Port {port} is taken; choose another"):
            ports.refuse_unusable(port)


def test_a_port_of_root_gives_one_line() -> None:
    with plain_folder() as folder:
        up = ("-m", "medproc.supervisor", "up", "--port", "80")
        as_user = as_plain_user(folder, *up, environment=newcomer(folder / "var"))

    assert as_user.returncode == 1
    assert as_user.stderr == "Port 80 is for root; choose another: make up PORT=8001\n"


@pytest.mark.skipif(not AS_ROOT, reason="only root may open the port of root")
def test_a_port_that_the_consoles_user_cannot_open_gives_one_line() -> None:
    with pytest.raises(ports.PortError, match=r"^Port 80 is for root, and the console runs as "):
        ports.refuse_unusable(80)


def test_children_have_as_long_as_a_step_may_take_to_drain(settings: Any) -> None:
    settings.TIME_SCALE = 1.0
    settings.STOP_GRACE_S = 120.0

    assert children.grace_s() == 135.0


@pytest.mark.django_db
def test_the_demo_user_is_created_once_and_never_again(settings: Any, tmp_path: Path) -> None:
    settings.MEDPROC_DATA_DIR, settings.EMBEDDED_POSTGRES = tmp_path, True
    users = get_user_model().objects

    supervisor._create_demo_user()
    first = supervisor._demo_login()
    users.get(username="demo").delete()
    supervisor._create_demo_user()
    after_deletion = supervisor._demo_login()

    assert first == [f"Log in as demo with the password {(tmp_path / 'demo-password').read_text()}"]
    assert after_deletion[0].startswith("Log in as one of your own users")
    assert not users.filter(username="demo").exists()


@pytest.mark.django_db
def test_a_changed_demo_user_stays_changed(settings: Any, tmp_path: Path) -> None:
    settings.MEDPROC_DATA_DIR, settings.EMBEDDED_POSTGRES = tmp_path, True
    supervisor._create_demo_user()
    demo = get_user_model().objects.get(username="demo")
    demo.set_password("a password of the operator")
    demo.is_superuser = False
    demo.save()

    supervisor._create_demo_user()
    lines = supervisor._demo_login()

    demo.refresh_from_db()
    assert lines == ["Log in as demo with the password that you have set."]
    assert demo.check_password("a password of the operator")
    assert not demo.is_superuser


@pytest.mark.django_db
def test_an_older_installation_without_its_demo_user_gets_none(
    settings: Any, tmp_path: Path
) -> None:
    settings.MEDPROC_DATA_DIR, settings.EMBEDDED_POSTGRES = tmp_path, True
    (tmp_path / "demo-password").write_text("of an earlier version", "utf-8")
    get_user_model().objects.create_superuser("operator")

    supervisor._create_demo_user()

    assert not get_user_model().objects.filter(username="demo").exists()


@pytest.fixture
def killed(settings: Any) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Provide a supervisor, its child and its leash."""
    with plain_folder() as folder:
        settings.MEDPROC_DATA_DIR = folder / "var"
        process = subprocess.Popen(
            [sys.executable, "-c", RUN_A_CHILD],
            cwd=PROJECT_ROOT,
            env=newcomer(folder / "var", TIME_SCALE="0.05", MEDPROC_PROVIDER="local"),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        child, leash = map(int, process.stdout.readline().split())
        yield process, child, leash
        process.kill()
        process.communicate()
        processes.stop(child, signal.SIGKILL, seconds=10)


def test_the_children_of_a_killed_supervisor_end(
    killed: tuple[subprocess.Popen[str], int, int],
) -> None:
    process, child, _ = killed

    process.kill()

    assert processes.wait_for(lambda: not processes.command_line(child), seconds=60)
    children.refuse_beside_survivors(StopSignal())


def test_a_start_names_processes_that_survived_a_kill(
    killed: tuple[subprocess.Popen[str], int, int],
) -> None:
    process, child, leash = killed
    processes.stop(leash, signal.SIGKILL, seconds=10)
    process.kill()
    process.wait()

    with pytest.raises(children.SurvivorsError) as raised:
        children.refuse_beside_survivors(StopSignal())

    assert str(raised.value) == (
        f"Processes of a killed start still run: emulator (process {child}); "
        f"end them with `kill {child}`, then start again"
    )


def test_a_start_beside_a_living_supervisor_is_no_survivor(
    killed: tuple[subprocess.Popen[str], int, int],
) -> None:
    children.refuse_beside_survivors(StopSignal())

    assert killed[0].poll() is None


def test_a_log_is_rotated_while_its_writer_keeps_it_open(tmp_path: Path) -> None:
    log = tmp_path / "workers.log"
    writer = private.append(log)
    try:
        for number in range(rotation.COPIES + 2):
            os.truncate(log, rotation.MAX_BYTES)
            os.write(writer, f"the end of {number}\n".encode())
            assert rotation.rotate(log)
            os.write(writer, b"next\n")
    finally:
        os.close(writer)

    copies = sorted(tmp_path.glob("workers.log.*"))
    assert [path.suffix for path in copies] == [".1", ".2", ".3"]
    assert [path.read_bytes()[-2:-1] for path in copies] == [b"4", b"3", b"2"]
    assert log.read_bytes() == b"next\n"
    assert not rotation.rotate(log)


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_in_the_place_of_a_log_is_neither_written_nor_emptied(
    link: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    (tmp_path / "precious").write_bytes(b"x" * rotation.MAX_BYTES)
    link(tmp_path / "precious", tmp_path / "workers.log")

    assert not rotation.rotate(tmp_path / "workers.log")
    with pytest.raises(OSError, match=r"workers\.log"):
        private.append(tmp_path / "workers.log")


def test_the_logs_of_processes_and_servers_are_rotated_together(
    settings: Any, tmp_path: Path
) -> None:
    settings.MEDPROC_DATA_DIR = tmp_path
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "console.log").write_bytes(b"x" * rotation.MAX_BYTES)

    assert settings.PERIODIC_TASKS["rotate_logs"][1] == "medproc.rotation.rotate_logs"
    assert rotation.rotate_logs() == "rotated 1 logs"
    assert rotation.rotate_logs() == ""


def test_what_any_command_stores_belongs_to_the_workers_user() -> None:
    stored = storage.store(io.BytesIO(b"bytes of a record"))

    with storage.local_path(stored.key) as path:
        owners = {found.stat().st_uid for found in (path, path.parent, path.parent.parent)}
    storage.discard(stored.key)

    assert owners == {unprivileged.owner_of_data()[0]}


@pytest.mark.skipif(not AS_ROOT, reason="only root hands a folder over")
def test_a_folder_of_root_that_is_not_medproc_s_keeps_its_owner(tmp_path: Path) -> None:
    uid, gid = unprivileged.owner_of_data()
    (tmp_path / "precious").touch()

    with pytest.raises(PermissionError, match="is a folder of root, and not of medproc"):
        private.handed_over(tmp_path, uid=uid, gid=gid)

    assert {path.stat().st_uid for path in (tmp_path, tmp_path / "precious")} == {0}


@pytest.mark.parametrize("name", ["../../etc/x", "", "abc", "0123456789ab\n"])
def test_a_changed_name_of_the_installation_leads_root_nowhere(tmp_path: Path, name: str) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "instance").write_text(name, "utf-8")

    with pytest.raises(PermissionError, match="does not hold a name of medproc"):
        places.places_of(tmp_path / "var")


def test_a_postgresql_that_is_away_gives_one_line(tmp_path: Path) -> None:
    url = "postgresql://root:hunter2@127.0.0.1:1/records"
    environment = newcomer(
        tmp_path / "var", DATABASE_URL=url, REDIS_URL="redis://127.0.0.1:1/0", SECRET_KEY="x" * 50
    )

    up = subprocess.run(
        [sys.executable, "-m", "medproc.supervisor", "up", "--port", "8999"],
        cwd=PROJECT_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert up.returncode == 1
    assert up.stderr.startswith("PostgreSQL cannot be reached at 127.0.0.1:1 (DATABASE_URL)")
    assert up.stderr.count("\n") == 1
    assert "hunter2" not in up.stderr


@pytest.mark.skipif(not AS_ROOT, reason="only root hands a folder over")
def test_a_data_folder_of_root_is_handed_over_once_with_its_files(tmp_path: Path) -> None:
    uid, gid = unprivileged.owner_of_data()
    data = tmp_path / "var"
    (data / "files").mkdir(parents=True)
    (data / "files" / "record").touch()
    (data / "instance").touch()
    (data / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").touch()

    private.handed_over(data, uid=uid, gid=gid)

    found = [data, data / "files", data / "files" / "record", data / "link"]
    assert {path.lstat().st_uid for path in found} == {uid}
    assert (tmp_path / "elsewhere").stat().st_uid == 0
