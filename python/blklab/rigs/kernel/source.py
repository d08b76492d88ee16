"""The source of a kernel: a version, a tarball, the user's directory, or a commit of it."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import IO

from debian.debian_support import NativeVersion

from blklab.base import homes
from blklab.base.steps import Steps
from blklab.errors import InputError, nearest
from blklab.rigs.kernel import DEFAULT_VERSION, cache, commits, mirror
from blklab.rigs.kernel.errors import KernelError

# A third of the source's size, and not needed for user-mode Linux. The Kconfig files and Makefiles
# of a directory stay, because others include them.
_ARCHITECTURES = (
    *("alpha", "arc", "arm", "arm64", "csky", "hexagon", "loongarch", "m68k", "microblaze"),
    *("mips", "nios2", "openrisc", "parisc", "powerpc", "riscv", "s390", "sh", "sparc", "xtensa"),
)
LEFT_OUT = (
    *(f"arch/{name}" for name in _ARCHITECTURES),
    # Not drivers/net itself: the loopback interface is in it.
    *("drivers/gpu", "drivers/net/ethernet", "drivers/net/wireless", "drivers/media", "sound"),
)
_LEFT_OUT_SUFFIXES = (".c", ".h", ".S", ".dts", ".dtsi")
_TARBALLS = (".tar", ".tar.xz", ".tar.gz", ".tar.bz2", ".tgz", ".txz")
_VERSION = re.compile(r"\d+(\.\d+)*(-[\w.+~]+|[~][\w.+~-]+)?")
_BLOCK_BYTES = 1 << 20
_OF_LINUX = ("Kconfig", "arch/um")
_LACKS = f"it has no {' and '.join(_OF_LINUX)}"


@dataclass(frozen=True)
class Source:
    """A tree that can be built; read-only."""

    top: Path
    identity: str
    """Equal for equal sources; for a user's directory its path, because its files change."""
    label: str
    """For a person."""
    name: str
    """The default name of a kernel from it."""
    own: bool = False
    """The user's directory."""
    commit: commits.Commit | None = None
    """Its files are there only while the source is `held`."""

    @property
    def built_over(self) -> str:
        """Equal for sources of which one is built over the other's objects."""
        return f"repository {self.commit.repository}" if self.commit else self.identity


def find(what: str | None, steps: Steps, *, refresh: bool = False) -> Source:
    """The source for a directory, a commit, a tarball or a version; fetched and unpacked if
    necessary.

    A version comes from the cache if one matches; with `refresh` it is the mirror's newest.
    """
    if what is None:
        return _version(DEFAULT_VERSION, steps, refresh)
    path = homes.expanded(what)
    if path.is_dir():
        return _directory(path)
    if path.is_file():
        return _tarball(path.absolute(), steps)
    if (commit := commits.find(what)) is not None:
        return _commit(commit)
    if _VERSION.fullmatch(what):
        return _version(what, steps, refresh)
    raise InputError(
        f"--source: '{what}': no directory, no tarball, no DIRECTORY@COMMIT, "
        f"and no version such as {DEFAULT_VERSION}"
    )


@contextmanager
def held(source: Source, steps: Steps) -> Iterator[None]:
    """The source's files are there, and no other call replaces them."""
    if source.commit is None:
        yield
        return
    patterns = [f"/{place}/**/*{suffix}" for place in LEFT_OUT for suffix in _LEFT_OUT_SUFFIXES]
    with commits.checked_out(source.commit, patterns, steps):
        yield


def files(source: Source) -> dict[str, os.stat_result]:
    """Every file of the source, relative to the top, in order of name.

    In a git checkout, the files that git tracks or would track, without objects of an earlier
    build.
    """
    if source.own and (source.top / ".git").exists():
        return dict(_git_files(source.top))
    return dict(sorted(_walk(source.top, "")))


def file(source: Source, name: str) -> bytes:
    """The text of one file. InputError, with the nearest name, if it does not exist."""
    path = source.top / name
    if path.is_file() and path.resolve().is_relative_to(source.top.resolve()):
        return path.read_bytes()
    others = [f"{PurePath(name).parent / other.name}" for other in path.parent.glob("*")]
    similar = difflib.get_close_matches(name, others, cutoff=0.4)
    raise InputError(f"{source.label}: no file '{name}'{nearest(name, similar)}")


def _directory(path: Path) -> Source:
    top = path.resolve()
    if not all((top / name).exists() for name in _OF_LINUX):
        raise InputError(f"--source: {path}: not a Linux source: {_LACKS}")
    built_in = [name for name in (".config", "include/config") if (top / name).exists()]
    if built_in and not (top / ".git").exists():
        raise InputError(
            f"--source: {path}: contains a build ({built_in[0]}); first run 'make mrproper' in it"
        )
    return Source(top, f"directory {top}", str(path), top.name, own=True)


def _commit(commit: commits.Commit) -> Source:
    label = f"{commit.repository}@{commit.short}"
    if not all(commits.has(commit, name) for name in _OF_LINUX):
        raise InputError(f"{label}: not a Linux source: {_LACKS}")
    name = f"{commit.repository.name}-{commit.short}"
    identity = f"commit {commit.hash}"
    return Source(commits.place(commit), identity, label, name, commit=commit)


def _tarball(path: Path, steps: Steps) -> Source:
    if not path.name.endswith(_TARBALLS):
        raise InputError(f"--source: {path}: not a tarball: expected one of {', '.join(_TARBALLS)}")
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    identity = f"tarball {digest.hexdigest()}"
    stem = path.name[: path.name.index(".tar")] if ".tar" in path.name else path.stem
    source = Source(_place(identity), identity, str(path), re.sub(r"[^\w.+-]", "-", stem))
    with path.open("rb") as file:
        _unpack_once(source, file, path.name, steps)
    return source


def _version(wanted: str, steps: Steps, refresh: bool) -> Source:
    known = _unpacked(wanted)
    if known is not None and not refresh:
        return known
    steps.begin(f"asking {mirror.address()} for Linux {wanted}")
    package = mirror.newest(wanted)
    identity = f"debian {package.version} {package.sha256}"
    top = _place(identity)
    label = f"Debian's linux-source {package.version} ({package.suite})"
    source = Source(top, identity, label, package.upstream)
    if not package.signed:
        steps.note("the mirror's signature was not checked: gpgv or Debian's keyring is missing")
    if top.is_dir():
        return source
    target = cache.root() / "downloads" / Path(package.path).name
    with cache.locked(target, lambda: steps.note("waiting for another download of it")):
        if not target.is_file():
            steps.begin(f"downloading {target.name}", package.size_bytes, "bytes")
            mirror.download(package, target, steps.reached)
    with _package_data(target) as (reader, name):
        _unpack_once(source, reader, name, steps)
    return source


def _unpacked(wanted: str) -> Source | None:
    """The newest source in the cache for that version."""
    found = []
    for note in (cache.root() / "sources").glob("*/source.json"):
        try:
            row = json.loads(note.read_text(encoding="utf-8"))
            kind, version, *_ = row["identity"].split()
            order = NativeVersion(version)
            row = {name: str(row[name]) for name in ("identity", "label", "name")}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # Not ours, or damaged: it is fetched again.
            continue
        package = mirror.Package("", version, "", "", 0, False)
        unpacked_so = note.parent == _place(row["identity"]).parent
        if kind == "debian" and unpacked_so and package.fits(wanted):
            found.append((order, note, row))
    if not found:
        return None
    _, note, row = max(found, key=lambda entry: entry[0])
    return Source(note.parent / "tree", row["identity"], row["label"], row["name"])


def _place(identity: str) -> Path:
    return cache.root() / "sources" / cache.key_of(identity, *LEFT_OUT) / "tree"


def _unpack_once(source: Source, reader: IO[bytes], name: str, steps: Steps) -> None:
    place = source.top.parent
    with cache.locked(place, lambda: steps.note("waiting for another unpacking of it")):
        if source.top.is_dir():
            return
        steps.begin(f"unpacking {name}")
        with cache.whole_directory(place) as partial:
            _unpack(reader, name, partial / "tree")
            row = {key: value for key, value in asdict(source).items() if isinstance(value, str)}
            (partial / "source.json").write_text(json.dumps(row) + "\n", encoding="utf-8")


def _unpack(reader: IO[bytes], name: str, target: Path) -> None:
    """Unpack a tarball with one top directory; its contents go to `target`."""
    target.mkdir()
    left_out = [f"--exclude=*/{place}/*{suffix}" for place in LEFT_OUT
                for suffix in _LEFT_OUT_SUFFIXES]  # fmt: skip
    packing = {"xz": "--xz", "gz": "--gzip", "bz2": "--bzip2"}
    option = packing.get(name.rpartition(".")[2].replace("tgz", "gz").replace("txz", "xz"))
    command = ["setpriv", "--pdeathsig=KILL", "tar", "--extract", "--file=-"]
    command += ["--strip-components=1", f"--directory={target}", "--no-same-owner", *left_out]
    tar = subprocess.Popen(
        [*command, *([option] if option else [])],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"LC_ALL": "C"},
    )
    assert tar.stdin is not None and tar.stderr is not None
    try:
        try:
            while block := reader.read(_BLOCK_BYTES):
                tar.stdin.write(block)
            tar.stdin.close()
        except BrokenPipeError:
            # It has ended with its own error, or has read everything it needs.
            pass
        words = tar.stderr.read().decode(errors="replace").splitlines()
        if tar.wait():
            raise KernelError(f"{name} could not be unpacked", words[-5:])
    finally:
        if tar.poll() is None:
            tar.kill()
            tar.wait()
    if not (target / "Kconfig").is_file():
        raise KernelError(f"{name}: not a Linux source: no Kconfig at its top")


class _package_data:  # noqa: N801 (a context manager, used as a function)
    """The tarball in a linux-source package, read as a stream.

    A package is an ar archive (deb(5)): 60 bytes of header before each member, of which
    bytes 48 to 58 are the length, and members begin at even places. No dpkg is needed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> tuple[IO[bytes], str]:
        self._file = self._path.open("rb")
        self._file.seek(len(b"!<arch>\n"))
        while len(head := self._file.read(60)) == 60:  # noqa: PLR2004 (see above)
            if head.startswith(b"data.tar"):
                self._tar = tarfile.open(fileobj=self._file, mode="r|*")
                for member in self._tar:
                    name = Path(member.name).name
                    if name.startswith("linux-source-") and name.endswith(_TARBALLS):
                        reader = self._tar.extractfile(member)
                        assert reader is not None
                        return reader, name
                break
            size = int(head[48:58])
            self._file.seek(size + size % 2, os.SEEK_CUR)
        raise KernelError(f"{self._path}: no linux-source-*.tar.xz in this package")

    def __exit__(self, *_: object) -> None:
        self._tar.close()
        self._file.close()


def _git_files(top: Path) -> Iterator[tuple[str, os.stat_result]]:
    told = commits.git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in sorted(set(told.split("\0")) - {""}):
        try:
            found = os.lstat(top / name)
        except FileNotFoundError:
            continue  # removed in the checkout, not yet in the index
        if not _left_out(name):
            yield name, found


def _walk(top: Path, below: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(top / below) as entries:
        for entry in entries:
            name = f"{below}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    yield from _walk(top, f"{name}/")
            elif not _left_out(name):
                yield name, entry.stat(follow_symlinks=False)


def _left_out(name: str) -> bool:
    return name.endswith(_LEFT_OUT_SUFFIXES) and name.startswith(_LEFT_OUT_FOLDERS)


_LEFT_OUT_FOLDERS = tuple(f"{place}/" for place in LEFT_OUT)
