"""A scheduler and workers of Dask as processes of this machine, and what may happen to them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from distributed import Client

START_S = 120.0
"""The machine may be busy."""


def free_port() -> int:
    """A port of which nothing listens."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def until(reached: Callable[[], bool], what: str, limit_s: float = START_S) -> None:
    """Waits for it."""
    end_s = time.monotonic() + limit_s
    while not reached():
        assert time.monotonic() < end_s, f"{what}: not within {limit_s:.0f} s"
        time.sleep(0.02)


@dataclass
class Processes:
    """Its processes write to files of `directory`."""

    directory: Path
    port: int = field(default_factory=free_port)
    scheduler: subprocess.Popen[bytes] | None = None
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The scheduler's address."""
        return f"tcp://127.0.0.1:{self.port}"

    def start_scheduler(self) -> None:
        """It listens when this returns."""
        self.scheduler = self._start(
            "scheduler",
            ["scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"],
        )
        until(self._listens, "scheduler")

    def start_worker(
        self,
        name: str,
        preload: str = "",
        url: str = "",
        around: Sequence[str] = (),
        **environment: str,
    ) -> None:
        """A worker with one thread, without a nanny; `preload` is Python that runs in it first.
        It is connected when this returns."""
        arguments = ["worker", url or self.url, "--no-nanny", "--nthreads", "1", "--name", name,
                     "--no-dashboard", "--local-directory", str(self.directory)]  # fmt: skip
        if preload:
            file = self.directory / f"preload_{name}.py"
            file.write_text(preload, encoding="utf-8")
            arguments += ["--preload", str(file)]
        self.workers[name] = self._start(name, arguments, around, environment)
        until(lambda: name in self.names(), f"worker {name}")

    def names(self) -> set[str]:
        """The names of the connected workers."""
        with Client(self.url, timeout=START_S, set_as_default=False) as client:
            return {str(one["name"]) for one in client.scheduler_info()["workers"].values()}

    def kill_worker(self, name: str) -> None:
        """As the kernel does when memory is short."""
        _end(self.workers.pop(name), signal.SIGKILL)

    def kill_scheduler(self) -> None:
        """Its workers end as well."""
        assert self.scheduler is not None
        _end(self.scheduler, signal.SIGKILL)
        for name in list(self.workers):
            self.workers.pop(name).wait(START_S)

    def stop(self) -> None:
        """Ends all."""
        every = [*self.workers.values(), *([self.scheduler] if self.scheduler else [])]
        for one in every:
            _end(one, signal.SIGKILL)

    def _listens(self) -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        return False

    def _start(
        self,
        name: str,
        arguments: Sequence[str],
        around: Sequence[str] = (),
        environment: dict[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        with (self.directory / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [*around, sys.executable, "-m", "dask", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | (environment or {}),
            )


@contextlib.contextmanager
def processes(directory: Path, workers: int = 0) -> Iterator[Processes]:
    """A scheduler with workers named ``w0`` and so on; all end with the ``with``."""
    made = Processes(directory)
    try:
        made.start_scheduler()
        for number in range(workers):
            made.start_worker(f"w{number}")
        yield made
    finally:
        made.stop()


class Wire:
    """A connection to a port that can be cut: what is connected through it ends, and nothing new
    is accepted until it is mended. After `bytes_max` bytes from that port it holds back what
    comes, until it is cut or `go_on`."""

    def __init__(self, port: int, bytes_max: int = sys.maxsize) -> None:
        self._to = port
        self._pairs: list[socket.socket] = []
        self._left = bytes_max
        self._is_full, self._is_free = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self.is_cut = False
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def until_full(self) -> None:
        """Waits until it holds something back."""
        assert self._is_full.wait(START_S), "the wire has too few bytes"

    def go_on(self) -> None:
        """From now on everything passes."""
        self._is_free.set()

    def cut(self) -> None:
        """Ends all connections."""
        self.is_cut = True
        self.go_on()
        for one in self._pairs:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()

    def close(self) -> None:
        """Ends it."""
        self.cut()
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                if self.is_cut:
                    near.close()
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self._to))
                except OSError:
                    # Nothing listens there at the moment.
                    near.close()
                    continue
                self._pairs += [near, far]
                for one, other, counts in ((near, far, False), (far, near, True)):
                    threading.Thread(
                        target=self._pass, args=(one, other, counts), daemon=True
                    ).start()

    def _pass(self, source: socket.socket, target: socket.socket, counts: bool) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(1 << 16):
                if counts:
                    self._hold(len(content))
                target.sendall(content)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _hold(self, count: int) -> None:
        with self._lock:
            self._left -= count
        if self._left < 0:
            self._is_full.set()
            self._is_free.wait()


def _end(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)
    process.wait(START_S)
