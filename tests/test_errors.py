"""Errors as values: the core's errors have fields, which form one line."""

from __future__ import annotations

import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from blklab import _core
from blklab.base import binaries
from blklab.base.catalogue import Entry
from blklab.domain import core, job_changes, results_file, scheduler, specs
from blklab.domain.experiment import Disk
from blklab.errors import InputError, NoRoomError

DISK = _core.disk_files()["wd10ezrx"]


def job(text: str) -> object:
    return core.describe_job(Entry("a", Path("a.fio"), text), ignore_unsupported=False)


def disk(old: str, new: str) -> object:
    return core.disk_model(Disk(Entry("a", Path("a.toml"), DISK.replace(old, new, 1))))


@pytest.mark.parametrize(
    ("refused", "fields"),
    [
        (
            lambda: job("[a]\niodepht=8\n"),
            {"file": "a.fio", "line": 2, "option": "iodepht", "nearest": "iodepth"},
        ),
        (lambda: job("[a]\nrw=raed\n"), {"option": "rw", "found": "raed", "nearest": "read"}),
        (
            lambda: job("[a]\niodepth=x\n"),
            {"found": "x", "expected": "a whole number, 1 to 1048576", "nearest": None},
        ),
        (
            lambda: disk("\nrpm = 5400", "\nrpm = -5400"),
            {"file": "a.toml", "option": "rpm", "found": "-5400", "column": 7},
        ),
        (lambda: disk("\nrpm =", "\nrmp ="), {"option": "rmp", "nearest": "rpm", "column": 1}),
        (
            lambda: core.disk_model(specs.disk("wd10ezrx:heads=0")),
            {"file": "wd10ezrx.toml", "line": None, "option": "heads", "found": "0"},
        ),
        (
            lambda: scheduler.simulated("kyber:read_lat_nsec=x"),
            {"file": None, "option": "read_lat_nsec", "found": "x"},
        ),
        (lambda: scheduler.simulated("kyper"), {"found": "kyper", "nearest": "kyber"}),
        (lambda: core.check_host({"cpuss": 1}), {"option": "cpuss", "nearest": "cpus"}),
        (lambda: specs.disk("wd10ezrz"), {"found": "wd10ezrz", "nearest": "wd10ezrx"}),
        (
            lambda: specs.workload("randread:iodepht=8"),
            {"file": "randread:iodepht=8", "line": None, "option": "iodepht"},
        ),
    ],
)
def test_an_error_of_an_input_has_fields(
    refused: Callable[[], object], fields: dict[str, object]
) -> None:
    with pytest.raises(InputError) as caught:
        refused()
    error = caught.value
    assert {name: getattr(error, name) for name in fields} == fields
    place = "".join(
        [error.file or "", f":{error.line}" if error.line else "", ": " if error.file else ""]
    )
    assert str(error) == place + error.reason
    # As it comes back from a worker process.
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_a_job_that_is_too_large_says_by_how_much() -> None:
    with pytest.raises(NoRoomError) as caught:
        _core.FioJob("[a]\nrw=read\nsize=2g\n", "a.fio", {}, False, 1 << 30, 1)
    error = caught.value
    assert (error.job, error.need_bytes, error.room_bytes) == ("a", 2 << 30, 1 << 30)
    assert (
        str(error) == "a.fio:1: job 'a': the files need 2147483648 bytes, the disk has 1073741824"
    )
    assert vars(pickle.loads(pickle.dumps(error))) == vars(error)


def test_an_error_in_an_included_file_keeps_its_place(tmp_path: Path) -> None:
    (tmp_path / "common.fio").write_text("rw=read\n")
    own = Entry("own", tmp_path / "own.fio", "[global]\ninclude common.fio\n[a]\nsize=1m\n")
    with pytest.raises(InputError) as caught:
        job_changes.changed(own, "bs=5x")
    assert str(caught.value).startswith("own:bs=5x: option 'bs': found '5x', expected ")
    (tmp_path / "common.fio").write_text("rw=raed\n")
    with pytest.raises(InputError, match=r"common\.fio:1: option 'rw': found 'raed'"):
        job_changes.changed(own, "bs=4k")


def test_texts_that_the_core_cannot_hold_are_one_line() -> None:
    with pytest.raises(InputError, match=r"^'utf-8' codec can't encode .*$"):
        job("[a]\n\ud800=1\n")
    with pytest.raises(InputError, match=r"^seed or host value: out of range for 64 bits$"):
        core.check_host({"cpus": 1 << 70})


def test_results_that_are_none_name_their_file(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text('{"format": 0}')
    with pytest.raises(InputError) as caught:
        results_file.load(tmp_path)
    assert (caught.value.file, caught.value.found) == (str(file), "0")
    assert str(caught.value).startswith(f"{file}: results of format 0, expected ")


def test_the_programs_in_rust_say_it_with_the_same_words(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(DISK.replace("\nrpm = 5400", "\nrpm = -5400", 1))
    with pytest.raises(InputError) as caught:
        core.disk_model(specs.disk(str(file)))
    done = subprocess.run(
        [binaries.find("blklab-disk"), "create", f"--disk={file}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == f"blklab-disk: {caught.value}\n"
