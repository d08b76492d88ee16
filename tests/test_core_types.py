"""The types on both sides of the core's boundary are the same."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import blklab
from blklab import _core
from blklab.api import catalogue
from blklab.base import plain
from blklab.base.catalogue import Entry
from blklab.domain import core, setup, specs, summaries
from tests import plausible

_STUBS = Path(blklab.__file__).with_name("_core.pyi")


def properties() -> dict[str, list[str]]:
    """The properties of each class in the stubs that has `FIELDS`."""
    classes = [
        node for node in ast.parse(_STUBS.read_text()).body if isinstance(node, ast.ClassDef)
    ]
    found = {}
    for one in classes:
        fields = (node.target for node in one.body if isinstance(node, ast.AnnAssign))
        named = {target.id for target in fields if isinstance(target, ast.Name)}
        if "FIELDS" in named:
            methods = (node for node in one.body if isinstance(node, ast.FunctionDef))
            found[one.name] = [node.name for node in methods if node.decorator_list]
    return found


def test_each_field_of_the_cores_classes_has_a_type_and_each_type_a_field() -> None:
    described = properties()
    assert len(described) >= 14
    assert {name: getattr(_core, name).FIELDS for name in described} == described
    built = {name for name in dir(_core) if hasattr(getattr(_core, name), "FIELDS")}
    assert built == set(described)


def test_the_cores_data_cannot_be_changed() -> None:
    [first, *_] = core.schedulers()
    with pytest.raises(AttributeError):
        first.name = "mine"  # type: ignore[misc]
    deadline = next(one for one in core.schedulers() if one.name == "mq-deadline")
    deadline.tunables.clear()
    assert deadline.tunables[0].name == "read_expire"


def test_the_cores_data_are_compared_and_printed_as_data_classes_are() -> None:
    model = _core.Disk(_core.disk_files()["wd10ezrx"], "wd10ezrx.toml")
    first, second, *_ = model.published
    assert first == model.published[0] != second
    assert repr(first).startswith(f"PublishedFigure(figure={first.figure!r}, role={first.role!r}, ")
    assert list(plain.plain(first)) == _core.PublishedFigure.FIELDS


def test_the_cores_data_are_json_as_data_classes_are() -> None:
    model = _core.Disk(_core.disk_files()["wd10ezrx"], "wd10ezrx.toml", [("rpm", "7200")])
    document = json.loads(plain.encode(model))
    assert document == plain.plain(model)
    assert document["limits"]["queue_depth"] == model.limits.queue_depth == 32
    [rpm] = [row for row in document["parameters"] if row["key"] == "rpm"]
    assert rpm == {"key": "rpm", "value": "7200", "unit": "1/min", "help": "revolutions per minute",
                   "source": "override", "range": None}  # fmt: skip
    flash = _core.Disk(_core.disk_files()["optane-900p"], "optane-900p.toml")
    assert (flash.kind, flash.longest_wait_ms) == ("ssd", None)


@pytest.mark.parametrize(
    ("document", "of"),
    [
        (catalogue.TunableDocument, _core.Tunable),
        (core.IdleOptionDocument, _core.IdleOption),
        (core.JobSectionDocument, _core.JobSection),
        (setup.DiskData, _core.Disk),
        (setup.ParameterData, _core.Parameter),
        (setup.ValidationData, _core.Validation),
    ],
)
def test_documents_have_the_fields_of_the_cores_data(document: Any, of: Any) -> None:
    assert set(document.__annotations__) == set(of.FIELDS)


def test_a_job_describes_its_sections_and_options() -> None:
    text = "[global]\nrw=read\n[a]\nsize=1m\nnumjobs=3\nverify=md5\n"
    job = core.describe_job(Entry("a", Path("a.fio"), text), ignore_unsupported=True)
    assert job.defaults == [("rw", "read")]
    [section] = job.jobs
    assert (section.name, section.line, section.clones) == ("a", 3, 3)
    assert dict(section.options) == {"rw": "read", "size": "1m", "numjobs": "3"}
    [idle] = job.ignored
    assert (idle.path, idle.line, idle.name, idle.value) == ("a.fio", 6, "verify", "md5")


@pytest.mark.parametrize(
    "change",
    [
        {"more": 1},
        {"duration_ns": -1},
        {"duration_ns": 1.5},
        {"jobs": [{"name": "a"}]},
        {"disk": {"read_ios": 1}},
    ],
)
def test_a_summary_of_another_shape_is_refused(change: dict[str, Any]) -> None:
    made = plausible.run()
    assert made.summary.duration_ns == made.document["duration_ns"]
    with pytest.raises(msgspec.ValidationError):
        summaries.DECODER.decode(json.dumps(made.document | change))
    for name in made.document:
        less = {key: value for key, value in made.document.items() if key != name}
        with pytest.raises(msgspec.ValidationError, match=name):
            summaries.DECODER.decode(json.dumps(less))


def a_run() -> _core.Run:
    with core.core_types():
        host = core.host({})
        entry = blklab.find_workload("randread-qd32").entry
        job = core.job(entry, host, ignore_unsupported=False)
        disk = core.disk_model(specs.disk("optane-900p"))
        return _core.simulate(job, disk, _core.Scheduler("none"), host, 1, None, None)


def test_a_runs_scalars_are_the_same_as_objects_and_as_json() -> None:
    run = a_run()
    told = summaries.from_core(run.summary)
    assert told.jobs[0].read.ios > 0
    assert summaries.DECODER.decode(plain.encode(run.summary)) == told


def test_a_number_that_fits_into_no_column_is_refused() -> None:
    class Told:
        duration_ns = 2**63

        def __getattr__(self, name: str) -> object:
            return getattr(summary, name)

    summary = a_run().summary
    with pytest.raises(msgspec.ValidationError, match="duration_ns"):
        summaries.from_core(Told())  # type: ignore[arg-type]
