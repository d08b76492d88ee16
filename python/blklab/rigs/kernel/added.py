"""The user's C files in the kernel's ``block/``: a new scheduler, or another version of one.

A file that the source does not have is compiled and linked in; one that it has is replaced. No
option of the configuration is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from blklab.base.files import content
from blklab.errors import InputError
from blklab.rigs.kernel.errors import KernelError

_FOLDER = "block"
_MAKEFILE = f"{_FOLDER}/Makefile"
_NAME = re.compile(r"\w[\w-]*\.[ch]", re.ASCII)
_BYTES_MAX = 16 << 20


def read(paths: Iterable[Path]) -> list[tuple[str, bytes]]:
    """Each file's name and bytes. InputError if one cannot be read or is no C file."""
    found: dict[str, bytes] = {}
    for path in paths:
        if not _NAME.fullmatch(path.name):
            raise InputError(
                f"--add: '{path}': expected a C file: letters, digits, _ and -, then .c or .h"
            )
        if path.name in found:
            raise InputError(f"--add: '{path}': there is another {path.name}")
        found[path.name] = content(path, _BYTES_MAX, "a source file")
    return list(found.items())


def put(
    files: Sequence[tuple[str, bytes]],
    patched: Mapping[str, bytes | None],
    original: Callable[[str], Path],
) -> dict[str, bytes | None]:
    """`patched` with `files` in it, as :func:`blklab.rigs.kernel.patches.apply` has it.

    KernelError if the source has no ``block/Makefile`` to name them in.
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
