"""The system's own ``ssh``, run without a terminal: it never asks, and its answers are bounded.

The user's configuration, keys and agent are those of ssh itself.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

from blklab.base.text import shown
from blklab.errors import BlklabError, MachineError
from blklab.fleet.hosts import Host

_PIECE_BYTES = 1 << 16
_SAID_BYTES_MAX = 4096
_LOOK_UP_S = 0.2
_END_S = 2.0
_FAILED = 255
"""ssh's own exit code; others are those of the command."""


class HostError(BlklabError):
    """A host that is not reached, or that answers otherwise than expected; the others go on."""


class Sessions:
    """All running programs of ssh, which can be ended together."""

    def __init__(self, timeout_s: int) -> None:
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ended = False
        program = shutil.which("ssh")
        if program is None:
            raise MachineError(
                "the program ssh is missing; install it: apt-get install openssh-client"
            )
        self._program = program

    @property
    def is_ended(self) -> bool:
        """Whether `end` was called."""
        return self._ended

    def end(self) -> None:
        """End all that run; each ends with HostError, and no other begins."""
        with self._lock:
            self._ended = True
            running = list(self._running)
        for one in running:
            with contextlib.suppress(ProcessLookupError):
                one.kill()

    def run(
        self,
        host: Host,
        text: str,
        take: Callable[[bytes], object],
        *,
        bytes_max: int,
        silent: bool,
    ) -> None:
        """Run the script `text` on the host and pass what it writes to `take`.

        It may take `timeout_s` in all, or, if not `silent`, as long as it writes something within
        that time. HostError in one line if it fails, or writes more than `bytes_max`.
        """
        with tempfile.TemporaryFile() as script:
            script.write(text.encode())
            script.seek(0)
            with self._started(host, script.fileno()) as one:
                self._follow(one, take, bytes_max, silent)

    def _command(self, host: Host) -> list[str]:
        options = [
            "BatchMode=yes",
            f"ConnectTimeout={self._timeout_s}",
            "ClearAllForwardings=yes",
            *host.options,
        ]
        if host.port is not None:
            options.append(f"Port={host.port}")
        words = [word for option in options for word in ("-o", option)]
        # Two words of any shell: the user's own may be another one.
        return [self._program, "-T", *words, "--", host.name, "/bin/sh -s"]

    @contextlib.contextmanager
    def _started(self, host: Host, script: int) -> Iterator[subprocess.Popen[bytes]]:
        with self._lock:
            if self._ended:
                raise HostError("not asked: interrupted")
            # Not in this terminal's session: Ctrl-C reaches only blklab, and no program asks there.
            one = subprocess.Popen(
                self._command(host),
                stdin=script,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._running.add(one)
        try:
            yield one
        finally:
            with contextlib.suppress(ProcessLookupError):
                one.kill()
            one.wait()
            for pipe in (one.stdout, one.stderr):
                assert pipe is not None
                pipe.close()
            with self._lock:
                self._running.discard(one)

    def _follow(
        self,
        one: subprocess.Popen[bytes],
        take: Callable[[bytes], object],
        bytes_max: int,
        silent: bool,
    ) -> None:
        assert one.stdout is not None and one.stderr is not None
        said = bytearray()
        found_bytes = 0
        until_s = time.monotonic() + self._timeout_s
        with selectors.DefaultSelector() as both:
            both.register(one.stdout, selectors.EVENT_READ)
            both.register(one.stderr, selectors.EVENT_READ)
            # Not to the end of stderr: a connection that ssh shares keeps it open.
            while one.stdout in both.get_map():
                if time.monotonic() > until_s:
                    raise HostError(f"no answer within {self._timeout_s} s")
                for key, _ in both.select(_LOOK_UP_S):
                    piece = os.read(key.fd, _PIECE_BYTES)
                    if not piece:
                        both.unregister(key.fileobj)
                    elif key.fileobj is one.stderr:
                        said = (said + piece)[-_SAID_BYTES_MAX:]
                    else:
                        found_bytes += len(piece)
                        if found_bytes > bytes_max:
                            raise HostError(f"it sends more than {bytes_max} bytes")
                        take(piece)
                        if not silent:
                            until_s = time.monotonic() + self._timeout_s
        try:
            code = one.wait(max(_END_S, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise HostError("ssh does not end") from None
        if code:
            os.set_blocking(one.stderr.fileno(), False)
            said += one.stderr.read(_SAID_BYTES_MAX) or b""
            raise HostError(_reason(code, bytes(said), self._ended))


def _reason(code: int, said: bytes, interrupted: bool) -> str:
    if interrupted:
        return "interrupted"
    lines = [line.strip() for line in said.decode(errors="backslashreplace").splitlines()]
    last = next((line for line in reversed(lines) if line), "")
    last = last.removeprefix("ssh: ")
    what = "ssh" if code == _FAILED else f"its shell ends with {code}"
    return f"{what}: {shown(last[:300])}" if last else f"{what}, without a message"
