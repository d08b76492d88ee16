"""Every count has a maximum; a larger one gives one line before any work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from blklab.base.limits import BUDGET_RUNS_MAX, JOBS_MAX, REPEATS_MAX, RUNS_MAX
from blklab.domain import specs
from blklab.domain.comparison import Setup
from blklab.domain.experiment import Disk
from blklab.errors import InputError
from blklab.experiment import budget
from tests.test_cli import failing
from tests.test_comparison import entry


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compare", "--repeats", "100000000000"), f"less than or equal to {REPEATS_MAX}"),
        (("run", "bfq-2008", "--repeats", "100000000000"), f"less than or equal to {REPEATS_MAX}"),
        (("compare", "--jobs", "100000000000"), f"less than or equal to {JOBS_MAX}"),
        (("run", "bfq-2008", "--jobs", "100000000000"), f"less than or equal to {JOBS_MAX}"),
        (("verify", "--jobs", "100000000000"), f"less than or equal to {JOBS_MAX}"),
        (("kernel", "build", "--jobs", "100000000000"), f"less than or equal to {JOBS_MAX}"),
        (("compare", "--budget", "1e300d"), "at most 365d"),
    ],
)
def test_more_than_the_maximum_is_one_line_that_says_it(
    words: tuple[str, ...],
    said: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, text = failing(capfd, monkeypatch, *words)
    assert code == 2 and text.count("\n") == 1
    assert said in text


def wide(repeats: int, schedulers: int = 100) -> Setup:
    return Setup(
        tuple(Disk(entry(f"disk{number}")) for number in range(10)),
        tuple(entry(f"load{number}") for number in range(10)),
        tuple(
            specs.scheduler(f"mq-deadline:fifo_batch={number}")
            for number in range(1, schedulers + 1)
        ),
        repeats,
        1,
    )


def test_runs_are_counted_before_they_are_planned() -> None:
    wide(RUNS_MAX // 10_000)
    with pytest.raises(
        InputError,
        match=r"10 disks x 10 workloads x 100 schedulers x 5000 repeats are 50,000,000 runs",
    ) as caught:
        wide(5000)
    assert f"at most {RUNS_MAX:,}" in str(caught.value)


def test_a_budget_of_many_cells_has_fewer_repeats() -> None:
    assert len(budget.blocks(wide(1))) == BUDGET_RUNS_MAX // 10_000
    assert len(budget.blocks(wide(1, 1))) == 1000


MANY = "[many]\nrw=randread\nsize=32k\nbs=4k\ndirect=1\nnumjobs=4096\n"


def test_a_run_that_needs_more_memory_than_there_is_ends_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "many.fio").write_text(MANY)

    # The core needs some 80 MB more than the program has when it begins.
    limited = """
import resource, sys
from pathlib import Path
from blklab.domain import core, result
from blklab import __main__
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + (40 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
sys.argv[0] = "blklab"
__main__.main()
"""
    words = ["fio", "many.fio", "--disk", "wd10ezrx"]
    done = subprocess.run(
        [sys.executable, "-c", limited, *words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("blklab: out of memory: ")
    assert "fewer jobs" in done.stderr
