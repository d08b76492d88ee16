"""`blklab bisect`: the search, what is a difference, and real kernels."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blklab
from blklab.api.bisect import search
from blklab.api.candidates import Line, Step
from blklab.api.names import DEFAULT_KERNEL
from blklab.errors import InputError
from blklab.rigs.kernel import cache
from blklab.timelines.difference import first_difference
from blklab.timelines.timeline import Request, Timeline
from tests import real_kernel

JOB = """[global]
direct=1
size=64m
runtime=200ms
time_based
[readers]
rw=randread
bs=4k
ioengine=libaio
iodepth=24
[writer]
rw=randwrite
bs=64k
ioengine=libaio
iodepth=24
# Only then are there batches.
startdelay=50ms
"""


def timeline(*requests: tuple[str, int, int, int]) -> Timeline:
    """Each: operation, sector, sectors, time of issue in ns."""
    rows = [
        Request(number, 0, op, sector, sectors, issued_ns, issued_ns, None, issued_ns + 10)
        for number, (op, sector, sectors, issued_ns) in enumerate(requests, 1)
    ]
    return Timeline("load", "disk", "none", "kernel", 100, 0, 100, {0: "job"}, rows, ())


def test_the_kind_of_a_difference_is_what_is_not_the_same() -> None:
    one = timeline(("read", 0, 8, 1), ("read", 8, 8, 2))
    others = {
        "order": timeline(("read", 0, 8, 1), ("write", 64, 8, 2)),
        "size": timeline(("read", 0, 8, 1), ("read", 8, 16, 2)),
        "end": timeline(("read", 0, 8, 1)),
    }
    for kind, other in others.items():
        found = first_difference(one, other, times=False)
        assert found is not None and (found.kind, found.index) == (kind, 1)
    later = timeline(("read", 0, 8, 1), ("read", 8, 8, 3))
    assert first_difference(one, later, times=False) is None
    found = first_difference(one, later, times=True)
    assert found is not None and (found.kind, found.index) == ("time", 1)
    assert found.before[0][0] == one.requests[0]


def test_requests_are_compared_in_the_order_of_issue_and_not_of_queueing() -> None:
    one = timeline(("read", 0, 8, 5), ("read", 8, 8, 2))
    other = timeline(("read", 8, 8, 2), ("read", 0, 8, 5))
    assert first_difference(one, other, times=True) is None


@given(st.integers(2, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_the_first_other_kernel_is_found_in_few_runs(drawn: tuple[int, int]) -> None:
    count, first = drawn
    runs: list[str] = []

    def run(kernel: str) -> Timeline:
        runs.append(kernel)
        return timeline(("read", 8 if int(kernel) >= first else 0, 8, 1))

    steps = [Step(str(number), partial(str, number)) for number in range(count)]
    found = search(Line(steps), run, times=False)
    if first == count:
        assert (found.first, runs) == (None, ["0", str(count - 1)])
    else:
        assert (found.first, found.last_same) == (str(first), str(first - 1))
        assert len(runs) <= 2 + count.bit_length() and len(set(runs)) == len(runs)


def series(directory: Path, changes: Sequence[tuple[str, str, str]]) -> list[Path]:
    """Patches of block/mq-deadline.c, each replacing a text that occurs once, on top of the one
    before."""
    before = blklab.kernel_source("block/mq-deadline.c").decode()
    files = []
    for name, text, becomes in changes:
        assert before.count(text) == 1, text
        after = before.replace(text, becomes)
        lines = difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            "a/block/mq-deadline.c",
            "b/block/mq-deadline.c",
        )
        files.append(directory / name)
        files[-1].write_text("".join(lines))
        before = after
    return files


@pytest.mark.xdist_group("kernel")
def test_the_patch_of_a_series_that_changes_the_order_of_requests_is_found(tmp_path: Path) -> None:
    real_kernel.image()
    patches = series(
        tmp_path,
        [
            ("0001-words.patch", "static const int read_expire", "static int const read_expire"),
            (
                "0002-batches.patch",
                "static const int fifo_batch = 16;",
                "static const int fifo_batch = 1;",
            ),
            ("0003-words.patch", "static const int write_expire", "static int const write_expire"),
        ],
    )
    file = tmp_path / "mixed.fio"
    file.write_text(JOB)
    source = DEFAULT_KERNEL
    found = blklab.bisect(file, disk="su800-128gb", good=source, patches=patches)
    assert (found.first, found.last_same) == ("0002-batches.patch", "0001-words.patch")
    assert found.same == {
        source: True,
        "0001-words.patch": True,
        "0002-batches.patch": False,
        "0003-words.patch": False,
    }
    assert found.difference is not None and found.difference.kind == "order"
    # All are compared, not as many as a timeline shows.
    assert found.difference.index > 1000 and found.left_out == 0
    assert found.difference.after[0][0] is not None
    assert found.difference.after[0][0].issued_ns > 50_000_000
    # Only its own: other tests build kernels meanwhile.
    blklab.remove_kernels(
        [k.key for k in cache.kernels() if {p.name for p in patches} & set(k.patches)]
    )


@pytest.mark.xdist_group("kernel")
def test_between_two_kernels_requests_have_other_sizes_since_6_17(tmp_path: Path) -> None:
    older = real_kernel.older("6.12")
    file = tmp_path / "large.fio"
    file.write_text("[w]\nrw=write\nbs=4m\ndirect=1\nsize=64m\n")
    newest = cache.chosen(None).key
    found = blklab.bisect(file, disk="wd10ezrx", good=older, bad=newest, through=())
    assert found.difference is not None and found.difference.kind == "size"
    [(one, other), *_] = found.difference.after
    assert one is not None and other is not None
    assert (one.sectors, other.sectors) == (2560, 8192)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, r"^--bad: expected a kernel, or with --patch a series of patches$"),
        ({"bad": "no-such"}, r"^no kernel 'no-such'"),
        ({"patches": ["no.patch"]}, r"^--patch: no file 'no.patch'$"),
        ({"patches": ["no.patch"], "bad": "x"}, r"^--patch: the series ends with its last patch"),
    ],
)
def test_wrong_words_are_refused_in_one_line(words: dict[str, object], said: str) -> None:
    good = real_kernel.image().parent.name
    with pytest.raises(InputError, match=said):
        blklab.bisect("randread", disk="constant", good=good, **words)  # type: ignore[arg-type]


def test_one_kernel_is_not_compared_with_itself() -> None:
    good = real_kernel.image().parent.name
    with pytest.raises(InputError, match=r"are the same kernel$"):
        blklab.bisect("randread", disk="constant", good=good, bad=good)
