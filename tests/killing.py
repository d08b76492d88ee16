"""Starts `blklab` many times, kills it at random moments, resumes it: `python -m tests.killing
DIR`.

Everything is loaded once; each command is a fork, so that a round takes no longer than the command
itself. Prints a line of JSON for each kill: the numbers of stored and of planned runs.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy import func, select

from blklab.cli import main
from blklab.store import place, read, schema
from blklab.store.database import Store
from blklab.store.opening import exists, open_store

COMPARE = ["compare", "--disk", "950pro-256gb", "--workload", "tiny.fio", "--scheduler", "none",
           "--scheduler", "kyber", "--repeats", "12", "--jobs", "2"]  # fmt: skip
STUDY = ["run", "tiny.toml", "--jobs", "2"]


def call(arguments: Sequence[str], until: Callable[[], bool] | None = None) -> int:
    """Its exit code (negative: a signal); killed as soon as `until` returns true."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        # The command has its own streams: this process's are the report.
        for stream in (1, 2):
            os.dup2(os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), stream)
        sys.argv = ["blklab", *arguments]
        code = 1
        try:
            main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else left.code is not None
        os._exit(code)
    while until is not None:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if until():
            os.kill(child, signal.SIGKILL)
            break
        time.sleep(0.0005)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def moment(chance: random.Random, before: int, runs: int) -> Callable[[], bool]:
    """A random moment for the kill: some milliseconds after a number of the `runs` runs are stored
    in addition to `before`, or some time after the start."""
    start_s = time.monotonic()
    if chance.random() < 0.3:
        late_s = start_s + chance.uniform(0.0, 0.5)
        return lambda: time.monotonic() > late_s
    wanted, rest_s = before + chance.randrange(runs), chance.uniform(0.0, 0.01)
    # Made after the fork, which must not share it.
    store: list[Store] = []

    def reached() -> bool:
        if not store and exists(place.find()):
            store.append(open_store(place.find()))
        if store and kept_runs(store[0]) >= wanted:
            time.sleep(rest_s)
            store[0].close()
            return True
        return False

    return reached


def kept_runs(store: Store) -> int:
    """The stored runs of all comparisons."""
    with store.reading() as connection:
        return connection.execute(select(func.count()).select_from(schema.RUN)).scalar_one()


def unfinished() -> list[read.Listed]:
    """Incomplete comparisons."""
    if not exists(place.find()):
        return []
    store = open_store(place.find(), make=False)
    left = [row for row in read.listed(store) if row.state != read.COMPLETE]
    store.close()
    return left


def loaded() -> None:
    """Loads the modules that every command needs."""
    import plotly  # noqa: F401
    import rich.console  # noqa: F401

    from blklab import execute, report, study  # noqa: F401
    from blklab.experiment import analyse, describe, summary  # noqa: F401
    from blklab.study import in_store  # noqa: F401


def round_of(command: Sequence[str], runs: int, chance: random.Random) -> None:
    """Runs and kills the command, then resumes and kills it, until it is complete."""
    before = counted()
    code = call(command, moment(chance, before, runs))
    while left := unfinished():
        assert code == -signal.SIGKILL, Path("log").read_text()[-2000:]
        kept, planned = sum(row.kept for row in left), sum(row.planned for row in left)
        print(json.dumps([kept, planned]))
        code = call([command[0], "--resume"], moment(chance, counted(), runs))
    assert code in (0, -signal.SIGKILL), Path("log").read_text()[-2000:]


def counted() -> int:
    """Runs in the store."""
    store = open_store(place.find())
    count = kept_runs(store)
    store.close()
    return count


def rounds(command: Sequence[str], count: int, seed: int) -> None:
    """Runs `count` rounds; each must write the same files as the first, which was not killed."""
    assert call(command) == 0, Path("log").read_text()[-2000:]
    runs = counted()
    written = {path: path.read_bytes() for path in Path("reports").rglob("*.json")}
    assert written
    chance = random.Random(seed)
    done = 0
    while done < count:
        for path in written:
            path.unlink(missing_ok=True)
        round_of(command, runs, chance)
        found = {path: path.read_bytes() for path in Path("reports").rglob("*.json")}
        if not found:
            # It was killed before it had begun: there was nothing to resume.
            continue
        assert found == written
        done += 1


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    loaded()
    rounds(COMPARE if sys.argv[2] == "compare" else STUDY, int(sys.argv[3]), seed=1)
