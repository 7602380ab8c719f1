"""The embedded servers are private, start once, and recover from every kind of death."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
import redis

from medproc import embedded
from medproc.embedded import EmbeddedError, Places, binaries, places, postgres, processes, valkey

AS_ROOT = os.geteuid() == 0


@pytest.fixture
def pair() -> Iterator[Places]:
    with embedded.throw_away_servers() as found:
        yield found


@pytest.fixture
def durable_pair() -> Iterator[Places]:
    """Provide servers with the settings of `services up`, which keep commits through a kill."""
    found = embedded.throw_away_places()
    try:
        embedded.up(found)
        yield found
    finally:
        embedded.throw_away(found)


def _write_row(found: Places) -> None:
    with psycopg.connect(found.owner_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")


def _read_row(found: Places) -> tuple[int]:
    with psycopg.connect(found.owner_url) as connection:
        row: tuple[int] | None = connection.execute("SELECT one FROM kept").fetchone()
    assert row is not None
    return row


def _pid(pid: int | None) -> int:
    assert pid is not None
    return pid


def test_no_other_user_reaches_the_data_or_the_sockets(pair: Places) -> None:
    private = [pair.postgres_data, pair.valkey_data, pair.sockets]

    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o700}
    assert stat.S_IMODE(pair.valkey_socket.stat().st_mode) == 0o700
    postgres_socket = pair.sockets / ".s.PGSQL.5432"
    assert stat.S_IMODE(postgres_socket.stat().st_mode) == 0o700
    assert pair.base.stat().st_mode & 0o044 == 0


def test_no_server_listens_on_a_network(pair: Places) -> None:
    with psycopg.connect(pair.database_url) as connection:
        listening = connection.execute("SHOW listen_addresses").fetchone()
    client = redis.Redis.from_url(pair.redis_url)

    port = client.config_get("port")

    client.close()
    assert listening == ("",)
    assert port == {"port": "0"}


@pytest.mark.skipif(not AS_ROOT, reason="only root changes the servers' user")
def test_root_starts_the_servers_as_an_unprivileged_user(pair: Places) -> None:
    owners = {path.stat().st_uid for path in (pair.postgres_data, pair.valkey_data, pair.sockets)}

    assert owners == {places.server_user().uid}
    assert 0 not in owners


def test_text_sorts_and_compares_the_same_on_every_machine(pair: Places) -> None:
    with psycopg.connect(pair.database_url) as connection:
        row = connection.execute(
            "SELECT datlocprovider, datlocale, pg_encoding_to_char(encoding)"
            " FROM pg_database WHERE datname = current_database()"
        ).fetchone()

    assert row == ("b", "C.UTF-8", "UTF8")


def test_starting_twice_at_once_gives_one_pair() -> None:
    found = embedded.throw_away_places()
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda _: embedded.up(found, throw_away=True), range(4)))

        first = [server.pid for server in embedded.status(found)]
        embedded.up(found, throw_away=True)

        assert [server.pid for server in embedded.status(found)] == first
        assert all(server.running for server in embedded.status(found))
    finally:
        embedded.throw_away(found)


def test_a_killed_postgres_is_recovered_with_what_it_held(durable_pair: Places) -> None:
    _write_row(durable_pair)
    killed = _pid(postgres.running_pid(durable_pair))
    processes.stop(killed, signal.SIGKILL, seconds=10)

    assert not embedded.status(durable_pair)[0].running
    embedded.up(durable_pair)

    assert _read_row(durable_pair) == (1,)


def test_a_killed_valkey_is_recovered(pair: Places) -> None:
    killed = _pid(valkey.running_pid(pair))
    processes.stop(killed, signal.SIGKILL, seconds=10)

    assert not embedded.status(pair)[1].running
    embedded.up(pair, throw_away=True)

    assert embedded.status(pair)[1].running


def test_a_lock_whose_process_id_is_now_another_programs_is_taken_over(pair: Places) -> None:
    _write_row(pair)
    lock = pair.postgres_data / "postmaster.pid"
    socket_lock = pair.sockets / ".s.PGSQL.5432.lock"
    before = lock.read_text("utf-8"), socket_lock.read_text("utf-8")
    embedded.down(pair)
    owner = places.server_user()
    other = processes.detach(
        ["sleep", "60"], user=owner, cwd=Path("/"), log=pair.postgres_data / "other.log"
    )
    try:
        for path, text in zip((lock, socket_lock), before, strict=True):
            path.write_text("\n".join([str(other), *text.splitlines()[1:]]) + "\n", "utf-8")
            os.chown(path, owner.uid, owner.gid)

        assert postgres.running_pid(pair) is None
        embedded.up(pair, throw_away=True)

        assert _read_row(pair) == (1,)
        assert processes.command_line(other)
    finally:
        os.kill(other, signal.SIGKILL)


def test_half_made_data_of_a_killed_start_is_replaced() -> None:
    found = embedded.throw_away_places()
    half = found.base / "postgres.partial"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n", "utf-8")
    try:
        embedded.up(found, with_valkey=False, throw_away=True)

        assert embedded.status(found)[0].running
        assert not half.exists()
    finally:
        embedded.throw_away(found)


def test_down_stops_both_and_says_so_once(pair: Places) -> None:
    assert embedded.down(pair) == ["PostgreSQL", "Valkey"]
    assert embedded.down(pair) == []
    assert [server.pid for server in embedded.status(pair)] == [None, None]


def test_a_missing_binary_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "POSTGRES_WHEEL", "no_such_wheel")
    monkeypatch.setattr(binaries, "VALKEY_WHEEL", "no_such_wheel")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = Places(base=tmp_path, sockets=tmp_path)
    user = places.server_user()

    with pytest.raises(EmbeddedError, match="PostgreSQL's binaries are missing") as first:
        binaries.postgres_binaries(found, user)
    with pytest.raises(EmbeddedError, match="Valkey's binary is missing") as second:
        binaries.valkey_binary(found, user)

    assert "\n" not in f"{first.value}{second.value}"


def test_without_the_wheel_a_server_on_the_path_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "VALKEY_WHEEL", "no_such_wheel")
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)

    found = binaries.valkey_binary(Places(base=tmp_path, sockets=tmp_path), places.server_user())

    assert found == program


@pytest.mark.skipif(not AS_ROOT, reason="only root's servers run as another user")
def test_binaries_in_a_folder_that_only_root_enters_are_copied_and_the_folder_stays_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    for name in (binaries.POSTGRES_WHEEL, binaries.VALKEY_WHEEL):
        installed = binaries._package_folder(name)
        assert installed is not None
        shutil.copytree(
            installed, closed / name, ignore=shutil.ignore_patterns("pginstall", "include")
        )
        libraries = installed.parent / f"{name}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, closed / libraries.name)
    monkeypatch.syspath_prepend(str(closed))
    found = embedded.throw_away_places()
    try:
        embedded.up(found, throw_away=True)

        assert all(server.running for server in embedded.status(found))
        command = processes.command_line(_pid(postgres.running_pid(found)))
        assert Path(command[0]).is_relative_to(found.binaries)
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    finally:
        embedded.throw_away(found)


def test_sockets_of_a_deep_folder_get_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid or 12345)
    deep = tmp_path.joinpath(*["a-rather-long-name-of-a-folder"] * 4)
    monkeypatch.setattr(
        "medproc.private.folder", lambda path, **_: path.mkdir(parents=True, exist_ok=True)
    )

    found = places.places_of(deep)

    assert found.base.is_relative_to(deep)
    path = found.sockets / places.LONGEST_SOCKET_NAME
    assert len(os.fsencode(path)) <= places.MAX_SOCKET_PATH
    with socket.socket(socket.AF_UNIX) as probe, pytest.raises(FileNotFoundError):
        probe.connect(str(path))


def test_a_new_clone_in_the_place_of_an_old_one_does_not_find_its_records(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    first = places.places_of(folder)
    again = places.places_of(folder)
    shutil.rmtree(folder)

    second = places.places_of(folder)

    assert first == again
    if AS_ROOT:
        assert second.base != first.base


def test_servers_whose_session_was_killed_are_swept_by_the_next() -> None:
    left = embedded.throw_away_places()
    embedded.up(left, with_postgres=False, throw_away=True)
    (left.base / "owner").write_text(str(2**22 + 1), "utf-8")

    fresh = embedded.throw_away_places()

    embedded.throw_away(fresh)
    assert not left.base.exists()
