"""The barrier around a guest: its process sees only the view of this machine.

User-mode Linux is a normal process with its user's rights, and its kernel may have an untrusted
patch, so any code may run in this process. The barrier is therefore around the process, not in the
guest: bubblewrap (the sandbox of Flatpak, unprivileged, in every distribution) starts it

* in a file system made from the view: read-only except for the run directory and the disk's data;
* with its own namespaces for processes, network, IPC and host name: it can neither signal nor trace
  nor connect to other processes of this machine;
* without capabilities, which no program can give back (no_new_privs), and for root as the user
  `nobody`: it cannot read files that other users may not read;
* bound to blklab: it dies with blklab, including all its processes.

Without this barrier, no guest starts.
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

from blklab.errors import MachineError, RunError
from blklab.rigs.kernel import supervise, view
from blklab.rigs.kernel.rundir import RunDirectory
from blklab.rigs.kernel.view import View

NOBODY = 65534
"""Debian's number of the user `nobody`, and the kernel's own."""
SCRATCH_MIB = 1024
"""The default size of a guest's run directory."""

# In addition to the guest's own memory: moved pages of the kernel's image, sockets.
_MEMORY_BESIDE_MIB = 64
_PROBE_S = 20.0
_SIZE, _DISABLE_USERNS = (0, 7), (0, 8)
"""Versions of bubblewrap with these options. Without the first, a file system in memory may use
half of the machine's memory."""
# Reports that the view is ready, and waits until the run directory is filled. No core dumps: a
# hostile program could write to the machine's directory of dumps.
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
        """Run `words` in the sandbox of the view `seen`."""
        root = os.geteuid() == 0
        return [
            self.path,
            *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
            *("--unshare-cgroup-try", "--new-session", "--die-with-parent", "--cap-drop", "ALL"),
            *([] if root else ["--unshare-user"]),
            # With its own user namespace it could use more of the kernel's interfaces than it
            # needs.
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
    """Run `words` in the sandbox after an :class:`Entry` releases them. RunError without a
    sandbox."""
    found = _found()
    if os.geteuid() == 0:
        _check_readable_by_nobody([image, *seen.programs.values()])
    begin = ["/bin/sh", "-c", _BEGIN, "sh", *words]
    made = found.command(seen, image, memory_mib, scratch_mib, begin)
    return [made[0], "--info-fd", str(supervise.INFO), *made[1:]]


def told() -> str:
    """The confinement of guests here. RunError if there is none."""
    return f"bubblewrap {'.'.join(map(str, _found().version))}"


@functools.cache
def _found() -> Bubblewrap:
    """A working bubblewrap, tried once."""
    refused = "blklab starts no guest without confinement"
    path = shutil.which("bwrap")
    if path is None:
        raise MachineError(f"{refused}: apt-get install bubblewrap")
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
        raise MachineError(
            f"{refused}, and bubblewrap cannot confine here ({why}); does this machine allow user "
            "namespaces? See the sysctls kernel.unprivileged_userns_clone, "
            "user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns"
        )
    return found


def _check_readable_by_nobody(files: Iterable[Path]) -> None:
    for path in files:
        if not path.is_file():
            continue
        mode = path.stat().st_mode
        # A file that its owner may execute is a program.
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
    """Binds it at its own place. bubblewrap would make parent directories accessible only to its
    user."""
    way = [word for parent in reversed(path.parents[:-1]) for word in ("--dir", str(parent))]
    return [*way, *_read_only(path, path)]


def _emptied(path: Path) -> list[str]:
    if path.is_dir():
        return ["--tmpfs", str(path), "--remount-ro", str(path)]
    return _read_only(Path("/dev/null"), path)


def _as_nobody() -> list[str]:
    """The command under root's bubblewrap, which has only the right to become another user."""
    rights = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
    return [
        *(word for right in rights for word in ("--cap-add", right)),
        *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"),
        *("--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"),
    ]


class Entry:
    """blklab's access between the creation of the view and the start of the guest. bubblewrap
    reports the number of its first process; the command that it starts reports that the view is
    ready, and waits.

    At this time no hostile code runs yet, and the run directory is in its place.
    """

    def __init__(self) -> None:
        self._info, info = os.pipe()
        self._ready, ready = os.pipe()
        go, self._go = os.pipe()
        self.theirs: tuple[int, ...] = (info, ready, go)
        """Descriptors to pass as :data:`supervise.INFO`, `READY` and `GO`."""
        self._ours: tuple[int, ...] = (self._info, self._ready, self._go)

    def given_on(self) -> None:
        """Close our copies of the passed ends."""
        for one in self.theirs:
            os.close(one)
        self.theirs = ()

    def enter(self) -> tuple[int, RunDirectory] | None:
        """A descriptor of the first process in the sandbox, with which all others end, and the run
        directory. None if the sandbox failed; the console has the reason."""
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
                # The process no longer waits: its number may have been reused.
                return None
            process, run, memory = handles
            if os.geteuid() == 0:
                for handle in (run, memory):
                    os.fchown(handle, NOBODY, NOBODY)
            undone.pop_all()
        os.close(memory)
        return process, RunDirectory(run, NOBODY if os.geteuid() == 0 else None)

    def let_go(self) -> None:
        """Start the guest."""
        # If it has ended, its exit code shows it.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._go, b"\n")

    def close(self) -> None:
        """End the waiting process."""
        self.given_on()
        for one in self._ours:
            os.close(one)
        self._ours = ()
