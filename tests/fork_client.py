"""A command as a fork of `forks`: ``python -IS fork_client.py SOCKET COMMAND WORD...``.

It ends as the command does. A signal to it does not reach the command.
"""

import os
import signal
import socket
import sys

DIRECTORY = os.getcwd()  # noqa: PTH109 (pathlib takes as long to load as all else here)

with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    words = sys.argv[2:]
    environment = (f"{name}={value}" for name, value in os.environ.items())
    asked = os.fsencode("\0".join([DIRECTORY, str(len(words)), *words, *environment]))
    socket.send_fds(server, [len(asked).to_bytes(4)], [0, 1, 2])
    server.sendall(asked)
    code = os.waitstatus_to_exitcode(int(server.recv(16)))
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
