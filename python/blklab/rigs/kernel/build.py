"""From a source and patches to a kernel in the cache.

Objects are stored per source and configuration. Another build of it, with other patches or after a
change in the user's directory, compiles only the files that depend on the changes.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.base.steps import Steps
from blklab.errors import InputError
from blklab.rigs.kernel import cache, changes, config, source, tools
from blklab.rigs.kernel import objects as objects_of
from blklab.rigs.kernel.cache import Kernel
from blklab.rigs.kernel.errors import KernelError
from blklab.rigs.kernel.make import Make
from blklab.rigs.kernel.source import Source
from blklab.rigs.kernel.tree import Tree

_PATCHES = Path(__file__).parent
_FILES = {
    "disk.patch": {
        name: f"drivers/scsi/blklab_{name}" for name in ("disk.c", "worker.c", "worker.h")
    },
    "work.patch": {"work.h": "include/linux/blklab_work.h"},
    "cpus.patch": {name: f"include/linux/blklab_{name}" for name in ("cpus.h", "as_cpus.h")},
}
"""Our files that belong to a patch, and their places in the kernel's tree."""
_COMPILED_AT_FIRST = 755
"""The number of files that a first build compiles, for 7.3.4 with our configuration. Other versions
differ a little."""
_LONGEST_COMPILATION_NS = 60 * 10**9
"""estimate: for one file on a busy machine; usual are one to five seconds."""
_UNFIT = re.compile(r"[^\w.+-]+", re.ASCII)


@dataclass(frozen=True)
class Built:
    """The result of `build`."""

    kernel: Kernel
    fresh: bool
    """False if the kernel was in the cache."""


@dataclass(frozen=True)
class _Order:
    """All inputs of a kernel."""

    source: Source
    files: Mapping[str, os.stat_result]
    """Empty for a source that cannot change."""
    patches: Sequence[tuple[str, bytes]]
    """First our own, as far as they apply, then the user's."""
    files_added: Sequence[tuple[str, bytes]]
    """The user's files for ``block/``."""
    fragment: config.Fragment

    @property
    def key(self) -> str:
        stamps = [f"{name} {s.st_size} {s.st_mtime_ns}" for name, s in self.files.items()]
        digests = [hashlib.sha256(text).hexdigest() for _, text in self.patches]
        digests += [f"{name} {hashlib.sha256(text).hexdigest()}" for name, text in self.files_added]
        return cache.key_of(self.source.identity, *stamps, *digests, self.fragment.text())

    @property
    def name(self) -> str:
        stems = [
            label.removesuffix(".patch").removesuffix(".diff")
            for label, _ in self.patches
            if label not in cache.OWN_PATCHES
        ]
        stems += [Path(label).stem for label, _ in self.files_added]
        return _UNFIT.sub("-", "-".join([self.source.name, *stems])).lstrip("._+-")[:80]


def build(
    what: str | None = None,
    patch_files: Iterable[Path] = (),
    name: str | None = None,
    *,
    added_files: Iterable[Path] = (),
    options: Iterable[str] = (),
    jobs: int | None = None,
    refresh: bool = False,
    steps: Steps | None = None,
) -> Built:
    """The kernel of `what` (as of `source.find`) with patches, built if necessary.

    `added_files` are C files that go to ``block/`` after all patches; `options` are
    ``NAME=VALUE`` of the kernel's configuration. The kernel is named `name`, or after source,
    patches and files. InputError or KernelError; the cache is then unchanged.
    """
    steps = steps or Steps()
    wanted = None if name is None else cache.checked_name(name)
    fragment = config.fragment(options)
    texts = changes.read(patch_files)
    files_added = changes.read_added(added_files)
    tools.require()
    if os.uname().machine != "x86_64":
        raise InputError(f"user-mode Linux is built here on x86_64 only, not {os.uname().machine}")
    place = source.find(what, steps, refresh=refresh)
    with source.held(place, steps):
        own = _own_patches(place, steps)
        files = source.files(place) if place.own else {}
        order = _Order(place, files, [*own, *texts], files_added, fragment)
        found = cache.by_key(order.key)
        fresh = found is None
        kernel = found or _build(order, jobs or len(os.sched_getaffinity(0)), steps)
    called = wanted or order.name or kernel.key
    if called not in kernel.names:
        cache.give_name(called, kernel.key)
    return Built(cache.find(called), fresh)


def _own_patches(place: Source, steps: Steps) -> list[tuple[str, bytes]]:
    """Our own patches, as far as they fit the source; ``clock-6.12.patch`` is the form of
    ``clock.patch`` for an older one."""
    fitting = []
    for label, without in cache.OWN_PATCHES.items():
        newest = _PATCHES / label
        older = sorted(newest.parent.glob(f"{newest.stem}-[0-9]*.patch"), reverse=True)
        added = b"".join(
            changes.adding(name, (_PATCHES / file).read_bytes())
            for file, name in _FILES.get(label, {}).items()
        )
        texts = [path.read_bytes() + added for path in (newest, *older)]
        fits = next((text for text in texts if _fits(text, place)), None)
        if fits is None:
            steps.note(f"{label} does not fit this source: {without}")
        else:
            fitting.append((label, fits))
    return fitting


def _fits(patch: bytes, place: Source) -> bool:
    try:
        changes.apply([("", patch)], lambda name: place.top / name)
    except KernelError:
        return False
    return True


def _build(order: _Order, jobs: int, steps: Steps) -> Kernel:
    place = cache.root() / "trees" / cache.key_of(order.source.built_over)
    place.mkdir(parents=True, exist_ok=True)
    with cache.locked(
        place, lambda: steps.note("waiting for another build of the same source")
    ) as lock:
        # The other build may have made the same kernel.
        return cache.by_key(order.key) or _build_alone(order, place, lock, jobs, steps)


def _build_alone(order: _Order, place: Path, lock: int, jobs: int, steps: Steps) -> Kernel:
    start_s = time.monotonic()
    steps.begin("preparing the source")
    original = order.source.top.joinpath
    patched = changes.put_added(order.files_added, changes.apply(order.patches, original), original)
    log = place / "make.log"
    log.unlink(missing_ok=True)
    objects = objects_of.select(place, order.fragment.text())
    objects.mkdir(exist_ok=True)
    unfinished = objects / ".unfinished"
    _distrust(objects, unfinished)
    unfinished.touch()
    tree = Tree(place / "tree", place / "files.json")
    files = order.files or source.files(order.source)
    changed = tree.follow(order.source, files, patched)
    make = Make(place / "tree", objects, log, jobs, lock)
    try:
        finished = _configure(make, order.fragment, changed, steps)
        compiled = _compile(make, steps, unfinished)
    except KernelError:
        # make has ended by itself, and removed incomplete files.
        unfinished.unlink()
        raise
    release = (objects / "include/config/kernel.release").read_text(encoding="utf-8").strip()
    kernel = Kernel(
        key=order.key,
        version=release,
        source=order.source.label,
        base=order.source.identity,
        patches=tuple(label for label, _ in order.patches),
        added=tuple(label for label, _ in order.files_added),
        config=tuple(f"{name}={value}" for name, value in order.fragment.own.items()),
        built_at=cache.now_text(),
        build_s=round(time.monotonic() - start_s, 1),
        compiled=compiled,
        hz=int(finished.get("HZ", Kernel.hz)),
        has_transports=finished.get("BLKLAB_DISK") == "y",
    )
    cache.keep(kernel, {"linux": objects / "linux", "config": objects / ".config"})
    unfinished.unlink()
    return kernel


def _configure(
    make: Make, fragment: config.Fragment, changed: Sequence[str], steps: Steps
) -> Mapping[str, str]:
    """Write the kernel's configuration, if it may have changed, check it and return it."""
    text = fragment.text()
    wish, result = make.objects / objects_of.WISH, make.objects / ".config"
    asked = wish.read_text(encoding="utf-8") if wish.is_file() else ""
    if asked != text or not result.is_file() or any("Kconfig" in name for name in changed):
        steps.begin("configuring")
        wish.unlink(missing_ok=True)
        settings = wish.with_name(f"{objects_of.WISH}.new")
        settings.write_text(text, encoding="utf-8")
        make.run(["allnoconfig"], {"KCONFIG_ALLCONFIG": str(settings)})
        settings.rename(wish)
    finished = config.parse(result.read_text(encoding="utf-8"))
    for option in fragment.check(finished):
        steps.note(f"this kernel has no {option}")
    return finished


def _compile(make: Make, steps: Steps, unfinished: Path) -> int:
    """Compile; returns the number of compiled files. `unfinished` is updated meanwhile."""
    finished = make.objects / ".finished"
    first = not finished.is_file()
    # Objects of failed attempts count as progress.
    before = sum(1 for _ in make.objects.rglob("*.o")) if first else 0

    def tick(done: int) -> None:
        unfinished.touch()
        steps.reached(before + done)

    what = "compiling" if first else "compiling what changed"
    steps.begin(what, max(_COMPILED_AT_FIRST, before) if first else None, "files")
    compiled = make.run(["linux"], tick=tick)
    finished.touch()
    return compiled


def _distrust(objects: Path, unfinished: Path) -> None:
    """Remove the last objects of a killed build.

    A killed compiler leaves an incomplete object, and make compares only times.
    """
    if not unfinished.is_file():
        return
    since_ns = unfinished.stat().st_mtime_ns - _LONGEST_COMPILATION_NS
    for path in objects.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_mtime_ns >= since_ns:
            path.unlink()
