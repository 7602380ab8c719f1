"""A seccomp filter: the calls of the kernel that a reader never needs, refused with EPERM.

The filter needs no rights, and containers allow it. It also closes unix sockets, which a network
namespace leaves open. The tables follow the kernel's syscall tables of x86-64 and arm64.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Sequence

# libseccomp and its binding were not used: the filter is short, and a system library of C is no
# part of a wheel. bubblewrap and nsjail are programs of their own and start more slowly.
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_SECCOMP = 21
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _TSYNC = 1, 1
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000

_LOAD, _EQUALS, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_REFUSE, _ABSENT = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
_NUMBER, _ARCH = 0, 4
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NEW_NAMESPACES = 0x7E020080

REFUSED: dict[str, dict[str, int]] = {
    "x86_64": {
        "socket": 41, "socketpair": 53, "io_uring_setup": 425,
        "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "ptrace": 101,
        "process_vm_readv": 310, "process_vm_writev": 311, "process_madvise": 440,
        "pidfd_open": 434, "pidfd_getfd": 438, "pidfd_send_signal": 424,
        "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "tkill": 200,
        "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "open_tree": 428,
        "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "mount_setattr": 442,
        "pivot_root": 155, "chroot": 161, "bpf": 321, "userfaultfd": 323, "perf_event_open": 298,
        "add_key": 248, "request_key": 249, "keyctl": 250, "open_by_handle_at": 304,
        "creat": 85, "truncate": 76, "rename": 82, "renameat": 264, "renameat2": 316,
        "unlink": 87, "unlinkat": 263, "rmdir": 84, "mkdir": 83, "mkdirat": 258,
        "mknod": 133, "mknodat": 259, "link": 86, "linkat": 265, "symlink": 88, "symlinkat": 266,
        "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452,
        "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260,
        "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "setxattrat": 463,
        "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "removexattrat": 466,
        "utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280,
        "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144,
        "sched_setattr": 314, "ioprio_set": 251, "shmget": 29, "shmat": 30, "shmctl": 31,
        "semget": 64, "semop": 65, "semctl": 66, "semtimedop": 220,
        "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "mq_open": 240, "mq_unlink": 241,
    },
    "aarch64": {
        "socket": 198, "socketpair": 199, "io_uring_setup": 425,
        "execve": 221, "execveat": 281, "ptrace": 117,
        "process_vm_readv": 270, "process_vm_writev": 271, "process_madvise": 440,
        "pidfd_open": 434, "pidfd_getfd": 438, "pidfd_send_signal": 424,
        "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240, "tkill": 130,
        "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "open_tree": 428,
        "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "mount_setattr": 442,
        "pivot_root": 41, "chroot": 51, "bpf": 280, "userfaultfd": 282, "perf_event_open": 241,
        "add_key": 217, "request_key": 218, "keyctl": 219, "open_by_handle_at": 265,
        "truncate": 45, "renameat": 38, "renameat2": 276,
        "unlinkat": 35, "mkdirat": 34, "mknodat": 33, "linkat": 37, "symlinkat": 36,
        "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "fchown": 55, "fchownat": 54,
        "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "setxattrat": 463,
        "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16, "removexattrat": 466,
        "utimensat": 88,
        "setpriority": 140, "sched_setparam": 118, "sched_setscheduler": 119,
        "sched_setattr": 274, "ioprio_set": 30, "shmget": 194, "shmat": 196, "shmctl": 195,
        "semget": 190, "semop": 193, "semctl": 191, "semtimedop": 192,
        "msgget": 186, "msgsnd": 189, "msgrcv": 188, "msgctl": 187, "mq_open": 180,
        "mq_unlink": 181,
    },
}  # fmt: skip
"""Calls that reach a network, another process or another program, or that change a file."""
_ABSENT_CALLS = {"openat2": 437, "clone3": 435}
"""Calls whose flags a filter cannot read; the C library then uses the older call."""
_OPENS: dict[str, dict[int, int]] = {"x86_64": {2: 1, 257: 2}, "aarch64": {56: 2}}
"""Calls that open a file, with the index of their flags."""
_KILLS: dict[str, Sequence[int]] = {"x86_64": (62, 234), "aarch64": (129, 131)}
"""kill and tgkill; abort() needs the second for its own process."""
_SIGNAL_OWNERS: dict[str, dict[int, Sequence[int]]] = {
    "x86_64": {72: (8, 15), 16: (0x8901, 0x8902)},
    "aarch64": {25: (8, 15), 29: (0x8901, 0x8902)},
}
"""fcntl and ioctl, with their commands that choose who gets the signals of a pipe: a way to kill
another process of the same user. Landlock closes the way from Linux 6.12 on."""
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE_THREAD = 0x00010000
"""A process of the reader's own would outlive the reader, which alone dies with its parent."""
_PRLIMIT = {"x86_64": 302, "aarch64": 261}
"""A limit of processor time kills another process of the same user, as a signal does."""


def obstacle() -> str | None:
    """Return why this system has no such filter; None if it has."""
    if not sys.platform.startswith("linux"):
        return f"{os.uname().sysname} has no seccomp"
    if os.uname().machine not in REFUSED or struct.calcsize("P") != 8:
        return f"the filter does not know the processor {os.uname().machine}"
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) < 0:
        return "this kernel has no seccomp"
    return None


def apply() -> None:
    """Refuse the calls from now on, in every thread and child. Raises OSError."""
    machine = os.uname().machine
    if obstacle() is not None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    libc = ctypes.CDLL(None, use_errno=True)
    code = program(machine, os.getpid())
    buffer = ctypes.create_string_buffer(code, len(code))
    head = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    filter_program = ctypes.create_string_buffer(head, len(head))
    refused = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(
        _SECCOMP[machine], _SET_MODE_FILTER, _TSYNC, filter_program
    )
    if refused:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def program(machine: str, pid: int) -> bytes:
    """Return the filter of process `pid` as instructions of classic BPF."""
    lines = [
        _step(_LOAD, _ARCH),
        _step(_EQUALS, _AUDIT_ARCH[machine], yes=1),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        lines += [_step(_AT_LEAST, _X32_BIT, no=1), _step(_RETURN, _REFUSE)]
    for number in REFUSED[machine].values():
        lines += [_step(_EQUALS, number, no=1), _step(_RETURN, _REFUSE)]
    for number in _ABSENT_CALLS.values():
        lines += [_step(_EQUALS, number, no=1), _step(_RETURN, _ABSENT)]
    for number, index in _OPENS[machine].items():
        lines += _refuse_bits(number, index, _WRITES)
    for number, commands in _SIGNAL_OWNERS[machine].items():
        lines += _refuse_commands(number, commands)
    lines += [
        _step(_EQUALS, _CLONE[machine], no=5),
        _step(_LOAD, _argument(0)),
        _step(_ANY_BIT, _NEW_NAMESPACES, yes=1),
        _step(_ANY_BIT, _CLONE_THREAD, yes=1),
        _step(_RETURN, _REFUSE),
        _step(_RETURN, _ALLOW),
    ]
    lines += [
        _step(_EQUALS, _PRLIMIT[machine], no=5),
        _step(_LOAD, _argument(0)),
        _step(_EQUALS, 0, yes=1),
        _step(_EQUALS, pid, no=1),
        _step(_RETURN, _ALLOW),
        _step(_RETURN, _REFUSE),
    ]
    for number in _KILLS[machine]:
        lines += [
            _step(_EQUALS, number, no=4),
            _step(_LOAD, _argument(0)),
            _step(_EQUALS, pid, no=1),
            _step(_RETURN, _ALLOW),
            _step(_RETURN, _REFUSE),
        ]
    return b"".join([*lines, _step(_RETURN, _ALLOW)])


def _refuse_bits(number: int, index: int, bits: int) -> list[bytes]:
    """Refuse the call `number` if its argument `index` has one of `bits`."""
    return [
        _step(_EQUALS, number, no=4),
        _step(_LOAD, _argument(index)),
        _step(_ANY_BIT, bits, no=1),
        _step(_RETURN, _REFUSE),
        _step(_RETURN, _ALLOW),
    ]


def _refuse_commands(number: int, commands: Sequence[int]) -> list[bytes]:
    """Refuse the call `number` with one of two commands as its second argument."""
    first, second = commands
    return [
        _step(_EQUALS, number, no=5),
        _step(_LOAD, _argument(1)),
        _step(_EQUALS, first, yes=1),
        _step(_EQUALS, second, no=1),
        _step(_RETURN, _REFUSE),
        _step(_RETURN, _ALLOW),
    ]


def _argument(index: int) -> int:
    """Return the place of the lower half of an argument; both processors are little-endian."""
    return 16 + 8 * index


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, value & 0xFFFFFFFF)
