"""The CPUs' frequency during a run, on a simulated /sys."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from blklab.host.roots import Roots
from blklab.rigs.live.frequency import Frequency


def set_to(top: Path, *khz: object) -> Roots:
    for number, value in enumerate(khz):
        place = top / f"sys/devices/system/cpu/cpu{number}/cpufreq"
        place.mkdir(parents=True, exist_ok=True)
        # As in /sys, a reader sees the value before or the value after, never an empty file.
        (place / "next").write_text(f"{value}\n")
        (place / "next").rename(place / "scaling_cur_freq")
    return Roots(sys=top / "sys")


def watched(top: Path, before: tuple[int, ...], after: tuple[int, ...]) -> Frequency:
    """The frequencies change between two samples. A sample of files that change meanwhile, one by
    one, could have the slower one of each."""
    watch = Frequency(set_to(top, *before))
    watch.look()
    set_to(top, *after)
    watch.look()
    return watch


def test_samples_are_taken_until_the_end(tmp_path: Path) -> None:
    with Frequency(set_to(tmp_path, 800_000), interval_s=0.001) as watch:
        for khz in (800_000, 900_000):
            set_to(tmp_path, khz)
            deadline = time.monotonic() + 60
            while watch.seen() != {"min": 800_000, "max": khz}:
                assert time.monotonic() < deadline
    set_to(tmp_path, 100_000)
    time.sleep(0.01)
    assert watch.seen() == {"min": 800_000, "max": 900_000}


@pytest.mark.parametrize(
    ("after", "note"),
    [
        ((800_000, 3_100_000), []),
        ((2_600_000, 800_000), ["the CPUs' frequency fell or rose by over 10% meanwhile"]),
        ((1_500_000, 800_000), ["the CPUs' frequency fell or rose by over 50% meanwhile"]),
    ],
)
def test_a_change_of_the_fastest_cpu_is_noted(
    tmp_path: Path, after: tuple[int, int], note: list[str]
) -> None:
    found = watched(tmp_path, (800_000, 3_000_000), after)
    low, high = sorted((3_000_000, max(after)))
    assert found.seen() == {"min": low, "max": high}
    assert found.notes() == note


@pytest.mark.parametrize("texts", [(), ("<unknown>",), (0,)])
def test_without_a_reported_frequency_there_is_no_figure_and_no_note(
    tmp_path: Path, texts: tuple[object, ...]
) -> None:
    with Frequency(set_to(tmp_path, *texts), interval_s=0.001) as found:
        time.sleep(0.01)
    assert (found.seen(), found.notes()) == (None, [])
