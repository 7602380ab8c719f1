"""The reader's child has no root, no network, and no file but its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from medproc import unprivileged
from medproc.env import PROJECT_ROOT
from pipeline.documents import reader
from pipeline.documents.reader import isolation, syscall_filter
from pipeline.documents.reader.types import ReaderLimits
from pipeline.documents.reader.watchdog import WatchedChild
from pipeline.operations import health

AS_ROOT = os.geteuid() == 0
SAMPLE = PROJECT_ROOT / "samples" / "lab_5p_8enc.pdf"

pytestmark = pytest.mark.skipif(
    isolation.gap() is not None, reason=f"this system cannot isolate: {isolation.gap()}"
)

ATTACK = """
import ctypes, fcntl, json, os, resource, signal, socket, subprocess, sys, threading, time
from pathlib import Path
from pipeline.documents.reader import isolation, syscall_filter
port, unix, folder, victim = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
own, other = folder / "own.pdf", folder / "other.pdf"
began = time.perf_counter()
isolation.enter(own)
took_ms = (time.perf_counter() - began) * 1000
def tcp(): socket.create_connection(("127.0.0.1", port), timeout=2)
def unix_socket(): socket.socket(socket.AF_UNIX).connect(unix)
def pair(): socket.socketpair()
def write_beside(): (folder / "new").write_bytes(b"x")
def overwrite(): os.open(other, os.O_WRONLY)
def truncate(): os.truncate(other, 0)
def append(): os.open(other, os.O_RDONLY | os.O_APPEND | os.O_CREAT)
def delete(): os.unlink(other)
def rename(): os.rename(other, folder / "moved")
def link(): os.link(other, folder / "linked")
def make_folder(): os.mkdir(folder / "made")
def mode(): os.chmod(other, 0o777)
def read_other(): other.read_bytes()
def list_folder(): os.listdir(folder)
def passwords(): Path("/etc/passwd").read_bytes()
def temporary(): os.open("/tmp/medproc-attack", os.O_CREAT | os.O_WRONLY)
def run(): subprocess.run(["/bin/true"])
def kill(): os.kill(victim, signal.SIGKILL)
def group(): os.killpg(victim, signal.SIGKILL)
def ptrace():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, victim, 0, 0) < 0: raise PermissionError
def limit(): resource.prlimit(victim, resource.RLIMIT_CPU, (1, 1))
def slow(): os.setpriority(os.PRIO_PROCESS, victim, 19)
def owner(): fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, victim)
def ioctl_owner(): fcntl.ioctl(os.pipe()[0], 0x8901, victim.to_bytes(4, "little"))
def shared_memory():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.shmget(0, 4096, 0o1600) < 0: raise PermissionError
def fork():
    if os.fork() == 0: os._exit(0)
def user_namespace():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000) < 0: raise PermissionError
attacks = [tcp, unix_socket, pair, write_beside, overwrite, truncate, append, delete, rename, link,
    make_folder, mode, read_other, list_folder, passwords, temporary, run, kill, group, ptrace,
    limit, slow, owner, ioctl_owner, shared_memory, fork, user_namespace]
succeeded = []
for attack in attacks:
    try: attack()
    except PermissionError: continue
    except BaseException as error: succeeded.append(f"{attack.__name__}: {error!r}")
    else: succeeded.append(attack.__name__)
import email.mime.multipart
threading.Thread(target=time.time).start()
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
print(json.dumps({"succeeded": succeeded, "uids": os.getresuid(), "groups": os.getgroups(),
    "own": len(own.read_bytes()), "took_ms": took_ms}))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Provide a folder of the service's user, beside which root's private folders stay closed."""
    with tempfile.TemporaryDirectory(prefix="medproc-isolation-") as name:
        path = Path(name)
        for file in ("own.pdf", "other.pdf"):
            (path / file).write_bytes(SAMPLE.read_bytes())
        uid, gid = unprivileged.owner_of_data()
        for each in (path, *path.iterdir()):
            os.chown(each, uid, gid)
        yield path


def _attack(folder: Path) -> dict[str, object]:
    # The workers are processes of the reader's own user.
    uid, gid = unprivileged.owner_of_data()
    command = ["/bin/sleep", "60"]
    victim = subprocess.Popen(command, start_new_session=True, user=uid, group=gid)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(folder / "unix"))
        unix.listen()
        (folder / "unix").chmod(0o777)
        arguments = [server.getsockname()[1], folder / "unix", folder, victim.pid]
        result = subprocess.run(
            [sys.executable, "-c", ATTACK, *map(str, arguments)],
            # A folder of records is no code, even if sys.path names the folder.
            env={"PYTHONPATH": f"{PROJECT_ROOT}{os.pathsep}{folder}"},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
    alive = victim.poll() is None
    victim.kill()
    victim.wait()
    assert result.returncode == 0, result.stderr
    assert alive
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_a_captured_reader_reaches_no_network_no_other_file_and_no_other_process(
    folder: Path,
) -> None:
    found = _attack(folder)

    assert found["succeeded"] == []
    assert found["own"] == SAMPLE.stat().st_size
    assert sorted(path.name for path in folder.iterdir()) == ["other.pdf", "own.pdf", "unix"]


@pytest.mark.skipif(not AS_ROOT, reason="only root leaves root")
def test_a_reader_that_root_starts_is_not_root(folder: Path) -> None:
    found = _attack(folder)

    uid = unprivileged.server_user().uid
    assert found["uids"] == [uid] * 3
    assert found["groups"] == []


def test_files_in_a_folder_that_only_root_enters_are_read(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "record.pdf").write_bytes(SAMPLE.read_bytes())
    (closed / "record.pdf").chmod(0o600)

    assert reader.probe(closed / "record.pdf").page_count == 5
    assert reader.slice_pages(closed / "record.pdf", [1])[0].content.startswith(b"%PDF-")


def test_the_child_that_reads_a_record_is_isolated_while_it_reads() -> None:
    child = WatchedChild(SAMPLE, ReaderLimits(), {"verb": "read", "first": 1, "last": 5})
    try:
        messages = child.messages()
        assert next(messages)[0] == "opened"

        status = Path(f"/proc/{child._process.pid}/status").read_text("ascii")
    finally:
        child.end()

    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    expected = unprivileged.owner_of_data()[0]
    assert facts["Uid"].split() == [str(expected)] * 4
    assert facts["NoNewPrivs"] == "1"
    assert facts["Seccomp"] == "2"
    assert int(facts["CapEff"], 16) == 0


def test_health_says_what_the_reader_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(syscall_filter.REFUSED, os.uname().machine)

    assert health._warnings() == [
        f"the reader is not isolated: the filter does not know the processor {os.uname().machine}"
    ]


@pytest.mark.skipif(not AS_ROOT, reason="only root stays root")
def test_health_says_that_processes_stay_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setenv("SSL_CERT_DIR", str(closed))

    (line,) = health._warnings()

    assert line.startswith("medproc runs as root: the user ")
    assert f" cannot read {closed}. " in line


def test_isolation_is_fast(folder: Path) -> None:
    """A child of root also builds its own view of the file system; a worker's child does not."""
    script = (
        "import sys, time; from pathlib import Path\n"
        "from medproc import unprivileged; from pipeline.documents.reader import isolation\n"
        "unprivileged.leave_root([*unprivileged.code_folders(), Path(sys.argv[1])])\n"
        "began = time.process_time(); isolation.enter(Path(sys.argv[1]))\n"
        "print((time.process_time() - began) * 1000)"
    )
    began = time.monotonic()
    result = subprocess.run(
        [sys.executable, "-c", script, str(folder / "own.pdf")],
        env={"PYTHONPATH": str(PROJECT_ROOT)},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )

    assert float(result.stdout) < 20, f"{result.stdout} ms of {time.monotonic() - began} s"
