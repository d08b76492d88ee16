"""blklab's commands as forks of one process: ``python -P forks.py SOCKET MODULE...``.

It loads these modules once; an emulated computer takes five seconds for them. Each fork is the
whole command, from `main` to the exit of its interpreter, with the words, environment, directory
and standard streams of the `fork_client` that asked for it. The group of processes and what signals
do are this process's.
"""

from __future__ import annotations

import importlib
import io
import os
import select
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO


def serve(place: Path, modules: Iterable[str]) -> None:
    """Fork a command for each client; returns in the forks alone."""
    for module in modules:
        importlib.import_module(module)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.fspath(place))
    listener.listen()
    commands: dict[int, tuple[int, socket.socket]] = {}
    ready = select.poll()
    ready.register(listener, select.POLLIN)
    while True:
        for handle, _ in ready.poll():
            if handle in commands:
                ready.unregister(handle)
                pid, client = commands.pop(handle)
                os.close(handle)
                _, status = os.waitpid(pid, 0)
                client.sendall(str(status).encode())
                client.close()
                continue
            client, _ = listener.accept()
            pid = os.fork()
            if pid == 0:
                for other, (_, its_client) in commands.items():
                    os.close(other)
                    its_client.close()
                listener.close()
                _become(client)
                return
            ended = os.pidfd_open(pid)
            ready.register(ended, select.POLLIN)
            commands[ended] = pid, client


def _become(client: socket.socket) -> None:
    """This process gets all that the client has."""
    size, streams, _, _ = socket.recv_fds(client, 4, 3)
    with client, client.makefile("rb") as asked:
        directory, count, *rest = map(os.fsdecode, asked.read(int.from_bytes(size)).split(b"\0"))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = _stream(0, sys.stdin)
    sys.stdout = _stream(1, sys.stdout)
    sys.stderr = _stream(2, sys.stderr)
    os.chdir(directory)
    sys.argv = rest[: int(count)]
    os.environ.clear()
    for setting in rest[int(count) :]:
        name, _, value = setting.partition("=")
        os.environ[name] = value


def _stream(number: int, servers: TextIO) -> TextIO:
    """A new one, since the server's knows which kind of file it was. Errors are written at once."""
    return io.TextIOWrapper(
        os.fdopen(number, "wb" if number else "rb", closefd=False),
        encoding=servers.encoding,
        errors=servers.errors,
        line_buffering=number == 2,
    )


if __name__ == "__main__":
    from blklab.start import main

    serve(Path(sys.argv[1]), sys.argv[2:])
    main()
