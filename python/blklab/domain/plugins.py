"""Schedulers from files of WebAssembly, which the simulator runs: plug-ins.

A plug-in is known by the hash of its content. Its name means the one of that name that was loaded
last; a scheduler that was read keeps the hash, so that a run has the content that its caller had.
"""

from __future__ import annotations

import base64
import threading
from hashlib import sha256
from pathlib import Path

from blklab import _core
from blklab.base.files import content as file_content
from blklab.base.text import shown
from blklab.domain import core
from blklab.errors import InputError

BYTES_MAX = 16 * 2**20

_LOCK = threading.Lock()
_loaded: dict[str, tuple[_core.Plugin, bytes]] = {}
"""By hash. The core keeps a description for ever, so that each content is loaded once."""
_names: dict[str, str] = {}
"""The hash of a name."""


def load(path: Path) -> str:
    """The name of the scheduler in the file, which now stands for it. InputError if the file cannot
    be read or is not a plug-in."""
    return load_content(file_content(path, BYTES_MAX, "a plug-in"), shown(str(path)))


def load_content(content: bytes, place: str) -> str:
    """The same from a file's content; `place` is for messages."""
    digest = sha256(content).hexdigest()
    with _LOCK:
        if digest not in _loaded:
            with core.core_types():
                _loaded[digest] = _core.Plugin(content, digest, place), content
        name = _loaded[digest][0].info.name
        _names[name] = digest
    return name


def hash_of(name: str) -> str | None:
    """The hash of the plug-in that this name stands for; None for other schedulers."""
    return _names.get(name)


def find(digest: str) -> _core.Plugin:
    """The loaded plug-in. InputError if it was not loaded in this process."""
    if digest not in _loaded:
        raise InputError(f"plug-in {digest[:12]} is not loaded; expected --plugin FILE")
    return _loaded[digest][0]


def infos() -> list[_core.SchedulerInfo]:
    """The plug-ins that have names, in the order of loading."""
    return [_loaded[digest][0].info for digest in _names.values()]


def packed(digest: str) -> str:
    """The content as text, for another process."""
    find(digest)
    return base64.b64encode(_loaded[digest][1]).decode("ascii")


def unpack(digest: str, text: str) -> None:
    """Loads what `packed` gave elsewhere. InputError if it is not that content."""
    if digest in _loaded:
        return
    try:
        content = base64.b64decode(text, validate=True)
    except ValueError:
        content = b""
    if sha256(content).hexdigest() != digest:
        raise InputError(f"plug-in {shown(digest[:12])}: its content is not that of its hash")
    load_content(content, digest[:12])
