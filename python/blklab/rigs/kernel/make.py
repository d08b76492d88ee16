"""Runs the kernel's own make: counted, logged, and ended with everything it started."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from blklab.rigs.kernel.errors import KernelError

_COMPILED = re.compile(rb"^  (?:CC|AS) ", re.MULTILINE)
# Markers of errors from a compiler, a linker, Kconfig and make.
_STOPPED = re.compile(r"error:|undefined reference|\*\*\*|multiple definition|No such file")
_AROUND = 3
_LINES_SHOWN = 24
_END_S = 10.0


@dataclass(frozen=True)
class Make:
    """make in `tree`, with its objects in `objects` and all its output in `log`."""

    tree: Path
    objects: Path
    log: Path
    jobs: int
    lock: int
    """Descriptor of the lock of both: held until all of make's processes have ended."""

    def run(
        self,
        targets: list[str],
        settings: dict[str, str] | None = None,
        tick: Callable[[int], None] = lambda _: None,
    ) -> int:
        """Make `targets`; returns the number of compiled files, which `tick` also receives
        meanwhile.

        KernelError with make's own messages if it fails.
        """
        command = ["setpriv", "--pdeathsig=TERM", "make", f"--directory={self.tree}", "ARCH=um"]
        command += [f"O={self.objects}", f"-j{self.jobs}", *targets]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment() | (settings or {}),
            pass_fds=[self.lock],
            # Ctrl-C reaches only blklab, which ends make itself.
            start_new_session=True,
        )
        assert process.stdout is not None
        compiled = 0
        try:
            with self.log.open("ab", buffering=0) as log:
                log.write(f"$ make {' '.join(targets)}\n".encode())
                start = log.tell()
                for line in process.stdout:
                    log.write(line)
                    if _COMPILED.match(line):
                        compiled += 1
                        tick(compiled)
            if process.wait():
                with self.log.open("rb") as log:
                    log.seek(start)
                    text = log.read().decode(errors="replace")
                raise KernelError(f"make failed; all of it: {self.log}", excerpt(text))
        finally:
            _end(process)
        return compiled


def excerpt(text: str) -> list[str]:
    """The lines of make's output with errors, the first error first."""
    lines = text.splitlines()
    wrong = [number for number, line in enumerate(lines) if _STOPPED.search(line)]
    near = sorted({n for w in wrong for n in range(w - _AROUND, w + _AROUND + 1)} or
                  range(len(lines) - _AROUND, len(lines)))  # fmt: skip
    told = [lines[n] for n in near if 0 <= n < len(lines)]
    return [line for line in told if not re.match(r"  [A-Z]+ +\S+$", line)][:_LINES_SHOWN]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End all of make's processes; first with a signal that lets make remove incomplete files."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, how)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            continue


def _environment() -> dict[str, str]:
    """The user's environment, without variables of make and Kbuild that would change the build."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR")}
    return kept | {
        "LC_ALL": "C",
        # Otherwise these would be in each kernel's banner.
        "KBUILD_BUILD_USER": "blklab",
        "KBUILD_BUILD_HOST": "blklab",
        "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    }
