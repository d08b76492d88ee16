"""CPU work of programs in a guest against this machine's: `validation.cpu`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from validation import cpu

from tests import real_kernel


def test_a_row_beyond_its_bar_fails_unless_it_is_the_noise_of_a_switch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    real_kernel.image()

    def judged(name: str, guest_ns: list[float], here_ns: list[float]) -> int:
        guest, here = iter(guest_ns), iter(here_ns)

        def one(_work: object, _within: object = None, *, of: Iterator[float]) -> float:
            return next(of)

        monkeypatch.setattr(cpu, "_in_guest", lambda work: one(work, of=guest))
        monkeypatch.setattr(cpu, "_here", lambda work, within: one(work, within, of=here))
        rounds = str(len(guest_ns))
        out = str(tmp_path / "rows.json")
        return cpu.main(["--rounds", rounds, "--only", name, "--out", out])

    assert judged("SHA-256", [4000, 9000, 4100], [4000, 4100, 4200]) == 0
    assert judged("SHA-256", [5800, 5900, 4100], [4000, 4100, 4200]) == 1
    assert "beyond" in capsys.readouterr().out
    assert judged("getppid", [100], [400]) == 0
    assert judged("getppid", [2000], [400]) == 1
    assert judged("create a file", [10_000], [40_000]) == 1
    assert judged("start a program", [1.6e6], [0.5e6]) == 0
    [row] = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert (row["guest_ns"], row["here_ns"]) == ([1.6e6], [0.5e6])


def test_a_guest_charges_a_computation_about_what_this_machine_takes(
    tmp_path: Path,
) -> None:
    real_kernel.image()
    # Other tests share the CPUs with both: a bar of 1.3 is for an idle machine.
    [work] = [one for one in cpu.WORKS if one.name.startswith("SHA-256")]
    place = tmp_path / "place"
    place.mkdir()
    guest, here = cpu._in_guest(work), cpu._here(work, place)
    assert 1 / 3 < guest / here < 3
    assert not list(place.iterdir())
