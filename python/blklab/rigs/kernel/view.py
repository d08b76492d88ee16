"""What a guest sees of this machine: the system's programs, and what a user shares with it.

A guest is hostile: its kernel may have been patched by anyone, and what its kernel may read on this
machine any program in it may read. So a guest sees what programs need to run, and beside that
only what the user names. All of it is read-only; :mod:`blklab.rigs.kernel.wall` sees to that.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from blklab.errors import InputError

HERE = Path("/run/blklab")
"""Where things of a guest lie inside. Wherever they lie outside, names inside are the same: how
long they are decides how much memory a guest has left."""
IMAGE = HERE / "linux"
"""Its kernel."""
RUN = HERE / "run"
"""The one directory that a guest may write to."""
DATA = RUN / "data"
"""The file with its disk's data, if there is one."""
MEMORY = Path("/dev/shm")
"""What its memory is made of."""

SYSTEM = tuple(
    map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"))
)
"""Programs, their libraries and their configuration."""

EMPTY = tuple(map(Path, ("/tmp", "/sys", "/mnt", "/root", "/home", "/var/tmp")))
"""Empty directories, which a guest can mount something on."""

PRIVATE: Mapping[str, str] = {
    ".ssh": "keys for other machines",
    ".gnupg": "private keys",
    ".pki": "private keys of certificates",
    ".aws": "keys of a cloud",
    ".azure": "keys of a cloud",
    ".oci": "keys of a cloud",
    ".config": "keys of clouds, sessions of browsers, tokens of gh, rclone and many others",
    ".docker": "passwords of registries",
    ".kube": "keys of clusters",
    ".local/share": "key rings, mail, history",
    ".local/state": "history",
    ".mozilla": "sessions and passwords",
    ".thunderbird": "mail and passwords",
    ".password-store": "passwords",
    ".cargo/credentials.toml": "a token of a registry",
    ".netrc": "passwords",
    ".git-credentials": "passwords",
    ".npmrc": "a token of a registry",
    ".pypirc": "a token of a registry",
    ".pgpass": "passwords of databases",
    ".my.cnf": "passwords of databases",
    ".vault-token": "a token",
    ".env": "passwords of services, by custom",
    ".bash_history": "commands, at times with passwords in them",
    ".zsh_history": "commands, at times with passwords in them",
    ".python_history": "commands, at times with passwords in them",
}
"""What is empty inside in any directory that is shared, and why."""

_OWN = tuple(map(Path, ("/tmp", "/run")))
"""Directories of which a guest has its own. What is shared below them is mounted once more."""
_NEVER = tuple(map(Path, ("/proc", "/sys", "/dev", "/run/blklab")))
"""Their content is this machine itself, not files."""
_TOO_MUCH = tuple(map(Path, ("/home", "/var", "/var/lib", "/var/log", "/var/tmp", "/dev/shm")))
"""Holds files of all users: not shared as a whole."""


@dataclass(frozen=True)
class View:
    """What one guest sees beside the system."""

    programs: Mapping[str, Path] = field(default_factory=dict)
    """Files of blklab's own, by the name that they have in :data:`HERE`."""
    shared: tuple[Path, ...] = ()
    """Files and directories, each at its own place, without what is :data:`PRIVATE`."""
    mountpoints: tuple[Path, ...] = ()
    """Directories that are to be there."""
    data: Path | None = None
    """A file that the guest may write to, as :data:`DATA`."""
    held: tuple[int, ...] = ()
    """Descriptors that stay open until the guest is gone, even if blklab is killed: locks."""

    def hidden_by_own(self) -> list[Path]:
        """Shared directories that a guest's own ``/tmp`` and ``/run`` hide."""
        return [
            path
            for path in self.shared
            if _within(path, _OWN) and stat.S_ISDIR(path.stat().st_mode)
        ]


@dataclass(frozen=True)
class Shared:
    """What a command line gives a guest to see."""

    paths: tuple[Path, ...]
    note: str | None
    """What a user may expect in the guest but does not find."""


def shared(command: Sequence[str], asked: Iterable[Path] = ()) -> Shared:
    """The current directory, unless that would be too much; the files and directories that the
    words of `command` name; and what was `asked` for. InputError if that is never shared.
    """
    found = [_checked(path) for path in asked]
    here = Path.cwd()
    why = too_much(here)
    note = None
    if why is None:
        found.append(here)
        if os.geteuid() == 0 and not _all_may_read(here):
            note = f"{here} is readable only for root: a guest runs as nobody, and cannot read it"
    elif not _within(here, SYSTEM):
        note = (
            f"{here} ({why}) is not shared with the guest, but only what the command names in it; "
            "to share a directory: --share DIR"
        )
    for word in command:
        path = _absolute(here / word)
        # By its name, and where it lies: a link is seen too.
        both = (path, path.resolve()) if word and _exists(path) else ()
        if all(too_much(one) is None and not is_private(one) for one in both):
            found += both
    outside = [path for path in dict.fromkeys(found) if not _within(path, SYSTEM)]
    return Shared(tuple(path for path in outside if not _within(path.parent, outside)), note)


def is_seen(path: Path) -> bool:
    """Whether every guest sees it."""
    return _within(path, SYSTEM)


def too_much(path: Path) -> str | None:
    """Why the directory `path` is not shared as a whole; None if it is."""
    if _within(path, _NEVER):
        return "the machine itself"
    if not path.is_dir():
        return None
    if path in (*_TOO_MUCH, Path("/")):
        return "files of all users"
    if path in _OWN:
        return "a guest has its own"
    if path == Path("/root") or path.parent == Path("/home"):
        return "a home directory"
    home = _home()
    if home is not None and home.is_relative_to(path):
        return "a home directory" if home == path else "with home directories"
    return None


def is_private(path: Path) -> bool:
    """Whether it is, or lies in, what :data:`PRIVATE` lists."""
    return any(f"/{name}/" in f"{path}/" for name in PRIVATE)


def masked(paths: Iterable[Path]) -> Iterator[Path]:
    """What is empty inside, of directories that are shared and of ``/etc``."""
    yield from _secrets_of_the_system()
    for directory in paths:
        for name in PRIVATE:
            path = directory / name
            if path.exists() and not path.is_symlink():
                yield path


@functools.cache
def _secrets_of_the_system() -> tuple[Path, ...]:
    """Files below ``/etc`` that this user may read through a group, and others may not. Root's
    guests run as the user `nobody`, which may not either."""
    if os.geteuid() == 0:
        return ()
    found: list[Path] = []
    directories = ["/etc"]
    while directories:
        try:
            entries = list(os.scandir(directories.pop()))
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                continue
            mode = entry.stat(follow_symlinks=False).st_mode
            wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
            if mode & wanted != wanted:
                found += [Path(entry.path)] if os.access(entry.path, os.R_OK) else []
            elif stat.S_ISDIR(mode):
                directories.append(entry.path)
    return tuple(sorted(found))


def _checked(asked: Path) -> Path:
    path = _absolute(asked.expanduser())
    if not path.exists():
        raise InputError(f"--share: {asked} does not exist")
    if is_private(path) or is_private(path.resolve()):
        raise InputError(f"--share: {asked} is private; a guest could pass on what it reads")
    if why := too_much(path) or too_much(path.resolve()):
        raise InputError(
            f"--share: {asked} ({why}) is never shared as a whole; expected a directory in it"
        )
    return path


def _within(path: Path, directories: Iterable[Path]) -> bool:
    return any(path.is_relative_to(directory) for directory in directories)


def _all_may_read(directory: Path) -> bool:
    wanted = stat.S_IROTH | stat.S_IXOTH
    return directory.stat().st_mode & wanted == wanted


def _absolute(path: Path) -> Path:
    """Without ``..``, but with its symbolic links: a guest is to find it by this name."""
    return Path(os.path.normpath(Path.cwd() / path))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False  # a word too long for a name, or not allowed to be looked at


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except (OSError, RuntimeError):
        return None
