"""The user's changes to a kernel's source: patches, and C files for ``block/``.

A patch is tried on copies of the files it names, with patch(1); the tree is changed only after all
patches have been applied. A new C file, such as a new scheduler, is compiled and linked in, without
an option of the configuration; an existing file is replaced.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from blklab.base import scratch
from blklab.base.files import content
from blklab.errors import InputError
from blklab.rigs.kernel.errors import KernelError

_HEAD = re.compile(r"^(?:---|\+\+\+) (?:\"([^\"\n]+)\"|([^\t\n]+))", re.MULTILINE)
_RENAME = re.compile(r"^(?:rename|copy) (?:from|to) (.+)$", re.MULTILINE)
_LINES_SHOWN = 20
_BYTES_MAX = 64 << 20


def read(paths: Iterable[Path]) -> list[tuple[str, bytes]]:
    """Each patch's name and bytes. InputError if one cannot be read or is not a patch."""
    found = []
    for path in paths:
        text = content(path, _BYTES_MAX, "a patch")
        if not touched(text):
            raise InputError(f"{path}: not a patch: no line '+++ b/FILE' in it")
        found.append((path.name, text))
    return found


def touched(text: bytes) -> set[str]:
    """Files, relative to the kernel's top, that the patch reads, writes, creates or removes.

    As with ``patch -p1``, the first part of a name is dropped.
    """
    plain = text.decode("utf-8", "surrogateescape")
    names = {quoted or bare.rstrip() for quoted, bare in _HEAD.findall(plain)}
    stripped = {name.partition("/")[2] for name in names if name != "/dev/null"}
    return {name for name in stripped if name} | set(_RENAME.findall(plain))


def adding(name: str, text: bytes) -> bytes:
    """A patch that makes the file `name`, which ends with a new line."""
    lines = text.splitlines(keepends=True)
    head = f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{len(lines)} @@\n"
    return head.encode() + b"".join(b"+" + line for line in lines)


def apply(
    patches: Sequence[tuple[str, bytes]], original: Callable[[str], Path]
) -> dict[str, bytes | None]:
    """Every touched file's contents after all patches; None for a removed file.

    `original` gives the path of an unpatched file, which may not exist. KernelError with patch's
    own messages if one does not apply.
    """
    names = sorted(set().union(*(touched(text) for _, text in patches)))
    for name in names:
        if ".." in PurePosixPath(name).parts or name.startswith("/"):
            raise KernelError(f"a patch names {name}, which is outside of the kernel's source")
    with scratch.directory("patch") as tree:
        for name in names:
            source = original(name)
            if source.is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).write_bytes(source.read_bytes())
        for label, text in patches:
            _apply_one(tree, label, text)
        return {
            name: (tree / name).read_bytes() if (tree / name).is_file() else None for name in names
        }


def _apply_one(tree: Path, label: str, text: bytes) -> None:
    done = subprocess.run(
        # No .orig files, no questions, rejected hunks printed and not stored.
        ["patch", "-p1", "--batch", "--forward", "--no-backup-if-mismatch", "--reject-file=-"],
        cwd=tree,
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        lines = done.stdout.decode(errors="replace").splitlines()
        raise KernelError(f"{label} does not apply to this kernel", lines[-_LINES_SHOWN:])


_FOLDER = "block"
_MAKEFILE = f"{_FOLDER}/Makefile"
_ADDED_NAME = re.compile(r"\w[\w-]*\.[ch]", re.ASCII)
_ADDED_BYTES_MAX = 16 << 20


def read_added(paths: Iterable[Path]) -> list[tuple[str, bytes]]:
    """Each file's name and bytes. InputError if one cannot be read or is not a C file."""
    found: dict[str, bytes] = {}
    for path in paths:
        if not _ADDED_NAME.fullmatch(path.name):
            raise InputError(
                f"--add: '{path}': expected a C file: letters, digits, _ and -, then .c or .h"
            )
        if path.name in found:
            raise InputError(f"--add: '{path}': there is another {path.name}")
        found[path.name] = content(path, _ADDED_BYTES_MAX, "a source file")
    return list(found.items())


def put_added(
    files: Sequence[tuple[str, bytes]],
    patched: Mapping[str, bytes | None],
    original: Callable[[str], Path],
) -> dict[str, bytes | None]:
    """`patched` with `files` added, in the form of :func:`blklab.rigs.kernel.changes.apply`.

    KernelError if the source has no ``block/Makefile``.
    """
    if not files:
        return dict(patched)

    def text_of(name: str) -> bytes | None:
        if name in patched:
            return patched[name]
        return original(name).read_bytes() if original(name).is_file() else None

    new = [name for name, _ in files
           if name.endswith(".c") and text_of(f"{_FOLDER}/{name}") is None]  # fmt: skip
    found = dict(patched)
    found |= {f"{_FOLDER}/{name}": text for name, text in files}
    if new:
        makefile = text_of(_MAKEFILE)
        if makefile is None:
            raise KernelError(f"{', '.join(new)}: this source has no {_MAKEFILE} to add them to")
        objects = " ".join(f"{name.removesuffix('.c')}.o" for name in new)
        found[_MAKEFILE] = makefile + f"\nobj-y += {objects}\n".encode()
    return found
