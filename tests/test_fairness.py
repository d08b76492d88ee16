"""The service of each job of a run, and how evenly they shared the disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blklab
from blklab.domain.job_figures import Service, figures_of_jobs, service_of
from blklab.domain.latencies import latencies
from blklab.experiment.fairness import fairness

_MIB = 1 << 20


def _service(turns: list[tuple[int, int]], names: tuple[str, ...]) -> Service:
    """Turns of so many MiB of each process, at 1 MiB/ns."""
    ends, now = [], 0
    for _, mib in turns:
        now += mib
        ends.append(now)
    return Service(
        names,
        tuple(0 for _ in names),
        tuple(ends),
        tuple(process for process, _ in turns),
        tuple(mib * _MIB for _, mib in turns),
    )


def test_turns_in_proportion_to_weights_are_fair_but_for_one_round() -> None:
    served = _service([(0, 1), (1, 1), (2, 2)] * 8, ("a", "b", "c"))
    how = fairness(served, {"c": 2.0})
    assert how is not None
    # Of the last round, the first process to end sees only its own turn.
    assert how.jain == pytest.approx(1.0, abs=0.01)
    assert how.lag_bytes == _MIB, "the double share, before its turn"
    assert how.ends_apart == pytest.approx(32 / 29)


def test_equal_turns_are_unfair_to_the_process_with_the_double_weight() -> None:
    served = _service([(0, 1), (1, 1), (2, 1)] * 8, ("a", "b", "c"))
    how = fairness(served, {"c": 2.0})
    assert how is not None
    # By the end of the first: 8, 7 and 7 MiB, for which 5.5, 5.5 and 11 were due.
    assert how.jain == pytest.approx((8 + 7 + 3.5) ** 2 / (3 * (64 + 49 + 3.5**2)))
    assert how.lag_bytes == 4 * _MIB


def test_no_process_is_behind_before_all_have_begun_or_after_one_has_ended() -> None:
    late = _service([(0, 10), (1, 5), (0, 5), (1, 50)], ("a", "b"))
    late = Service(late.names, (0, 10), late.end_ns, late.process, late.bytes)
    how = fairness(late, {})
    assert how is not None
    assert (how.jain, how.lag_bytes) == (1.0, 2.5 * _MIB)


def test_without_any_service_of_a_process_fairness_is_unknown() -> None:
    assert fairness(_service([(0, 1)], ("a", "b")), {}) is None


@given(
    turns=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), min_size=3),
    weights=st.lists(st.integers(1, 9), min_size=3, max_size=3),
    factor=st.integers(2, 9),
)
def test_only_ratios_of_weights_count(
    turns: list[tuple[int, int]], weights: list[int], factor: int
) -> None:
    names = ("a", "b", "c")
    served = _service([*turns, (0, 1), (1, 1), (2, 1)], names)
    found = fairness(served, dict(zip(names, map(float, weights), strict=True)))
    assert found is not None
    total = sum(served.bytes)
    assert 1 / 3 - 1e-9 <= found.jain <= 1 + 1e-9
    assert 0 <= found.lag_bytes <= total
    scaled = fairness(
        served, dict(zip(names, (float(w * factor) for w in weights), strict=True))
    )  # fmt: skip
    assert scaled is not None
    assert scaled.jain == pytest.approx(found.jain)
    assert scaled.lag_bytes == pytest.approx(found.lag_bytes)


_TWO_JOBS = """
[a]
rw=read
bs=64k
direct=1
size=4m
[b]
rw=randread
bs=4k
direct=1
size=1m
numjobs=2
startdelay=1
"""


def test_jobs_are_told_apart_and_their_turns_are_all_there(tmp_path: Path) -> None:
    job = tmp_path / "two.fio"
    job.write_text(_TWO_JOBS)
    result = blklab.simulate(job, disk="st3320620as", scheduler="none")
    first, second = figures_of_jobs(result)
    assert (first.name, second.name) == ("a", "b")
    assert second.start_ns == 1_000_000_000
    assert first.latencies == latencies(result.jobs[:1])
    assert second.latencies["read"].ios == 2 * 256
    assert first.later_ns is None, "the first job is over within a second"
    served = service_of(result)
    assert served is not None
    of = dict.fromkeys(range(3), 0)
    for process, count in zip(served.process, served.bytes, strict=True):
        of[process] += count
    assert of == {0: 4 * _MIB, 1: _MIB, 2: _MIB}
    assert list(served.end_ns) == sorted(served.end_ns)
    again = json.loads(json.dumps(served, default=vars))
    assert again["process"] == list(served.process)


def test_a_run_of_one_process_has_neither(tmp_path: Path) -> None:
    job = tmp_path / "one.fio"
    job.write_text("[a]\nrw=read\nbs=64k\ndirect=1\nsize=1m\n")
    result = blklab.simulate(job, disk="st3320620as", scheduler="none")
    assert (figures_of_jobs(result), service_of(result)) == ((), None)
