"""Many sequences of `tests.machine_state`: ``python -m tests.machine_soak SEQUENCES``.

They run in batches, each by a seed of its own in a machine of its own, several at once. What is
done is kept (`--kept`), so that a soak that was broken off goes on. At the end it prints the
figures, and writes them where `--out` says. Exit code 1 if anything was lost; the shortest
sequence that loses it is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tests import virtual_machine
from tests.machine_world import UNSHARED, remove_cgroups

ROOT = Path(__file__).resolve().parents[1]
STEPS = 8
"""The most steps of a sequence, besides those of its end."""
_BATCH = 25
_FIGURES = ("sequences", "steps", "commands", "changes from outside", "signals", "compared",
            "lost", "seconds")  # fmt: skip
"""Counts over all processes: sequences, steps; blklab's commands, actions of other programs
meanwhile, signals; compared values; failed sequences; the seconds are added."""
_VIRTUAL_S = 7200.0
_VIRTUAL_COMMAND_S = 900.0
"""An emulated computer takes its time: thirty times that of a real one, beside other work more."""
_WRITES_NOTHING = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "HYPOTHESIS_STORAGE_DIRECTORY": "/mnt/hypothesis",
}
"""Python and Hypothesis themselves, over the machine's files."""


@dataclass(frozen=True)
class Batch:
    """How the sequences of one seed ended."""

    seed: int
    figures: dict[str, int]
    failed: str
    """Hypothesis's output; empty without a failure."""


def batch(seed: int, sequences: int, *, go_on: bool = False, virtual: bool = False) -> Batch:
    """In a machine of its own, or in a virtual one."""
    words = [*UNSHARED, sys.executable, "-m", "tests.machine_soak", "--inside", str(seed)]
    words += [str(sequences), *(["--go-on"] if go_on else []), *(["--virtual"] if virtual else [])]
    code, output = _in_virtual_machine(words) if virtual else _here(words)
    *said, last = output.splitlines() or [""]
    try:
        return Batch(seed, json.loads(last), "\n".join(said) if code else "")
    except ValueError:
        return Batch(seed, {}, f"{output}exit code {code}")


def _here(words: Sequence[str]) -> tuple[int, str]:
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=os.environ | _WRITES_NOTHING,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    remove_cgroups()
    return done.returncode, done.stdout


def _in_virtual_machine(words: Sequence[str]) -> tuple[int, str]:
    set_first = [f"{name}={value}" for name, value in _WRITES_NOTHING.items()]
    steps = f"modprobe loop\ncd {shlex.quote(str(ROOT))}\n{shlex.join(['env', *set_first, *words])}"
    with tempfile.TemporaryDirectory() as directory:
        machine = virtual_machine.Machine(Path(directory), cpus=2)
        ended = machine.run({"soak": steps}, _VIRTUAL_S)["soak"]
    return ended.exit_code, ended.output


def batches(
    sequences: int, first_seed: int, at_once: int, done: set[int], *, go_on: bool = False
) -> Iterator[Batch]:
    """All that it takes for so many sequences, but those that are `done`; as they end."""
    seeds = range(first_seed, first_seed + -(-sequences // _BATCH))
    sizes = {seed: min(_BATCH, sequences - _BATCH * (seed - first_seed)) for seed in seeds}
    with ThreadPoolExecutor(at_once) as pool:
        wanted = [seed for seed in seeds if seed not in done]
        # As they end, not in order: a slow one does not keep the others from being recorded.
        for ended in as_completed(
            pool.submit(batch, seed, sizes[seed], go_on=go_on) for seed in wanted
        ):
            yield ended.result()


def inside(seed: int, sequences: int, *, goes_on: bool, virtual: bool) -> int:
    """In the machine: one batch. The figures are the last line."""
    from hypothesis import HealthCheck, Phase, settings
    from hypothesis import seed as seeded
    from hypothesis.errors import Flaky
    from hypothesis.stateful import run_state_machine_as_test

    from tests import machine_command, machine_draws, machine_state
    from tests.machine_model import LostError
    from tests.machine_world import World, enter

    if virtual:
        machine_command.SECONDS_MAX = _VIRTUAL_COMMAND_S
    machine_command.load()
    machine_state.MachineState.world = world = World(enter(virtual=virtual), virtual=virtual)
    chosen = settings(
        max_examples=sequences,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    machine_state.MachineState.goes_on = goes_on
    compared = machine_command.Command.start(*machine_draws.COMPARE)
    assert compared.wait() == 0, compared.said()
    begin_s = time.monotonic()
    try:
        run_state_machine_as_test(seeded(seed)(machine_state.MachineState), settings=chosen)
    except (LostError, Flaky):
        # `LOST` has it; at other moments than it was lost at it may be well.
        pass
    finally:
        world.end()
    lost = machine_state.LOST
    told = lost if goes_on else sorted(lost, key=lambda one: len(one.script))[:1]
    print("\n\n".join(map(str, told)))
    figures = machine_state.FIGURES | {"seconds": round(time.monotonic() - begin_s)}
    print(json.dumps(figures))
    return 1 if lost else 0


def total(every: Sequence[Batch]) -> dict[str, int]:
    """The sums over all batches; signals by name come last, the most frequent first."""
    figures: Counter[str] = Counter()
    for one in every:
        figures.update(one.figures)
    whole = {name: figures.pop(name, 0) for name in _FIGURES}
    return whole | dict(figures.most_common())


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sequences", type=int)
    parser.add_argument("--inside", type=int, metavar="SEED", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=1, help="of the first batch")
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--go-on", action="store_true", help="count losses, shorten none")
    parser.add_argument("--virtual", action="store_true", help="in a virtual machine with udev")
    parser.add_argument("--kept", type=Path, help="a line for each batch that is done")
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    given = parser.parse_args()
    if given.inside is not None:
        return inside(given.inside, given.sequences, goes_on=given.go_on, virtual=given.virtual)
    if given.virtual:
        one = batch(given.seed, given.sequences, go_on=given.go_on, virtual=True)
        print(one.failed, json.dumps(one.figures, indent=1), sep="\n")
        if given.out and not one.failed:
            given.out.write_text(json.dumps(total([one]), indent=1) + "\n")
        return 1 if one.failed else 0
    every = _kept(given.kept)
    done = {one.seed for one in every}
    for one in batches(given.sequences, given.seed, given.at_once, done, go_on=given.go_on):
        if one.failed:
            print(one.failed, file=sys.stderr)
        elif given.kept:
            given.kept.parent.mkdir(parents=True, exist_ok=True)
            with given.kept.open("a") as file:
                file.write(json.dumps([one.seed, one.figures]) + "\n")
        every.append(one)
        print(f"seed {one.seed}: {json.dumps(one.figures)}", flush=True)
    figures = total(every)
    print(json.dumps(figures, indent=1))
    if given.out:
        given.out.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if any(one.failed for one in every) else 0


def _kept(path: Path | None) -> list[Batch]:
    if path is None or not path.exists():
        return []
    rows = map(json.loads, path.read_text().splitlines())
    return [Batch(seed, figures, "") for seed, figures in rows]


if __name__ == "__main__":
    sys.exit(main())
