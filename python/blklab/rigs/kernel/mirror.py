"""Debian's mirror: lists, fetches and checks kernel sources.

The chain of checks is Debian's own: InRelease is signed and contains the SHA-256 of Packages, which
contains the SHA-256 of each package. Nothing is installed, and apt's lists are not changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import lzma
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from debian.debian_support import NativeVersion

from blklab.base import scratch
from blklab.errors import InputError
from blklab.rigs.kernel import cache
from blklab.rigs.kernel.errors import KernelError

# Searched in this order. trixie-backports has a small index and, among new kernels, those with the
# longest support; sid is some days newer; the others have 6.x.
SUITES = ("trixie-backports", "sid", "trixie", "bookworm-backports", "bookworm")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_INDEX = "main/binary-amd64/Packages.xz"
_TIMEOUT_S = 30.0
_BLOCK_BYTES = 1 << 20
_INRELEASE_BYTES_MAX = 16 << 20

Tick = Callable[[int], None]


@dataclass(frozen=True)
class Package:
    """One linux-source package of one suite."""

    suite: str
    version: str
    """Debian's: ``7.3.4-1~bpo13+1``."""
    path: str
    """The path below the mirror."""
    sha256: str
    size_bytes: int
    signed: bool
    """Whether InRelease's signature was checked."""

    @property
    def upstream(self) -> str:
        """The kernel's own version: ``7.3.4``."""
        return NativeVersion(self.version).upstream_version or ""

    def fits(self, wanted: str) -> bool:
        """Whether ``7``, ``7.3``, ``7.3.4`` or Debian's full version matches this."""
        return wanted in (self.version, self.upstream) or self.upstream.startswith(f"{wanted}.")


def address() -> str:
    """``$BLKLAB_MIRROR``, or Debian's network of mirrors."""
    return os.environ.get("BLKLAB_MIRROR", "https://deb.debian.org/debian").rstrip("/")


def newest(wanted: str) -> Package:
    """The newest package for `wanted` in the first suite that has any.

    InputError with the available versions; KernelError if the mirror does not answer.
    """
    seen: set[str] = set()
    for suite in SUITES:
        packages = _packages(suite)
        fitting = [package for package in packages if package.fits(wanted)]
        if fitting:
            return max(fitting, key=lambda package: NativeVersion(package.version))
        seen.update(package.upstream for package in packages)
    there = ", ".join(sorted(seen, key=NativeVersion, reverse=True))
    raise InputError(f"no source of Linux {wanted} in {', '.join(SUITES)}; there is: {there}")


def download(package: Package, target: Path, tick: Tick = lambda _: None) -> None:
    """Download the package to `target`, complete and with the right SHA-256, or not at all.

    `tick` receives the number of bytes so far. KernelError otherwise.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = cache.partial_of(target)
    digest, count = hashlib.sha256(), 0
    try:
        with _opened(package.path) as reader, partial.open("wb") as file:
            while block := reader.read(_BLOCK_BYTES):
                file.write(block)
                digest.update(block)
                count += len(block)
                tick(count)
                if count > package.size_bytes:
                    break
        if count != package.size_bytes:
            raise KernelError(
                f"{address()}/{package.path}: {count} bytes came, expected {package.size_bytes}"
            )
        if digest.hexdigest() != package.sha256:
            raise KernelError(
                f"{address()}/{package.path}: SHA-256 is {digest.hexdigest()}, "
                f"expected {package.sha256}"
            )
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _packages(suite: str) -> list[Package]:
    signed_text, signed = _release(suite)
    row = re.search(rf"^ ([0-9a-f]{{64}}) +\d+ {re.escape(_INDEX)}$", signed_text, re.MULTILINE)
    if row is None:
        raise KernelError(f"{address()}/dists/{suite}/InRelease: no SHA-256 of {_INDEX}")
    folder = f"dists/{suite}/{_INDEX.rpartition('/')[0]}"
    # By its hash: the old index stays available while the mirror changes.
    path = f"{folder}/by-hash/SHA256/{row[1]}"
    with _opened(path) as reader:
        packed = reader.read()
    if hashlib.sha256(packed).hexdigest() != row[1]:
        raise KernelError(f"{address()}/{path}: the downloaded file has another SHA-256")
    try:
        text = lzma.decompress(packed).decode()
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise KernelError(f"{address()}/{path}: {error}") from error
    try:
        return list(_stanzas(text, suite, signed))
    except KeyError as error:
        raise KernelError(f"{address()}/{path}: linux-source: no field {error}") from error
    except ValueError as error:
        raise KernelError(f"{address()}/{path}: linux-source: {error}") from error


def _stanzas(text: str, suite: str, signed: bool) -> Iterator[Package]:
    for stanza in re.findall(r"^Package: linux-source-\d.*\n(?:.+\n?)*", text, re.MULTILINE):
        row = dict(re.findall(r"^([\w-]+): (.+)$", stanza, re.MULTILINE))
        version = str(NativeVersion(row["Version"]))
        yield Package(suite, version, row["Filename"], row["SHA256"], int(row["Size"]), signed)


def _release(suite: str) -> tuple[str, bool]:
    """InRelease's text, and whether its signature was checked."""
    path = f"dists/{suite}/InRelease"
    with _opened(path) as reader:
        raw = reader.read(_INRELEASE_BYTES_MAX)
    keyring = Path(os.environ.get("BLKLAB_KEYRING", _KEYRING))
    if shutil.which("gpgv") is None or not keyring.is_file():
        return raw.decode(errors="replace"), False
    with scratch.directory("release") as directory:
        file = directory / "InRelease"
        file.write_bytes(raw)
        # gpgv prints only the signed text, without text around the signature.
        done = subprocess.run(
            ["gpgv", "--status-fd=2", f"--keyring={keyring}", "--output=-", str(file)],
            capture_output=True,
            check=False,
        )
    words = done.stderr.decode(errors="replace").splitlines()
    # Signed by several keys, and an older keyring may lack the newest: one is enough.
    status = {line.split()[1] for line in words if line.startswith("[GNUPG:] ")}
    if "VALIDSIG" not in status or "BADSIG" in status:
        raise KernelError(f"{address()}/{path}: the signature is not good for {keyring}", words)
    return done.stdout.decode(errors="replace"), True


@contextlib.contextmanager
def _opened(path: str) -> Iterator[http.client.HTTPResponse]:
    url = f"{address()}/{path}"
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as reader:
            yield reader
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise KernelError(f"{url}: {reason}") from error
