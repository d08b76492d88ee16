"""`blklab fleet` collects through a real SSH server of this machine, on a port of its own."""

from __future__ import annotations

import getpass
import os
import platform
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import blklab
from blklab.fleet import collect
from blklab.fleet.collect import CollectedHost

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/sbin")
pytestmark = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None, reason="needs sshd: apt-get install openssh-server"
)


@dataclass
class Server:
    """A running server."""

    top: Path
    port: int

    def collect(
        self, key: str = "user", known: str = "known", recording: str = ""
    ) -> CollectedHost:
        """Ask it, with that key of the user and that list of known servers."""
        load = f'[[host.load]]\nrecording = "{recording}"\n' if recording else ""
        (self.top / "hosts.toml").write_text(
            f'timeout_s = 20\n[[host]]\nname = "{getpass.getuser()}@127.0.0.1"\nlabel = "here"\n'
            f"port = {self.port}\n"
            f'options = ["IdentityFile={self.top / key}", "IdentitiesOnly=yes",'
            f' "UserKnownHostsFile={self.top / known}", "StrictHostKeyChecking=yes"]\n{load}'
        )
        [found] = blklab.collect_fleet(self.top / "hosts.toml", self.top / "kept")
        return found


def _key(path: Path) -> str:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(command, check=True)
    return path.with_suffix(".pub").read_text()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    # The user's own agent and configuration are no part of the test.
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    port = _free_port()
    (tmp_path / "allowed").write_text(_key(tmp_path / "user"))
    _key(tmp_path / "stranger")
    (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {_key(tmp_path / 'server')}")
    (tmp_path / "nothing").touch()
    (tmp_path / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/server\n"
        f"AuthorizedKeysFile {tmp_path}/allowed\nPidFile none\nUsePAM no\nStrictModes no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "PermitRootLogin prohibit-password\n"
    )
    if os.geteuid() == 0:
        # It gives up its rights there.
        Path("/run/sshd").mkdir(exist_ok=True)
    assert SSHD is not None
    with (tmp_path / "log").open("w") as log:
        running = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", tmp_path / "sshd_config"], stdout=log, stderr=log
        )
    try:
        until_s = time.monotonic() + 30
        while not _answers(port):
            assert running.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < until_s
            time.sleep(0.02)
        yield Server(tmp_path, port)
    finally:
        running.terminate()
        running.wait(30)


def test_disks_and_a_recording_come_through_a_real_server(server: Server) -> None:
    recording = server.top / "a day's.rec"
    blklab.record_run("randread:runtime=1", recording, disk="wd10ezrx")
    found = server.collect(recording=str(recording))
    assert found.reached and not found.problems and found.copied == (str(recording),)
    [copy] = (server.top / "kept/here").glob("*.rec")
    assert copy.read_bytes() == recording.read_bytes()
    read, _ = collect.read_answer(server.top / "kept/here")
    assert read.values["kernel/osrelease"] == platform.release()
    disks = {
        path.name
        for path in Path("/sys/block").iterdir()
        if (path / "device").exists() and (path / "queue/scheduler").exists()
    }
    assert set(read.disks) == disks
    assert server.collect(recording=str(recording)).unchanged == (str(recording),)


def test_a_wrong_key_a_strange_server_and_none_are_one_line_each(server: Server) -> None:
    [line] = server.collect(key="stranger").problems
    assert "Permission denied (publickey)" in line and "\n" not in line
    [line] = server.collect(known="nothing").problems
    assert "Host key verification failed" in line and "\n" not in line
    gone = Server(server.top, _free_port())
    [line] = gone.collect().problems
    assert "Connection refused" in line and "\n" not in line
    assert not (server.top / "kept").exists()
