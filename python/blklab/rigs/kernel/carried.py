"""A finished kernel as bytes, for the cache of another machine."""

from __future__ import annotations

import functools
import json
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from blklab.errors import RunError
from blklab.rigs.kernel import cache

_FILES = ("linux", "config")


@dataclass(frozen=True)
class Packed:
    """A kernel with its files."""

    key: str
    content_hash: str
    """See `content_hash`."""
    record: str
    """The kernel's record, as JSON."""
    files: dict[str, bytes]


@functools.cache
def content_hash(key: str) -> str:
    """SHA-256 of the executable and the configuration of the kernel of that key; empty if it is not
    in the cache."""
    kernel = cache.by_key(key)
    return "" if kernel is None else _hash(_read(kernel))


def pack(key: str) -> Packed:
    """The kernel of that key. InputError if it is not in the cache."""
    kernel = cache.find(key)
    files = _read(kernel)
    record = json.dumps(kernel.to_json() | {"names": []})
    return Packed(kernel.key, _hash(files), record, files)


def unpack(packed: Packed) -> None:
    """Put it into the cache here. RunError if its content is not that of its hash; OSError if it
    cannot be written."""
    if _hash(packed.files) != packed.content_hash:
        raise RunError(f"kernel {packed.key}: damaged on its way")
    kernel = msgspec.convert(json.loads(packed.record), cache.Kernel)
    with tempfile.TemporaryDirectory(prefix="blklab-kernel-") as directory:
        paths = {name: Path(directory) / name for name in packed.files}
        for name, content in packed.files.items():
            paths[name].write_bytes(content)
        paths["linux"].chmod(0o755)
        cache.keep(kernel, paths)
    content_hash.cache_clear()


def _read(kernel: cache.Kernel) -> dict[str, bytes]:
    return {name: (kernel.directory / name).read_bytes() for name in _FILES}


def _hash(files: dict[str, bytes]) -> str:
    digest = sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0".encode() + sha256(content).digest())
    return digest.hexdigest()
