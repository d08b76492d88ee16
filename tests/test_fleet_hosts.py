"""The file of hosts of `blklab fleet`: what it says, and what is refused, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.base.catalogue import Entry
from blklab.errors import InputError
from blklab.fleet import hosts
from blklab.fleet.hosts import Fleet, Load

WHOLE = """
objective = "latency"
schedulers = ["none", "bfq"]
repeats = 4
seed = 7
timeout_s = 5
parallel = 2
workloads = ["oltp"]

[models]
"ST4000*" = "desktop-5900rpm"
"*" = "auto"

[[host]]
name = "root@db1.example"
label = "db1"
port = 2222
options = ["ProxyJump=bastion"]

[[host.load]]
disk = "sd*"
recording = "/var/tmp/day.rec"

[[host]]
names = ["web1", "web2"]
workloads = ["randread", "./own.fio:size=1m"]
"""


def parsed(text: str) -> Fleet:
    return hosts.parse(Entry("hosts", Path("/fleet/hosts.toml"), text))


def test_a_whole_file_is_read() -> None:
    fleet = parsed(WHOLE)
    assert (fleet.objective, fleet.schedulers, fleet.repeats, fleet.seed) == (
        "latency", ("none", "bfq"), 4, 7
    )  # fmt: skip
    assert (fleet.timeout_s, fleet.parallel) == (5, 2)
    first, second, third = fleet.hosts
    assert (first.name, first.label, first.port) == ("root@db1.example", "db1", 2222)
    assert first.options == ("ProxyJump=bastion",) and first.recordings == ["/var/tmp/day.rec"]
    assert [one.source for one in first.loads_of("sda")] == ["recording"]
    assert [one.text for one in first.loads_of("nvme0n1")] == ["oltp"], "the file's, for others"
    assert [one.text for one in third.loads_of("sda")] == ["randread", "/fleet/own.fio:size=1m"]
    assert (second.label, third.label) == ("web1", "web2")


def test_the_first_pattern_that_matches_a_model_counts() -> None:
    fleet = parsed(WHOLE)
    assert fleet.model("ST4000NM0035-1V4") == "desktop-5900rpm"
    assert fleet.model("WDC WD10EZRX") == "auto"
    assert parsed('[[host]]\nname = "a"\n').model("WDC WD10EZRX") == "auto"


def test_a_file_here_is_beside_the_file_of_hosts() -> None:
    fleet = parsed('[[host]]\nname = "a"\n[[host.load]]\nfile = "day.rec"\n')
    assert fleet.hosts[0].loads == (
        Load(None, "file", "/fleet/day.rec", ("host", 0, "load", 0, "file")),
    )


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "the key 'host' is missing"),
        ("host = []\n", 1, "host: missing; expected at least one [[host]]"),
        (
            '[[host]]\nname = "a"\nnmae = "b"\n',
            3,
            "nmae: there is no such key; did you mean 'name'",
        ),
        ('repeat = 3\n[[host]]\nname = "a"\n', 1, "no such key; did you mean 'repeats'"),
        ("[[host]]\nport = 22\n", 1, "expected either the key 'name' or the key 'names'"),
        ('[[host]]\nname = "a"\nnames = ["b"]\n', 1, "either the key 'name' or the key 'names'"),
        ('[[host]]\nname = "-oProxyCommand=sh"\n', 2, "expected a host: a name or user@name"),
        ('[[host]]\nname = "a b"\n', 2, "expected a host"),
        ('[[host]]\nnames = ["a", "a"]\n', 2, "expected a list of hosts, none twice"),
        ('[[host]]\nname = "a"\n[[host]]\nname = "x@a"\n', 4, "'a' is given twice"),
        ('[[host]]\nnames = ["a"]\nlabel = "b"\n', 3, "several hosts cannot have one label"),
        ('[[host]]\nname = "a"\nlabel = "../b"\n', 3, "expected a name of A-Z"),
        ('[[host]]\nname = "a"\nport = 70000\n', 3, "expected a whole number from 1 to 65535"),
        ('[[host]]\nname = "a"\nport = true\n', 3, "found true, expected a whole number"),
        ('[[host]]\nname = "a"\noptions = ["ProxyCommand=sh"]\n', 3, "belong in ~/.ssh/config"),
        ('[[host]]\nname = "a"\noptions = ["IdentityFile=a\\nb"]\n', 3, "a list of NAME=VALUE"),
        ('[[host]]\nname = "a"\n[[host.load]]\ndisk = "sda"\n', 3, "found none of them"),
        (
            '[[host]]\nname = "a"\n[[host.load]]\nfile = "x"\nworkload = "y"\n',
            3,
            "expected one of workload, recording, file; found workload and file",
        ),
        ('[[host]]\nname = "a"\n[[host.load]]\nrecording = "x"\n', 4, "a path that begins with /"),
        ('[[host]]\nname = "a"\n[[host.load]]\nrecording = "/x\\u0000"\n', 4, "a path that"),
        ('objective = "speed"\n[[host]]\nname = "a"\n', 1, "one of throughput, latency, both"),
        ('parallel = 0\n[[host]]\nname = "a"\n', 1, "a whole number from 1 to 256"),
        ('[models]\n"a" = 3\n[[host]]\nname = "a"\n', 2, "expected a disk model"),
        ('schedulers = ["bfq"]\n[[host]]\nname = "a"\n', 1, "expected at least two schedulers"),
        ("[[host\n", 1, "Expected"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(InputError) as error:
        parsed(text)
    assert str(error.value).startswith(f"/fleet/hosts.toml:{line}: "), str(error.value)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        hosts.read(tmp_path / "none.toml")
    (tmp_path / "odd.toml").write_bytes(b"\xff")
    with pytest.raises(InputError, match="not a text file in UTF-8"):
        hosts.read(tmp_path / "odd.toml")


@given(
    st.integers(0, len(WHOLE) - 1),
    st.sampled_from(["", "\0", '"', "[", "]", "=", "\n", ".", "-", "é", "9" * 30]),
    st.integers(0, 40),
)
def test_a_damaged_file_is_read_or_refused_in_one_line(at: int, put: str, removed: int) -> None:
    try:
        fleet = parsed(WHOLE[:at] + put + WHOLE[at + removed :])
    except InputError as error:
        assert str(error).startswith("/fleet/hosts.toml") and "\n" not in str(error)
    else:
        labels = [one.label for one in fleet.hosts]
        assert labels and len(set(labels)) == len(labels)
        assert not any("/" in label or label in ("", ".", "..") for label in labels)
        assert not any(one.name.startswith("-") for one in fleet.hosts)
