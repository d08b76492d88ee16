"""Any record of the live journal gives one line, and nothing else is changed or removed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blklab.base.journal import Journal, boot_id
from blklab.rigs.live import leftovers

_KEYS = ("disk-sda", "files-0123456789ab", "trace-4711-0a1b2c", "scratch-0123456789ab", "other-x")


def values(victim: Path) -> st.SearchStrategy[Any]:
    """Values that could name other files, and any JSON."""
    names = [".blklab-0123456789ab", "blklab-run-0123456789ab", "instances/blklab-4711-0a1b2c"]
    texts = [str(victim), f"{victim}/..", "../victim", "\0", "\ud800", "", "\x1b[2J", boot_id(),
             *(f"{victim}/{name}" for name in names)]  # fmt: skip
    simple = st.sampled_from(texts) | st.none() | st.booleans() | st.integers() | st.text()
    inside = st.fixed_dictionaries({
        "type": st.just("ext4") | simple, "uuid": simple, "fsid": st.integers() | simple,
        "path": simple,
    })  # fmt: skip
    return simple | st.floats() | inside | st.lists(simple) | st.dictionaries(
        st.sampled_from(["scheduler", "../../x", "iosched/../../x", "read_ahead_kb"]), simple
    )  # fmt: skip


@settings(
    max_examples=int(os.environ.get("BLKLAB_TEST_RECORDS", "300")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_record_is_one_line_and_removes_nothing_of_others(
    journal: Journal, tmp_path: Path, data: st.DataObject
) -> None:
    victim = tmp_path / "victim"
    for name in (".blklab-0123456789ab", "blklab-run-0123456789ab", "instances/blklab-4711-0a1b2c"):
        place = victim / name
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        (place / "0").write_text("keep")
    journal.directory.mkdir(exist_ok=True)
    key = data.draw(st.sampled_from(_KEYS))
    fields = ("directory", "inode", "inside", "instance", "disk", "queue", "settings", "boot_id")
    record: Any = {"boot_id": boot_id()} | {
        name: data.draw(values(victim)) for name in data.draw(st.sets(st.sampled_from(fields)))
    }
    if data.draw(st.integers(0, 9)) == 0:
        record = data.draw(values(victim))
    place = journal.directory / f"{key}.json"
    place.write_text(json.dumps(record))
    found = leftovers.restore(journal)
    for line in (*found.done, *found.busy, *found.problems):
        assert line.isprintable(), line
    place.unlink(missing_ok=True)
    kept = sorted(path for path in victim.rglob("*") if path.is_file())
    assert [path.read_text() for path in kept] == ["keep"] * 3


@pytest.mark.parametrize(
    "instance", ["/tmp/instances/blklab-1-0a1b2c", "/sys/kernel/blklab-1-0a1b2c", "x"]
)
def test_a_trace_outside_of_tracefs_is_not_removed(journal: Journal, instance: str) -> None:
    with journal.locked("trace-1-0a1b2c", "it"):
        journal.write("trace-1-0a1b2c", "trace", {"instance": instance})
    assert "not a record of tracing" in leftovers.restore(journal).problems[0]
