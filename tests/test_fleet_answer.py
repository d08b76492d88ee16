"""A machine's answer to `blklab fleet` is never trusted: what is taken, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blklab.errors import InputError
from blklab.fleet import answer, disks
from blklab.fleet.disks import Machine
from tests.fleet_machines import ROOT, WD

REAL = (ROOT / "examples/fleet/mail1/answer.txt").read_bytes()
HEAD = f"{answer.HEAD}\n"
AT = "devices/a/block/sda"


def refused(lines: str) -> str:
    with pytest.raises(InputError) as error:
        answer.parse(f"{HEAD}{lines}end\n".encode(), "db1")
    assert "\n" not in str(error.value) and str(error.value).isprintable()
    return str(error.value)


def machine(lines: str, top: Path) -> Machine:
    found = answer.parse(f"{HEAD}{lines}end\n".encode(), "db1")
    return disks.machine("db1", found, "", top)


def test_a_disk_is_described_as_one_of_this_machine_is(tmp_path: Path) -> None:
    found = disks.machine("mail1", answer.parse(REAL, "mail1"), "today", tmp_path)
    assert (found.host_name, found.release) == ("mail1", "6.12.41+deb13-amd64")
    [disk] = found.disks
    assert disk.model == WD, "the whole name, which SCSI cuts off"
    assert (disk.place, disk.kind, disk.number) == ("mail1:sda", "sata hdd", "8:0")
    assert (disk.scheduler, disk.tunables, disk.default) == ("mq-deadline", (), "mq-deadline")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("x\ty\n", "db1:2: no record 'x'"),
        ("f\n", "db1:2: '' is not a path"),
        (f"f\t{AT}/size\nt\t1\nl\t{AT}/driver\n", "db1:4: record l: expected 2 fields, found 1"),
        ("t\thello\n", "db1:2: a line without a file"),
        (f"f\t{AT}/model\nt\tX\nl\t{AT}/driver\tsd\nt\tY\n", "db1:5: a line without a file"),
        (f"f\t{AT}/vpd_pg89\nh\t0g\n", "db1:3: expected bytes in hexadecimal"),
        (f"f\t{AT}/model\nh\t00\n", "db1:3: bytes of 'model'; expected those of vpd_pg89"),
        # Found by the fuzzer.
        (f"f\t{AT}/size\nt\t781=037168\n", "size: expected a number, found '781=037168'"),
        (f"f\t{AT}/size\nt\t1\nt\t2\n", "db1:4: size: expected a number, found '2'"),
        (f"f\t{AT}/queue_depth\nt\t\u00b2\n", "queue_depth: expected a number"),
        ("f\t/etc/passwd\n", "is not a path below /sys/devices"),
        ("f\tdevices/../../etc/passwd\n", "'..' is not a name of sysfs"),
        ("f\tdevices/a//b\n", "'' is not a name of sysfs"),
        (f"f\tdevices/{'a/' * 60}b\n", "is not a path below /sys/devices"),
        ("d\tsda\tdevices/a/sdb\n", "'sda' is not the name of a disk at that path"),
        ("d\ts a\tdevices/a/s a\n", "is not a name of sysfs"),
        (f"l\t{AT}/driver\t../../etc\n", "is not a name of sysfs"),
        ("u\tsda\n", "udev's properties of 'sda', which is not listed"),
        ("p\tkernel/core_pattern\tx\n", "expected one of kernel/hostname, kernel/osrelease"),
        ("r\t99999\tx\n", "expected the number of a recording"),
        (f"f\t{AT}/model\nt\ta\x1b[2Jb\n", r"record t: a control character in 'a\x1b[2Jb'"),
        (f"f\t{AT}/model\nt\ta\tb\n", r"a control character in 'a\tb'"),
        (f"f\t{AT}/model\nt\t{'x' * 33000}\n", "a line of 33002 characters"),
        ("s\tetc/shadow\n", "'etc/shadow' is not a file of udev's rules or of tuned"),
        ("s\tetc/udev/rules.d/../x.rules\n", "is not a file of udev's rules or of tuned"),
        ("s\tetc/udev/rules.d/.x.rules\n", "is not a file of udev's rules or of tuned"),
        ("s\tetc/tuned/a/b/tuned.conf\n", "is not a file of udev's rules or of tuned"),
        (f"f\t{AT}/model\nw\tx\n", "db1:3: a line without a file of settings"),
        ("s\tetc/udev/rules.d/x.rules\nt\tx\n", "db1:3: a line without a file"),
        ("".join(f"d\tsd{n}\tdevices/a/sd{n}\n" for n in range(1025)), "more than 1024 disks"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number(lines: str, said: str) -> None:
    assert said in refused(lines)


def test_bytes_that_are_no_text_are_shown_and_not_lost(tmp_path: Path) -> None:
    data = f"{HEAD}f\t{AT}/model\nt\t".encode() + b"\xff\n" + b"end\n"
    assert answer.parse(data, "db1").files[f"{AT}/model"] == b"\\xff\n"


def test_settings_are_taken_whatever_an_administrator_has_written(tmp_path: Path) -> None:
    told = 's\tetc/udev/rules.d/x.rules\nw\tKERNEL=="a",\tX\x1b[2J\nw\t\nw\ta\tb\n'
    found = answer.parse(f"{HEAD}{told}end\n".encode(), "db1")
    roots = answer.write_tree(found, tmp_path, "db1")
    written = (roots.etc / "udev/rules.d/x.rules").read_text()
    assert written == 'KERNEL=="a", X [2J\n\na b\n'


def test_an_answer_that_is_too_large_or_cut_off_is_refused() -> None:
    with pytest.raises(InputError, match="more than"):
        answer.parse(b"x" * (answer.BYTES_MAX + 1), "db1")
    for end in range(len(REAL) - 4):
        with pytest.raises(InputError, match=r"cut off|no answer"):
            answer.parse(REAL[:end], "db1")


@pytest.mark.parametrize(
    "lines",
    [
        f"f\t{AT}\nf\t{AT}/size\n",
        f"f\t{AT}/size\nl\t{AT}/size\tx\n",
        f"l\t{AT}/driver\ta\nd\tdriver\t{AT}/driver\n",
        f"d\tsda\t{AT}\nv\t{AT}\tdevices/b\nf\t{AT}/device/x\n",
        f"v\t{AT}\t{AT}/size/x\nf\t{AT}/size\n",
    ],
)
def test_files_that_contradict_each_other_are_refused(lines: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contradict each other") as error:
        machine(lines, tmp_path)
    assert str(tmp_path) not in str(error.value)


def test_no_file_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    top = tmp_path / "top"
    machine(f"l\tdevices/a/x\tb\nf\tdevices/a/b/c\nt\t1\nd\tsda\t{AT}\n", top)
    assert not list(outside.iterdir())
    links = [path for path in top.rglob("*") if path.is_symlink()]
    assert links and all(path.resolve().is_relative_to(top.resolve()) for path in links)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"removable": "1"}, "it is removable"),
        ({"hidden": "1"}, "a path of a disk that has several"),
        ({"queue/scheduler": "none"}, "no scheduler fits it"),
        ({"queue/scheduler": ""}, "its queue does not say enough"),
        ({"queue/rotational": ""}, ""),
        ({"size": "0"}, "it is empty"),
    ],
)
def test_disks_that_no_answer_is_about_are_left_out(
    files: dict[str, str], said: str, tmp_path: Path
) -> None:
    usual = {
        "dev": "8:0", "size": "2048", "removable": "0", "queue/rotational": "1",
        "queue/scheduler": "none [mq-deadline]",
    }  # fmt: skip
    lines = f"d\tsda\t{AT}\n"
    for name, text in (usual | files).items():
        lines += f"f\t{AT}/{name}\nt\t{text}\n"
    found = machine(lines, tmp_path)
    assert found.left_out == ((f"sda: {said}",) if said else ())
    assert len(found.disks) == (not said)


def test_only_tunables_without_their_defaults_count(tmp_path: Path) -> None:
    values = {
        "fifo_expire_sync": "124", "fifo_expire_async": "250", "slice_idle": "0",
        "slice_idle_us": "0", "low_latency": "0", "timeout_sync": "120", "max_budget": "0",
        "odd": "7", "back_seek_max": "many",
    }  # fmt: skip
    lines = f"d\tsda\t{AT}\n"
    for name, text in {
        "size": "2048", "queue/rotational": "1", "queue/scheduler": "none [bfq]", "dev": "8:0",
        **{f"queue/iosched/{name}": value for name, value in values.items()},
    }.items():  # fmt: skip
        lines += f"f\t{AT}/{name}\nt\t{text}\n"
    [disk] = machine(lines, tmp_path).disks
    assert disk.present.label == "bfq:low_latency=0,slice_idle_us=0"


@settings(deadline=None)
@given(
    st.integers(0, len(REAL)),
    st.sampled_from(
        [b"", b"\t", b"\n", b"\0", b"/", b"..", b"end\n", b"f\t", b"\xff", b"d\tsda\t"]
    ),
    st.integers(0, 60),
)
def test_a_damaged_answer_is_taken_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, at: int, put: bytes, removed: int
) -> None:
    top = tmp_path_factory.mktemp("damaged") / "top"
    try:
        found = answer.parse(REAL[:at] + put + REAL[at + removed :], "db1")
        disks.machine("db1", found, "", top)
    except InputError as error:
        assert "\n" not in str(error) and str(error).isprintable()
    resolved = top.resolve()
    assert all(path.resolve().is_relative_to(resolved) for path in top.rglob("*"))
