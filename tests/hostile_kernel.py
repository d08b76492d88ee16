"""Fake kernels: programs that try on this machine what a patched kernel could do with the rights of
a guest's process."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from blklab.rigs.kernel import cache
from tests.test_kernel_default import PLAIN

PYTHON = "/usr/bin/python3"

needs_wall = pytest.mark.skipif(
    shutil.which("bwrap") is None or not Path(PYTHON).exists(),
    reason=f"needs bwrap (Debian package bubblewrap) and {PYTHON}",
)

_BEGIN = f"""#!{PYTHON}
import ctypes, json, os, signal, socket, sys

libc = ctypes.CDLL(None, use_errno=True)
found = {{}}

def attempt(name, call, *arguments):
    try:
        found[name] = repr(call(*arguments))
    except OSError as error:
        found[name] = os.strerror(error.errno) if error.errno else str(error)

def checked(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), "")
    return result

def write(path, text="here"):
    with open(path, "w") as file:
        file.write(text)

def read(path):
    with open(path) as file:
        return file.read()

def connect(family, address):
    with socket.socket(family) as one:
        one.settimeout(5)
        one.connect(address)

"""


def image(place: Path, script: str) -> Path:
    """A kernel's image that runs the script."""
    path = place / "linux"
    path.write_text(f"{_BEGIN}{script}\n")
    path.chmod(0o755)
    return path


def kept(place: Path, script: str) -> str:
    """Puts such a kernel into the cache; its name there."""
    key = f"{len(cache.kernels()):012x}"
    cache.keep(replace(PLAIN, key=key), {"linux": image(place, script)})
    return key
