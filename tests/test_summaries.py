"""The scalars of a run, read by several threads at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In a separate process that has not read scalars before; threads switch at nearly every step.
_FIRST_READ = """
import json, sys, threading
from blklab import _core
host = _core.Host({})
job = _core.Job("[a]\\nrw=randread\\nsize=1m\\ndirect=1\\n", "a.fio", {}, host)
disk = _core.Disk(_core.disk_files()["optane-900p"], "optane-900p.toml")
told = _core.simulate(job, disk, _core.Scheduler("none"), host, 1, None, None).summary
names = lambda of: {name: value(getattr(of, name)) for name in of.FIELDS}
value = lambda of: names(of) if hasattr(of, "FIELDS") else (
    [value(one) for one in of] if isinstance(of, list) else of)
text = json.dumps(names(told))
from blklab.domain import summaries
read = {"json": lambda: summaries.DECODER.decode(text),
        "objects": lambda: summaries.from_core(told)}[sys.argv[1]]
sys.setswitchinterval(1e-7)
gate = threading.Barrier(8)
def first():
    gate.wait()
    assert read().jobs
threads = [threading.Thread(target=first) for _ in range(8)]
[one.start() for one in threads]
[one.join() for one in threads]
"""


@pytest.mark.parametrize("form", ["json", "objects"])
def test_threads_read_their_first_scalars_at_the_same_time(form: str) -> None:
    """msgspec inspects a type at its first use, which two threads must not do at the same time:
    without a decoder created on import, one in six of these processes crashes."""
    for _ in range(20):
        read = subprocess.run(
            [sys.executable, "-c", _FIRST_READ, form], capture_output=True, check=False
        )
        assert (read.returncode, read.stderr) == (0, b"")
