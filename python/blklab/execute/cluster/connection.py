"""The connection to a cluster: a client of Dask, and a cluster that was started for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import dask.config
import dask.utils
from distributed import Client, LocalCluster, Security
from distributed.comm.core import connect

from blklab.errors import InputError
from blklab.execute.cluster.address import Scheduler, Started

_REACH_S = 5.0
"""The time within which a machine must accept a connection."""
_ANSWER_S = 10.0
"""The time within which a scheduler must answer."""
_CLOSE_S = 2.0
RETRY_S = 1.0
_LOGGERS = ("distributed", "distributed.client", "distributed.comm", "distributed.worker",
            "distributed.scheduler", "distributed.nanny", "tornado.application")  # fmt: skip
_MODULES = {
    "ssh": ("asyncssh", "asyncssh"),
    "slurm": ("dask_jobqueue", "dask-jobqueue"),
}
"""What Dask needs beside itself: the module and the package to install."""


def patience_s() -> float:
    """How long a scheduler may be away, by Dask's own setting for connections."""
    return float(dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.connect")))


class Connection:
    """A client, which can be made again when the scheduler was lost."""

    def __init__(self, where: Scheduler | Started, name: str) -> None:
        """Connects. InputError, which names `name`, if there is no cluster."""
        self.name = name
        """The cluster as the user named it."""
        _silence()
        self._cluster: Any = None
        if isinstance(where, Scheduler):
            _reach(where)
            self._address: Any = where.url
        else:
            self._address = self._cluster = _start(where, name)
        try:
            self.client = self._client()
        except (OSError, ValueError, TypeError) as error:
            self.close()
            raise InputError(
                f"--on: {name}: no scheduler of Dask answers there, but something listens: "
                f"{_line(error)}"
            ) from error
        except BaseException:
            self.close()
            raise

    @property
    def is_lost(self) -> bool:
        """Whether the client has lost the scheduler."""
        return bool(self.client.status != "running")

    def again(self, patience_s: float, alive: Callable[[], None]) -> bool:
        """Make a new client, within this time; False if the scheduler does not answer. `alive` is
        called meanwhile, and may raise."""
        until_s = time.monotonic() + patience_s
        self._close_client()
        while True:
            alive()
            with contextlib.suppress(OSError, ValueError):
                self.client = self._client()
                return True
            if time.monotonic() > until_s:
                return False
            time.sleep(RETRY_S)

    def close(self) -> None:
        """End it, with the cluster if it was started here."""
        self._close_client()
        if self._cluster is not None:
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._cluster.close()

    def _client(self) -> Client:
        with warnings.catch_warnings():
            # The versions that count are compared by `workers.py`.
            warnings.simplefilter("ignore")
            if self._cluster is None:
                _shake_hands(self._address)
            return Client(self._address, timeout=_ANSWER_S, set_as_default=False)

    def _close_client(self) -> None:
        client = getattr(self, "client", None)
        if client is not None:
            # A lost scheduler cannot be told.
            with contextlib.suppress(Exception):
                client.close(timeout=_CLOSE_S)


def _reach(where: Scheduler) -> None:
    """InputError if nothing listens there; Dask itself would try for a long time."""
    try:
        socket.create_connection((where.host, where.port), timeout=_REACH_S).close()
    except ConnectionRefusedError:
        raise InputError(
            f"--on: {where.url}: nothing listens there; expected a Dask scheduler, which "
            f"`dask scheduler --port {where.port}` starts on {where.host}"
        ) from None
    except OSError as error:
        raise InputError(
            f"--on: {where.url}: {where.host} cannot be reached: {_line(error)}; expected a Dask "
            "scheduler"
        ) from None


def _shake_hands(url: str) -> None:
    """OSError if no scheduler answers; a client would wait for ever for a server that is silent."""

    async def shake() -> None:
        own = Security().get_connection_args("client")
        (await asyncio.wait_for(connect(url, timeout=_ANSWER_S, **own), _ANSWER_S)).abort()

    # This thread may have a loop already, as in a notebook.
    with ThreadPoolExecutor(1) as aside:
        try:
            aside.submit(asyncio.run, shake()).result()
        except TimeoutError:
            raise OSError(f"silent for {_ANSWER_S:.0f} s") from None
        except MemoryError:
            # Of another protocol, read as the length of a message.
            raise OSError("it answers in another protocol") from None


def _start(wanted: Started, name: str) -> Any:
    """A cluster of Dask. InputError if it does not start."""
    try:
        if wanted.kind == "local":
            return LocalCluster(
                n_workers=wanted.count,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                memory_limit=0,
            )
        module, package = _MODULES[wanted.kind]
        made = import_module(module)
        if wanted.kind == "slurm":
            cluster = made.SLURMCluster(silence_logs=logging.CRITICAL)
            cluster.scale(jobs=wanted.count)
            return cluster
        ssh = import_module("distributed").SSHCluster
        # Dask's first host is the scheduler's.
        return ssh([wanted.hosts[0], *wanted.hosts])
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise InputError(
            f"--on: {name}: needs {package}, which is not installed: pip install {package}"
        ) from None
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise InputError(f"--on: {name}: Dask cannot start it: {_line(error)}") from error


def _silence() -> None:
    """Dask's own messages: what matters is reported by blklab."""
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
