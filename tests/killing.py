"""Start `blklab` many times, kill it at random moments, go on: `python -m tests.killing DIR`.

Everything is loaded once; each command is a fork of it, so that a round takes what the command
itself takes. Prints a line of JSON for each kill: how many runs were kept of how many.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from blklab.cli import main
from blklab.store import place, read
from blklab.store.database import exists, open_store

COMPARE = ["compare", "--disk", "950pro-256gb", "--workload", "tiny.fio", "--scheduler", "none",
           "--scheduler", "kyber", "--repeats", "12", "--jobs", "2"]  # fmt: skip
STUDY = ["run", "tiny.toml", "--jobs", "2"]


def call(arguments: Sequence[str], kill_after_s: float | None = None) -> tuple[int, float]:
    """How it ended (a signal's number with a minus), and how long it took."""
    sys.stdout.flush()
    start_s = time.monotonic()
    child = os.fork()
    if not child:
        # Its own streams: ours are the report.
        for stream in (1, 2):
            os.dup2(os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), stream)
        sys.argv = ["blklab", *arguments]
        code = 1
        try:
            main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else left.code is not None
        os._exit(code)
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - start_s


def unfinished() -> list[read.Listed]:
    """What is left."""
    if not exists(place.find()):
        return []
    store = open_store(place.find(), make=False)
    left = [row for row in read.listed(store) if row.state != read.COMPLETE]
    store.close()
    return left


def loaded() -> None:
    """What every command would load for itself."""
    import plotly  # noqa: F401
    import rich.console  # noqa: F401

    from blklab import report, study  # noqa: F401
    from blklab.compare import analyse, carry_out, describe, summary  # noqa: F401
    from blklab.store import keep, left, request, studies  # noqa: F401


def round_of(command: Sequence[str], took_s: float, chance: random.Random) -> None:
    """Begin it, kill it, go on and kill that, until it comes to its end."""
    first = call(command, chance.uniform(0.0, took_s))
    if first[0] == 0:
        return
    while left := unfinished():
        print(json.dumps([sum(row.kept for row in left), sum(row.planned for row in left)]))
        code, _ = call([command[0], "--resume"], chance.uniform(0.0, 1.5 * took_s))
        assert code in (0, -signal.SIGKILL), Path("log").read_text()[-2000:]


def rounds(command: Sequence[str], count: int, seed: int) -> None:
    """`count` of them; each writes what the first, which nobody killed, wrote."""
    code, took_s = call(command)
    assert code == 0, Path("log").read_text()[-2000:]
    written = {path: path.read_bytes() for path in Path("reports").rglob("*.json")}
    assert written
    chance = random.Random(seed)
    done = 0
    while done < count:
        for path in written:
            path.unlink(missing_ok=True)
        round_of(command, took_s, chance)
        found = {path: path.read_bytes() for path in Path("reports").rglob("*.json")}
        if not found:
            # It was killed before it had begun: nothing was there to go on with.
            continue
        assert found == written
        done += 1


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    loaded()
    rounds(COMPARE if sys.argv[2] == "compare" else STUDY, int(sys.argv[3]), seed=1)
