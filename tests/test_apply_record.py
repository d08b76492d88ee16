"""A manipulated record gives one line, and only the disk's queue is written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blklab.errors import BlklabError, InputError
from blklab.host.devices.queue import is_setting
from blklab.settings import change, record, rule
from blklab.settings.keys import Key
from blklab.settings.record import AppliedEntry, Before
from tests.applying import Asked
from tests.fake_sysfs import Machine

_GOOD: dict[str, Any] = {
    "number": 1,
    "time": "2026-11-22T13:03:20Z",
    "key": {"kind": "id", "matches": ['ATTR{wwid}=="naa.5000"']},
    "settings": {"scheduler": "bfq", "nr_requests": "40"},
    "disks": [{
        "name": "sda", "identity": "",
        "before": {"scheduler": "mq-deadline", "nr_requests": "64"},
        "after": {"scheduler": "bfq", "nr_requests": "40"},
    }],
    "tuned": ["balanced"],
    "profile": "",
    "done": True,
}  # fmt: skip
_HOSTILE = st.sampled_from([
    "../../../../victim", "iosched/../../../../../victim", "/victim", "..", ".", "", "\0", "sda/..",
    "iosched/..", "iosched/.", "\x1b[2J", "\ud800", "9" * 5000, "--x", "a\nb", 'x", RUN+="/bin/sh',
    "[x]\ntype=script\nscript=/tmp/x", "scheduler", "nr_requests", "sda", "none",
])  # fmt: skip
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | _HOSTILE,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text() | _HOSTILE, inner, max_size=4)
    ),
    max_leaves=12,
)


def paths(of: Any, to: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to each value."""
    inner = of.items() if isinstance(of, dict) else enumerate(of) if isinstance(of, list) else []
    return [to, *(path for key, value in inner for path in paths(value, (*to, key)))]


@st.composite
def tampered(draw: st.DrawFn) -> Any:
    """The good record with up to three changed values, or any JSON."""
    document: Any = {"format": 1, "entries": [json.loads(json.dumps(_GOOD))]}
    if draw(st.integers(0, 9)) == 0:
        return draw(_ANY)
    for _ in range(draw(st.integers(1, 3))):
        if not (ways := paths(document)[1:]):
            break
        *way, last = draw(st.sampled_from(ways))
        inner = document
        for step in way:
            inner = inner[step]
        match draw(st.sampled_from(["value", "name", "gone"])):
            case "name" if isinstance(inner, dict):
                inner[draw(_HOSTILE)] = inner.pop(last)
            case "gone":
                del inner[last]
            case _:
                inner[last] = draw(_HOSTILE | _ANY)
    return document


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path / "machine")
    made.disk("sda")
    return made


def snapshot(top: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in top.rglob("*") if path.is_file()}


@settings(
    max_examples=int(os.environ.get("BLKLAB_TEST_RECORDS", "300")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(document=tampered())
def test_any_record_is_refused_in_one_line_or_touches_nothing_but_the_queue(
    machine: Machine, programs: Asked, document: Any
) -> None:
    roots = machine.roots
    machine.write("victim", "keep")
    for name, value in _GOOD["disks"][0]["after"].items():
        machine.write(f"sys/block/sda/queue/{name}", value)
    place = record.path(roots)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(document))
    rule.place(roots).unlink(missing_ok=True)
    before = snapshot(machine.top)
    programs.words.clear()
    try:
        for entry in record.load(roots):
            check(entry)
        change.undo(roots, programs)
    except BlklabError as error:
        assert str(error).isprintable(), error
    after = snapshot(machine.top)
    changed = {path for path in before | after if before.get(path) != after.get(path)}
    own = (str(machine.top / "sys/devices"), str(place.parent), str(roots.etc))
    assert [path for path in changed if not path.startswith(own)] == []
    queue_changes = {Path(path).name for path in changed if path.startswith(own[0])}
    assert all(is_setting(name) or is_setting(f"iosched/{name}") for name in queue_changes)
    assert all(words.startswith(("tuned-adm ", "udevadm ")) for words in programs.words)


def check(entry: AppliedEntry) -> None:
    """Accepted records have the right types."""
    assert isinstance(entry.number, int) and isinstance(entry.done, bool)
    for disk in entry.disks:
        assert isinstance(disk, Before)
        assert all(map(is_setting, [*disk.before, *disk.after]))
        assert "/" not in disk.name


@pytest.mark.parametrize("name", ["../../../../victim", "iosched/../../../../../victim"])
def test_a_name_that_leads_elsewhere_overwrites_nothing(
    machine: Machine, programs: Asked, name: str
) -> None:
    machine.write("victim", "keep")
    place = record.path(machine.roots)
    place.parent.mkdir(parents=True)
    entry = json.loads(json.dumps(_GOOD)) | {"tuned": None}
    entry["disks"][0]["before"][name] = "overwritten"
    place.write_text(json.dumps({"format": 1, "entries": [entry]}))
    with pytest.raises(InputError, match="not a setting of a disk"):
        change.undo(machine.roots, programs)
    assert (machine.top / "victim").read_text() == "keep\n"


def test_an_entry_that_could_not_be_read_again_is_not_written(machine: Machine) -> None:
    key = Key("id", tuple(_GOOD["key"]["matches"]))
    entry = AppliedEntry(1, _GOOD["time"], key, _GOOD["settings"], [], profile="[x]\ntype=script\n")
    with pytest.raises(InputError, match="not a profile of blklab's"):
        record.save([entry], machine.roots)
    assert not record.path(machine.roots).exists()


@pytest.mark.parametrize("what", ["directory", "record"])
@pytest.mark.parametrize("how", ["owner", "mode", "link"])
def test_a_record_that_another_user_can_write_is_refused(
    machine: Machine, programs: Asked, what: str, how: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    place = record.path(machine.roots)
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"format": 1, "entries": [_GOOD | {"tuned": None}]}))
    assert len(record.load(machine.roots)) == 1
    tampered_with = place.parent if what == "directory" else place
    if how == "owner":
        os.chown(tampered_with, 65534, 65534)
    elif how == "mode":
        tampered_with.chmod(tampered_with.stat().st_mode | 0o002)
    elif what == "record":
        place.rename(place.with_name("other"))
        place.symlink_to("other")
    else:
        return
    with pytest.raises(InputError, match=r"not trusted|Too many levels of symbolic links"):
        change.undo(machine.roots, programs)


def test_files_of_root_are_writable_by_root_only_with_any_umask(
    machine: Machine, programs: Asked
) -> None:
    before = os.umask(0)
    try:
        record.save([], machine.roots)
        with record.alone(machine.roots):
            pass
        entry = AppliedEntry(
            1, _GOOD["time"], Key("id", tuple(_GOOD["key"]["matches"])),
            _GOOD["settings"], [],
        )  # fmt: skip
        record.save([entry], machine.roots)
        change._write_files("# a rule\n", "", machine.roots)
    finally:
        os.umask(before)
    for path in (record.path(machine.roots), rule.place(machine.roots)):
        assert path.stat().st_mode & 0o022 == 0
    assert record.load(machine.roots) == [entry]
