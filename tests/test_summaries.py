"""What a run tells in one document, read by several threads at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import blklab
from blklab.domain import core, specs

# In a process of its own, in which no document was read before; threads take turns at nearly
# every step.
_FIRST_READ = """
import sys, threading
from blklab.domain import summaries
text = open(sys.argv[1]).read()
sys.setswitchinterval(1e-7)
gate = threading.Barrier(8)
def read():
    gate.wait()
    assert summaries.parse(text).jobs
threads = [threading.Thread(target=read) for _ in range(8)]
[one.start() for one in threads]
[one.join() for one in threads]
"""


def test_threads_read_their_first_documents_at_the_same_time(tmp_path: Path) -> None:
    """msgspec builds what it knows of a type at its first use, which two threads may not do at the
    same time: without a decoder that is made on import, one in six of these processes crashes."""
    from blklab import _core

    with core.core_types():
        host = core.host({})
        entry = blklab.find_workload("randread-qd32").entry
        job = core.job(entry, host, ignore_unsupported=False)
        disk = core.disk_model(specs.disk("optane-900p"))
        run = _core.simulate(job, disk, _core.Scheduler("none"), host, 1, None, None)
    document = tmp_path / "run.json"
    document.write_text(run.summary, encoding="utf-8")
    for _ in range(20):
        read = subprocess.run(
            [sys.executable, "-c", _FIRST_READ, document], capture_output=True, check=False
        )
        assert (read.returncode, read.stderr) == (0, b"")
