"""The objects of each configuration, put aside while another one is built."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from blklab.rigs.kernel import objects, tools
from blklab.rigs.kernel.build import build
from blklab.rigs.kernel.errors import KernelError
from tests import fake_linux


def made(place: Path, wish: str) -> Path:
    """As a build of that configuration leaves them."""
    found = objects.select(place, wish)
    found.mkdir(exist_ok=True)
    (found / objects.WISH).write_text(wish)
    return found


def configurations(place: Path) -> set[str]:
    return {path.read_text() for path in place.glob(f"**/{objects.WISH}")}


@pytest.mark.skipif(bool(tools.missing()), reason=f"not installed: {', '.join(tools.missing())}")
def test_going_back_to_a_configuration_compiles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLKLAB_CACHE", str(tmp_path / "cache"))
    linux = fake_linux.write_tree(tmp_path / "linux")
    makefile = linux / "Makefile"
    # As in Kbuild, where an option may concern every file.
    makefile.write_text(makefile.read_text().replace("$(O)/%.o: %.c", "$(O)/%.o: %.c $(O)/.config"))
    patch = tmp_path / "wait.patch"
    patch.write_text(fake_linux.PATCH.format(delay=3))
    others = {"X": ["X=y"], "none": [], "Y": ["Y=y"]}
    for options in others.values():
        assert build(str(linux), options=options).kernel.compiled == 2
    for options in others.values():
        assert build(str(linux), [patch], options=options).kernel.compiled == 1
    (linux / "block/elevator.c").write_text("int elevator = 7;\n")
    for options in others.values():
        assert build(str(linux), [patch], options=options).kernel.compiled == 1


def test_a_new_configuration_begins_with_the_objects_of_the_nearest_one(tmp_path: Path) -> None:
    for wish in ("A=y\nB=y\n", "A=y\nB=n\nC=y\nD=y\n"):
        (made(tmp_path, wish) / "block.o").write_text(wish)
        os.utime(tmp_path / "objects/block.o", (1000, 1000))
    found = made(tmp_path, "A=y\nB=y\nE=y\n")
    assert (found / "block.o").read_text() == "A=y\nB=y\n"
    assert (found / "block.o").stat().st_mtime == 1000
    # A copy: what is compiled here is not compiled there.
    (found / "block.o").write_text("E")
    assert (made(tmp_path, "A=y\nB=y\n") / "block.o").read_text() == "A=y\nB=y\n"


def test_those_that_were_not_used_for_longest_are_removed(tmp_path: Path) -> None:
    names = [f"N={number}\n" for number in range(6)]
    for number, wish in enumerate(names):
        made(tmp_path, wish)
        for path in (tmp_path / "aside").glob("*"):
            os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**9 * (6 - number)))
    assert configurations(tmp_path) == set(names[1:])
    made(tmp_path, names[1])
    made(tmp_path, "N=6\n")
    assert configurations(tmp_path) == {names[1], *names[3:], "N=6\n"}


@pytest.mark.parametrize("ends_at", range(1, 7))
def test_an_interruption_at_any_step_loses_no_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_at: int
) -> None:
    for wish in ("A=y\n", "B=y\n"):
        (made(tmp_path, wish) / "own").write_text(wish)
    steps = iter(range(1, 100))

    def stopping(function: str) -> None:
        kind: Any = Path if hasattr(Path, function) else shutil
        plain = getattr(kind, function)

        def step(*arguments: object, **named: object) -> object:
            if next(steps) == ends_at:
                raise KeyboardInterrupt
            return plain(*arguments, **named)

        monkeypatch.setattr(kind, function, step)

    for function in ("rename", "touch", "mkdir", "rmtree"):
        stopping(function)
    with contextlib.suppress(KeyboardInterrupt):
        objects.select(tmp_path, "A=y\n")
    monkeypatch.undo()
    for wish in ("C=y\n", "A=y\n", "B=y\n"):
        found = made(tmp_path, wish)
        assert (found / objects.WISH).read_text() == wish
        if wish != "C=y\n":
            assert (found / "own").read_text() == wish


def test_objects_that_do_not_fit_the_disk_are_one_line_and_the_others_stay(mounted: Path) -> None:
    found = made(mounted, "A=y\n")
    (found / "block.o").write_bytes(bytes(40 << 20))
    with pytest.raises(KernelError, match=r"^cp: .*No space left on device$"):
        objects.select(mounted, "B=y\n")
    assert configurations(mounted) == {"A=y\n"}
    assert objects.select(mounted, "A=y\n") == found
