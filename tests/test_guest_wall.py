"""The barrier around a guest against hostile kernels: programs that act like a patched kernel on
this machine, with the rights of a guest's process."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blklab.errors import RunError
from blklab.rigs.kernel import wall
from blklab.rigs.kernel.boot import boot
from blklab.rigs.kernel.errors import KernelError
from blklab.rigs.kernel.view import View
from tests import hostile_kernel, real_kernel
from tests.hostile_kernel import PYTHON, needs_wall

ROOT = Path(__file__).resolve().parents[1]
USER = 1000
_BOOT = """
import sys
from pathlib import Path
from blklab.rigs.kernel.boot import boot
from blklab.rigs.kernel.view import View
image, shared = map(Path, sys.argv[1:])
with boot(image, ["/init"], {}, View(shared=(shared,)), timeout_s=60) as guest:
    guest.wait()
    sys.stdout.write(guest.run.read("found", 1 << 20).decode())
"""
"""Run by users without access to Python's packages; booting needs none."""

_KEPT = """
with open("/run/blklab/run/found", "w") as file:
    json.dump(found, file)
"""

Hostile = Callable[[str], dict[str, str]]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user may read."""
    with tempfile.TemporaryDirectory(prefix="blklab-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def shared(place: Path) -> Path:
    """A directory that the guest's user shares and can write to."""
    made = place / "shared"
    made.mkdir()
    (made / "theirs").write_text("as it was")
    return made


@pytest.fixture(params=["by this user", "by one without rights"])
def run(request: pytest.FixtureRequest, place: Path, shared: Path) -> Hostile:
    """Runs a hostile kernel as a guest; returns its findings."""
    words = [sys.executable]
    if request.param == "by one without rights":
        if os.geteuid() != 0:
            pytest.skip("this user has none anyhow")
        words = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", PYTHON]

    def run(script: str) -> dict[str, str]:
        if words[0] == "setpriv":
            for path in (shared, *shared.rglob("*")):
                os.chown(path, USER, USER)
        image = hostile_kernel.image(place, script + _KEPT)
        done = subprocess.run(
            [*words, "-c", _BOOT, str(image), str(shared)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "python"), "HOME": "/"},
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        if "Permission denied" in done.stderr and "blklab/kernel" not in done.stderr:
            pytest.skip(f"others may not read this checkout: {done.stderr.splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    return run


REFUSED = {"Read-only file system", "Permission denied", "Operation not permitted"}


@needs_wall
def test_nothing_of_this_machine_is_written(run: Hostile, shared: Path) -> None:
    # Other tests use the directory /etc meanwhile.
    before = {path: path.stat().st_mtime_ns for path in (Path("/etc/passwd"), Path("/usr"), shared)}
    found = run(f"""
shared = {str(shared)!r}
for path in ("/etc/passwd", "/etc/pwned", "/usr/pwned", "/pwned", "/dev/pwned", "/tmp/pwned",
             "/var/tmp/pwned", "/run/blklab/linux", shared + "/theirs", shared + "/new",
             "/proc/1/root/etc/pwned", "/proc/self/root" + shared + "/new",
             "/proc/self/cwd/etc/pwned", "/proc/sys/kernel/core_pattern",
             "/proc/sysrq-trigger"):
    attempt("write " + path, write, path)
attempt("remove", os.unlink, shared + "/theirs")
attempt("change mode", os.chmod, shared + "/theirs", 0o777)
attempt("change attribute", os.setxattr, shared + "/theirs", "user.a", b"b")
REMOUNT, BIND = 32, 4096
for flags in (REMOUNT, REMOUNT | BIND):
    for path in (b"/", b"/etc", b"/usr", shared.encode()):
        attempt(f"mount {{flags}} {{path}}",
                lambda: checked(libc.mount(b"none", path, None, flags, None)))
attempt("mount a file system", lambda: checked(libc.mount(b"t", b"/mnt", b"tmpfs", 0, None)))
attempt("make a device", os.mknod, "/dev/shm/disk", 0o060666, os.makedev(254, 0))
""")
    allowed = REFUSED | {"No such file or directory"}
    assert {name: why for name, why in found.items() if why not in allowed} == {}
    assert (shared / "theirs").read_text() == "as it was"
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert not any(Path(top, "pwned").exists() for top in ("/", "/etc", "/usr", "/dev"))


@needs_wall
def test_a_user_name_space_of_its_own_makes_nothing_writable(run: Hostile, shared: Path) -> None:
    found = run(f"""
NEWUSER, NEWNS, REMOUNT, BIND = 0x10000000, 0x20000, 32, 4096
attempt("name spaces", lambda: checked(libc.unshare(NEWUSER | NEWNS)))
for path in (b"/etc", {str(shared)!r}.encode()):
    attempt(f"mount {{path}}",
            lambda: checked(libc.mount(b"none", path, None, REMOUNT | BIND, None)))
attempt("write", write, {str(shared / "theirs")!r})
attempt("unmount", lambda: checked(libc.umount2(b"/etc/shadow", 0)))
""")
    del found["name spaces"]
    allowed = REFUSED | {"Invalid argument"}
    assert {name: why for name, why in found.items() if why not in allowed} == {}
    assert (shared / "theirs").read_text() == "as it was"


@needs_wall
def test_secrets_are_not_there(run: Hostile, shared: Path) -> None:
    secret = "PRIVATE-KEY-OF-THE-TEST"
    for name in (".ssh/id", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".env"):
        (shared / name).parent.mkdir(parents=True, exist_ok=True)
        (shared / name).write_text(secret)
    (shared / "link").symlink_to(shared / ".ssh/id")
    own = Path("/etc") / f"blklab-test-{os.getpid()}"
    beside = shared.parent / "beside"
    beside.write_text(secret)
    root = os.geteuid() == 0
    if root:
        own.write_text(secret)
        own.chmod(0o640)
        os.chown(own, 0, USER)
    try:
        found = run(f"""
for path in ("/etc/shadow", "/etc/gshadow", "/etc/shadow-", {str(own)!r}, {str(beside)!r}):
    attempt("read " + path, read, path)
for place in ({str(shared)!r}, "/proc/1/root" + {str(shared)!r}):
    for name in (".ssh/id", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".env", "link"):
        attempt("read " + place + "/" + name, read, place + "/" + name)
for path in ("/root/.ssh", "/root/.cache", "/home", "/var/lib", "/run/user", "/var/log", "/boot"):
    attempt("list " + path, os.listdir, path)
found["environment"] = " ".join(sorted(os.environ))
attempt("descriptors", lambda: sorted(os.listdir("/proc/self/fd")))
found["there"] = read({str(shared)!r} + "/theirs")
""")
    finally:
        own.unlink(missing_ok=True)
    assert found.pop("there") == "as it was"
    assert set(found.pop("environment").split()) <= {"PATH", "PWD", "TMPDIR", "LC_CTYPE"}
    # The fourth descriptor is that of the listing.
    assert found.pop("descriptors") == "['0', '1', '2', '3']"
    allowed = {"Permission denied", "No such file or directory", "[]"}
    assert {name: why for name, why in found.items() if why not in allowed} == {}


@needs_wall
def test_no_right_is_left_and_none_comes_back(run: Hostile) -> None:
    found = run("""
rows = dict(line.split(":\\t", 1) for line in read("/proc/self/status").splitlines())
for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs"):
    found[name] = rows[name].strip()
found["root"] = str(0 in os.getresuid())
attempt("become root", os.setuid, 0)
attempt("become a group", os.setgroups, [0])
""")
    assert found.pop("NoNewPrivs") == "1"
    assert found.pop("root") == "False"
    assert {found.pop(name) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert set(found.values()) <= {"Operation not permitted", "Invalid argument"}


@needs_wall
def test_processes_of_this_machine_are_neither_seen_nor_traced_nor_killed(run: Hostile) -> None:
    # A process that the guest's user could signal.
    words = ["setpriv", f"--reuid={USER}", "--clear-groups"] if os.geteuid() == 0 else []
    with subprocess.Popen([*words, "sleep", "600"]) as victim:
        try:
            found = run(f"""
for pid in ({victim.pid}, {os.getpid()}):
    attempt(f"kill {{pid}}", os.kill, pid, signal.SIGKILL)
    attempt(f"trace {{pid}}", lambda: checked(libc.ptrace(16, pid, None, None)))
    attempt(f"memory {{pid}}", read, f"/proc/{{pid}}/mem")
    attempt(f"root {{pid}}", os.listdir, f"/proc/{{pid}}/root")
found["seen"] = str(max(int(name) for name in os.listdir("/proc") if name.isdigit()) < 20)
# All that it may signal: itself and what is behind the wall with it.
signal.signal(signal.SIGTERM, signal.SIG_IGN)
attempt("all", os.kill, -1, signal.SIGTERM)
""")
            assert victim.poll() is None
        finally:
            victim.kill()
    assert found.pop("seen") == "True"
    assert found.pop("all") in {"None", "No such process"}
    allowed = {"No such process", "No such file or directory", "Operation not permitted"}
    assert {name: why for name, why in found.items() if why not in allowed} == {}


@needs_wall
def test_nothing_is_connected_to(run: Hostile, place: Path) -> None:
    abstract = f"\0blklab-test-{os.getpid()}"
    queue = 0x62000000 | os.getpid()
    libc = ctypes.CDLL(None)
    number = libc.msgget(queue, 0o1666)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as local,
        socket.socket(socket.AF_UNIX) as beside,
    ):
        local.bind(abstract)
        local.listen()
        beside.bind(str(place / "socket"))
        beside.listen()
        (place / "socket").chmod(0o777)
        found = run(f"""
attempt("this machine", connect, socket.AF_INET, ("127.0.0.1", {server.getsockname()[1]}))
attempt("another", connect, socket.AF_INET, ("192.0.2.1", 80))
attempt("abstract", connect, socket.AF_UNIX, {abstract!r})
attempt("beside", connect, socket.AF_UNIX, {str(place / "socket")!r})
attempt("message queue", lambda: checked(libc.msgget({queue}, 0)))
found["interfaces"] = " ".join(name for _, name in socket.if_nameindex())
""")
    libc.msgctl(number, 0, None)
    assert found == {
        "this machine": "Connection refused",
        "another": "Network is unreachable",
        "abstract": "Connection refused",
        "beside": "No such file or directory",
        "message queue": "No such file or directory",
        "interfaces": "lo",
    }


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86-64's system calls")
@needs_wall
def test_keys_of_the_session_are_not_there(run: Hostile) -> None:
    add_key, keyctl, session, join, search = 248, 250, -3, 1, 10
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(keyctl, join, None)
    if libc.syscall(add_key, b"user", b"blklab-test", b"secret", 6, session) == -1:
        pytest.skip(f"no keys here: {os.strerror(ctypes.get_errno())}")
    found = run(f"""
attempt("search", lambda: checked(
    libc.syscall({keyctl}, {search}, {session}, b"user", b"blklab-test", 0)))
""")
    assert found == {"search": "Required key not available"}


@needs_wall
@pytest.mark.parametrize("end", ["sys.exit(0)", "os.kill(os.getpid(), 9)", "signal.pause()"])
def test_nothing_of_a_guest_lives_on(place: Path, end: str) -> None:
    script = f"""
for number in range(200):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(1), os.close(2)
            for which in range(1, 32):
                if which not in (9, 17, 19):
                    signal.signal(which, signal.SIG_IGN)
            os.execv("/bin/sleep", ["sleep", "98765.{os.getpid()}"])
        os._exit(0)
os.wait(); write("/run/blklab/run/ready")
{end}
"""
    name = f"98765.{os.getpid()}"
    with boot(hostile_kernel.image(place, script), ["/init"], {}, View(), timeout_s=60) as guest:
        if "pause" in end:
            end_s = time.monotonic() + 30
            while not real_kernel.processes(Path(name)):
                assert time.monotonic() < end_s
                time.sleep(0.02)
            guest.kill()
        else:
            try:
                guest.wait()
            except KernelError:
                assert "kill" in end
        assert real_kernel.processes(Path(name)) == []


@needs_wall
def test_the_space_that_a_guest_can_write_is_bounded(place: Path) -> None:
    script = """
def fill(directory):
    number = 0
    while True:
        with open(f"{directory}/{number}", "wb", buffering=0) as file:
            for _ in range(8):
                file.write(bytes(1 << 20))
        number += 1
for directory in ("/run/blklab/run", "/dev/shm", "/tmp", "/dev", "/var/tmp"):
    attempt(directory, fill, directory)
print(json.dumps(found))
"""
    image = hostile_kernel.image(place, script)
    with boot(image, ["/init"], {}, View(), memory_mib=64, scratch_mib=32, timeout_s=60) as guest:
        found = json.loads(guest.wait().console)
        assert guest.run.is_full
        assert guest.run.size_mib == 32
    full = "No space left on device"
    assert (found["/run/blklab/run"], found["/dev/shm"]) == (full, full)
    assert {found[name] for name in ("/tmp", "/dev", "/var/tmp")} <= REFUSED


@needs_wall
def test_a_guest_that_talks_without_end_is_ended_in_time(place: Path) -> None:
    image = hostile_kernel.image(
        place, "os.fork(), os.fork(), os.fork()\nwhile True: os.write(1, bytes(1 << 16))"
    )
    began_s = time.monotonic()
    with (
        pytest.raises(KernelError, match="ended after 2 s"),
        boot(image, ["/init"], {}, View(), timeout_s=2) as guest,
    ):
        guest.wait()
    assert time.monotonic() - began_s < 20


@needs_wall
def test_the_last_output_of_a_guest_is_escaped_for_the_terminal(place: Path) -> None:
    image = hostile_kernel.image(place, r"print('\033]0;yours\007\033[2J', '\u202e'); sys.exit(1)")
    with (
        pytest.raises(KernelError) as told,
        boot(image, ["/init"], {}, View(), timeout_s=60) as guest,
    ):
        guest.wait()
    assert told.value.detail == (r"\x1b]0;yours\x07\x1b[2J \u202e",)


@pytest.fixture
def found_anew() -> Iterator[None]:
    """The barrier is detected again in this test, and after it."""
    wall._found.cache_clear()
    yield
    wall._found.cache_clear()


def test_without_a_wall_no_guest_is_started(
    place: Path, found_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(place))
    with pytest.raises(RunError) as told:
        boot(hostile_kernel.image(place, ""), ["/init"], {}, View())
    assert str(told.value) == (
        "blklab starts no guest without confinement: apt-get install bubblewrap"
    )


def test_an_impossible_wall_is_reported_with_its_reason(
    place: Path, found_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = place / "bwrap"
    program.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo bubblewrap 0.8.0 && exit\n"
        "echo bwrap: No permissions to create new namespace >&2; exit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.defpath}")
    with pytest.raises(RunError, match=r"permissions to create new namespace.*kernel\.unpriv"):
        boot(hostile_kernel.image(place, ""), ["/init"], {}, View())


@needs_wall
def test_an_interrupt_while_the_view_is_made_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: wall.Entry) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(wall.Entry, "enter", interrupted)
    before = len(list(Path("/proc/self/fd").iterdir()))
    image = hostile_kernel.image(place, "signal.pause()")
    with pytest.raises(KeyboardInterrupt):
        boot(image, ["/init"], {}, View(), timeout_s=60)
    assert real_kernel.processes(image) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@needs_wall
def test_root_gets_an_error_if_the_user_nobody_may_not_read_a_kernel(place: Path) -> None:
    image = hostile_kernel.image(place, "")
    image.chmod(0o700)
    with pytest.raises(RunError, match=f"which may not read {image}: chmod a[+]rX {image}"):
        boot(image, ["/init"], {}, View())


@pytest.mark.parametrize(
    ("version", "option", "there"),
    [
        ((0, 4, 1), "--size", False),
        ((0, 7, 0), "--size", True),
        ((0, 6, 1), "--disable-userns", False),
        ((0, 8, 0), "--disable-userns", True),
    ],
)
def test_a_bubblewrap_is_told_what_its_version_knows(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], option: str, there: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: USER)
    words = wall.Bubblewrap("bwrap", version).command(View(), Path("/linux"), 64, 32, ["true"])
    assert (option in words) == there
