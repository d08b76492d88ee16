"""The guest's view of this machine: the system's programs, and the files that the user shares.

A guest is hostile: its kernel may have an untrusted patch, and any program in the guest can read
everything that its kernel can read. So a guest sees the files that programs need, and otherwise
only those that the user names. All of them are read-only; :mod:`blklab.rigs.kernel.wall` enforces
this.
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
"""The directory of a guest's own files inside. Names inside do not depend on paths outside, because
their lengths affect the guest's free memory."""
IMAGE = HERE / "linux"
"""Its kernel."""
RUN = HERE / "run"
"""The only directory that a guest may write to."""
DATA = RUN / "data"
"""The file with its disk's data, if there is one."""
MEMORY = Path("/dev/shm")
"""The directory for its memory."""

SYSTEM = tuple(
    map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"))
)
"""Programs, their libraries and their configuration."""

EMPTY = tuple(map(Path, ("/tmp", "/sys", "/mnt", "/root", "/home", "/var/tmp")))
"""Empty directories, for a guest's own mounts."""

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
"""Names that are empty inside any shared directory, with the reason."""

_OWN = tuple(map(Path, ("/tmp", "/run")))
"""Directories that a guest has itself. Shared directories below them are mounted again."""
_NEVER = tuple(map(Path, ("/proc", "/sys", "/dev", "/run/blklab")))
"""Directories that show the machine itself, not files."""
_TOO_MUCH = tuple(map(Path, ("/home", "/var", "/var/lib", "/var/log", "/var/tmp", "/dev/shm")))
"""Holds files of all users: not shared as a whole."""


@dataclass(frozen=True)
class View:
    """The view of one guest, besides the system."""

    programs: Mapping[str, Path] = field(default_factory=dict)
    """blklab's own files, by their names in :data:`HERE`."""
    shared: tuple[Path, ...] = ()
    """Files and directories, each at its own place, without those in :data:`PRIVATE`."""
    mountpoints: tuple[Path, ...] = ()
    """Directories to create."""
    data: Path | None = None
    """A file that the guest may write to, as :data:`DATA`."""
    held: tuple[int, ...] = ()
    """Descriptors that stay open until the guest is gone, even if blklab is killed: locks."""

    def hidden_by_own(self) -> list[Path]:
        """Shared directories that a guest's own ``/tmp`` and ``/run`` hide."""
        return [path for path in self._hidden() if path.is_dir()]

    def files_hidden_by_own(self) -> list[Path]:
        """The same of files."""
        return [path for path in self._hidden() if not path.is_dir()]

    def _hidden(self) -> list[Path]:
        return [path for path in self.shared if _within(path, _OWN)]


@dataclass(frozen=True)
class Shared:
    """The view for a command line."""

    paths: tuple[Path, ...]
    note: str | None
    """Files that a user may expect in the guest, but that are hidden."""


def shared(command: Sequence[str], asked: Iterable[Path] = ()) -> Shared:
    """The current directory, unless it contains too much; the files and directories that the words
    of `command` name; and the `asked` ones. InputError for one that is never shared.
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
        # By its name and by its target: a link is visible too.
        both = (path, path.resolve()) if word and _exists(path) else ()
        if all(too_much(one) is None and not is_private(one) for one in both):
            found += both
    outside = [path for path in dict.fromkeys(found) if not _within(path, SYSTEM)]
    return Shared(tuple(path for path in outside if not _within(path.parent, outside)), note)


def is_seen(path: Path) -> bool:
    """Whether every guest sees it."""
    return _within(path, SYSTEM)


def too_much(path: Path) -> str | None:
    """The reason if the directory `path` is not shared as a whole; else None."""
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
    """Whether it is in :data:`PRIVATE`, or below an entry."""
    return any(f"/{name}/" in f"{path}/" for name in PRIVATE)


def masked(paths: Iterable[Path]) -> Iterator[Path]:
    """Paths that are empty inside, in shared directories and in ``/etc``."""
    yield from _secrets_of_the_system()
    for directory in paths:
        for name in PRIVATE:
            path = directory / name
            if path.exists() and not path.is_symlink():
                yield path


@functools.cache
def _secrets_of_the_system() -> tuple[Path, ...]:
    """Files below ``/etc`` that this user may read through a group, and other users may not. Root's
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
    """The path without ``..``, but with its symbolic links, because a guest uses this name."""
    return Path(os.path.normpath(Path.cwd() / path))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False  # a word too long for a name, or a path without permission


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except (OSError, RuntimeError):
        return None
