"""The barrier around a guest: its process sees the view and nothing else of this machine.

User-mode Linux is a process like others, with its user's rights, and what its kernel was patched
with is anyone's: a guest is taken to run any code in that process. So the wall is around the
process, not in the guest: bubblewrap (the sandbox of Flatpak, without privileges of its own, in
every distribution) starts it

* in a file system made of the view: read-only but for the run directory and the disk's data;
* with process numbers, network, IPC and host name of its own: it can neither signal nor trace nor
  connect to anything of this machine;
* without capabilities, which no program gives it back (no_new_privs), and under root's hands
  as `nobody`: what others may not read it may not either;
* bound to blklab: it dies with it, and no process of it stays.

Where there is no wall, no guest is started.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import select
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import RunError
from blklab.rigs.kernel import supervise, view
from blklab.rigs.kernel.rundir import RunDirectory
from blklab.rigs.kernel.view import View

NOBODY = 65534
"""Debian's, and the kernel's own number for it."""
SCRATCH_MIB = 1024
"""How much a guest's run directory has room for."""

# Beside the guest's own memory: pages of the kernel's image that it moves there, sockets.
_MEMORY_BESIDE_MIB = 64
_PROBE_S = 20.0
_SIZE, _DISABLE_USERNS = (0, 7), (0, 8)
"""Versions of bubblewrap with these options. Without the first a file system in memory has room
for half of the machine's."""
# Says that the view is made, and waits until the run directory is filled. A hostile program that
# dumps its memory would write where the machine keeps such dumps.
_BEGIN = (
    f"ulimit -c 0; echo >&{supervise.READY} && read -r go <&{supervise.GO} && "
    f'exec "$@" {supervise.READY}>&- {supervise.GO}<&-'
)


@dataclass(frozen=True)
class Bubblewrap:
    """The program, as installed here."""

    path: str
    version: tuple[int, ...]

    def command(
        self, seen: View, image: Path, memory_mib: int, scratch_mib: int, words: Sequence[str]
    ) -> list[str]:
        """Run `words` behind the wall, with `seen` before them."""
        root = os.geteuid() == 0
        return [
            self.path,
            *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
            *("--unshare-cgroup-try", "--new-session", "--die-with-parent", "--cap-drop", "ALL"),
            *([] if root else ["--unshare-user"]),
            # With a user name space of its own it could ask the kernel for more than it needs.
            *([] if root or self.version < _DISABLE_USERNS else ["--disable-userns"]),
            *_system(),
            *("--proc", "/proc", "--dev", "/dev"),
            *self._room(view.MEMORY, memory_mib + _MEMORY_BESIDE_MIB),
            *self._room(view.RUN, scratch_mib),
            *(word for place in (*view.EMPTY, *seen.mountpoints) for word in ("--dir", str(place))),
            *_read_only(image, view.IMAGE),
            *(
                w
                for name, path in seen.programs.items()
                for w in _read_only(path, view.HERE / name)
            ),
            *(word for path in sorted(seen.shared) for word in _shared(path)),
            *(word for path in view.masked(seen.shared) for word in _emptied(path)),
            *(["--bind", str(seen.data), str(view.DATA)] if seen.data else []),
            *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"),
            *(_as_nobody() if root else []),
            *words,
        ]

    def _room(self, place: Path, size_mib: int) -> list[str]:
        size = ["--size", str(size_mib << 20)] if self.version >= _SIZE else []
        return [*size, "--tmpfs", str(place)]


def command(
    seen: View, image: Path, memory_mib: int, scratch_mib: int, words: Sequence[str]
) -> list[str]:
    """Run `words` behind the wall once an :class:`Entry` lets them go. RunError without a wall."""
    found = _found()
    if os.geteuid() == 0:
        _check_nobody_may_read([image, *seen.programs.values()])
    begin = ["/bin/sh", "-c", _BEGIN, "sh", *words]
    made = found.command(seen, image, memory_mib, scratch_mib, begin)
    return [made[0], "--info-fd", str(supervise.INFO), *made[1:]]


def told() -> str:
    """What confines guests here. RunError if nothing does."""
    return f"bubblewrap {'.'.join(map(str, _found().version))}"


@functools.cache
def _found() -> Bubblewrap:
    """The one that works here, tried once."""
    refused = "blklab starts no guest without confinement"
    path = shutil.which("bwrap")
    if path is None:
        raise RunError(f"{refused}: apt-get install bubblewrap")
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = Bubblewrap(path, tuple(int(digits) for digits in re.findall(r"\d+", said)[:3]))
    tried = subprocess.run(
        found.command(View(), Path("/bin/true"), 0, 1, ["/bin/true"]),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_PROBE_S,
    )
    if tried.returncode != 0:
        why = (tried.stderr.strip().splitlines() or ["it failed without a message"])[-1]
        raise RunError(
            f"{refused}, and bubblewrap cannot confine here ({why}); does this machine allow user "
            "namespaces? See the sysctls kernel.unprivileged_userns_clone, "
            "user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns"
        )
    return found


def _check_nobody_may_read(files: Iterable[Path]) -> None:
    for path in files:
        if not path.is_file():
            continue
        mode = path.stat().st_mode
        # What its owner may run is a program.
        wanted = stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
        if mode & wanted != wanted:
            raise RunError(
                f"root's guests run as user nobody, which may not read {path}: chmod a+rX {path}"
            )


def _system() -> Iterator[str]:
    for path in view.SYSTEM:
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from _read_only(path, path)


def _read_only(path: Path, place: Path) -> list[str]:
    return ["--ro-bind", str(path), str(place)]


def _shared(path: Path) -> list[str]:
    """At its own place. Directories on the way there that bubblewrap makes are its user's alone."""
    way = [word for parent in reversed(path.parents[:-1]) for word in ("--dir", str(parent))]
    return [*way, *_read_only(path, path)]


def _emptied(path: Path) -> list[str]:
    if path.is_dir():
        return ["--tmpfs", str(path), "--remount-ro", str(path)]
    return _read_only(Path("/dev/null"), path)


def _as_nobody() -> list[str]:
    """What root's bubblewrap runs, which has the right to become another user and no other."""
    rights = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
    return [
        *(word for right in rights for word in ("--cap-add", right)),
        *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"),
        *("--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"),
    ]


class Entry:
    """blklab's entry: after the view is made and before the guest begins.

    bubblewrap tells the number of its first process; what it starts says when the view is made, and
    waits. By then nothing hostile runs, and the run directory is where it is to be.
    """

    def __init__(self) -> None:
        self._info, info = os.pipe()
        self._ready, ready = os.pipe()
        go, self._go = os.pipe()
        self.theirs: tuple[int, ...] = (info, ready, go)
        """To be given on as :data:`supervise.INFO`, `READY` and `GO`."""
        self._ours: tuple[int, ...] = (self._info, self._ready, self._go)

    def given_on(self) -> None:
        """The others have theirs."""
        for one in self.theirs:
            os.close(one)
        self.theirs = ()

    def enter(self) -> tuple[int, RunDirectory] | None:
        """A descriptor of the first process behind the wall, with which all others end, and the
        run directory. None if the wall could not be made; the console says why."""
        info = b"".join(iter(lambda: os.read(self._info, 4096), b""))
        if not info or not os.read(self._ready, 1):
            return None
        first = json.loads(info)["child-pid"]
        with contextlib.ExitStack() as undone:
            try:
                handles = [os.pidfd_open(first)]
                undone.callback(os.close, handles[0])
                for place in (view.RUN, view.MEMORY):
                    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
                    handles.append(os.open(f"/proc/{first}/root{place}", flags))
                    undone.callback(os.close, handles[-1])
            except OSError:
                return None
            poll = select.poll()
            poll.register(self._go, select.POLLERR)
            if poll.poll(0):
                # Nothing waits any more: the number may have become another process's.
                return None
            process, run, memory = handles
            if os.geteuid() == 0:
                for handle in (run, memory):
                    os.fchown(handle, NOBODY, NOBODY)
            undone.pop_all()
        os.close(memory)
        return process, RunDirectory(run, NOBODY if os.geteuid() == 0 else None)

    def let_go(self) -> None:
        """The guest begins."""
        # If none is there any more, its end says so.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._go, b"\n")

    def close(self) -> None:
        """End the waiting process."""
        self.given_on()
        for one in self._ours:
            os.close(one)
        self._ours = ()
