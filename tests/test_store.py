"""The store: every run is in it as soon as it has ended, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import gc
import math
import random
import sqlite3
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import text

from blklab.domain import core, events, specs
from blklab.domain import results_file as documents
from blklab.domain.comparison import Setup, plan
from blklab.domain.conditions import DeviceState, LiveRigData
from blklab.domain.events import Finished
from blklab.domain.experiment import Experiment
from blklab.domain.result import Result
from blklab.domain.stored import number, numbers
from blklab.domain.task import Task
from blklab.errors import BlklabError, InputError, StoreError
from blklab.execute import Local, carry_out
from blklab.execute.interface import Ended, Failed
from blklab.experiment.describe import describe
from blklab.rigs import sim
from blklab.store import database, exchange, importing, keep, origin, packing, place, read, schema
from blklab.store.database import Store
from blklab.store.opening import open_store
from blklab.store.packing import DamagedError
from blklab.store.request import Request, check_same, fingerprints, from_bytes, to_bytes
from tests import plausible

JOB = "[a]\nrw=randread\nsize=1M\nio_size=64k\n"


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    (tmp_path / "tiny.fio").write_text(JOB)
    return Setup(
        (specs.disk("950pro-256gb:channels=4"),),
        (specs.workload(tmp_path / "tiny.fio"),),
        tuple(map(specs.scheduler, ("none", "mq-deadline:fifo_batch=1"))),
        2,
        2**63 - 1,
    )


def state(disk: str, **settings: str) -> DeviceState:
    return {"settings": {disk: settings}, "counters": {}, "temperatures_c": {}, "load": 0.5}


class Telling(sim.SimRig):
    """A rig whose runs have the documents of real disks and real programs."""

    def describe(self) -> LiveRigData:
        return {
            "text": "this machine", "linux": "7.3", "cpus": 4, "cpu": "a CPU", "memory_bytes": None,
            "governors": ["performance"], "fio": None, "cache": "cold",
        }  # fmt: skip

    def run(self, experiment: Experiment) -> Result:
        made = plausible.result(experiment.seed % 1000)
        return replace(
            made,
            raw={"fio.json": b'{"jobs": []}' * 100, "odd": bytes(range(256))},
            device_before=state("sda", scheduler=experiment.scheduler.label, model="\x1b[31m<b>"),
            device_after=state("sda", scheduler="none"),
        )


def request_of(setup: Setup) -> Request:
    return Request(setup, "sim", {"kernel": None}, "both", "out", fingerprints(setup))


def kept(store: Store, setup: Setup, *, fail_at: int | None = None) -> keep.InStore:
    rig = Telling()
    described = describe(setup, rig)
    keeper = keep.begin(store, described, request_of(setup), len(plan(setup)))
    count = 0

    def done(_: Any) -> None:
        nonlocal count
        count += 1
        if count == fail_at:
            raise KeyboardInterrupt

    carry_out(plan(setup), rig, OneByOne(rig), done, keeper)
    keeper.finish()
    return keeper


@dataclass
class OneByOne:
    """Tells each end alone."""

    rig: sim.SimRig

    def run(
        self,
        tasks: Sequence[Task],
        ended: Callable[[Sequence[Ended]], None],
        failed: Callable[[Failed], None] | None = None,
    ) -> None:
        def each(events: Sequence[Ended]) -> None:
            for event in events:
                ended([event])

        Local(1, self.rig).run(tasks, each, failed)


def test_a_run_is_read_back_with_all_its_stored_data(anywhere: str, setup: Setup) -> None:
    store = open_store(place.find(anywhere))
    keeper = kept(store, setup)
    # As if by another process.
    again = open_store(place.find(anywhere))
    [row] = read.listed(again)
    assert (row.id, row.state, row.kept, row.planned) == (keeper.id, read.COMPLETE, 4, 4)
    assert (row.disks, row.workloads) == (("950pro-256gb:channels=4",), ("tiny",))
    assert row.schedulers == ("none", "mq-deadline:fifo_batch=1")
    found = read.comparison(again, keeper.id, raw=True)
    wanted = documents.Results(
        describe(setup, Telling()),
        tuple(
            carry_out(
                plan(setup), Telling(), Local(1, Telling()), lambda _: None, events.Nowhere("")
            )
        ),
    )
    assert documents.to_text(found.results()) == documents.to_text(wanted)
    assert found.setup["disks"][0]["text"] == setup.disks[0].file.text
    assert found.setup["workloads"][0]["text"] == JOB
    assert found.facts["versions"]["blklab"] == core.version()
    assert cast(int, found.facts["machine"]["cpus"]) >= 1
    for run, planned in zip(found.runs, plan(setup), strict=True):
        measured = run.measurement
        assert (measured.scheduler, measured.repeat) == (planned.scheduler.label, planned.repeat)
        assert measured.seed == planned.experiment.seed
        assert run.raw == {"fio.json": b'{"jobs": []}' * 100, "odd": bytes(range(256))}
        label = planned.scheduler.label
        assert run.device_before == state("sda", scheduler=label, model="\x1b[31m<b>")
        assert run.device_after == state("sda", scheduler="none")
        assert run.begun_at <= run.ended_at


def test_an_interrupted_comparison_is_partial_and_resumes_to_the_same_results(
    anywhere: str, setup: Setup
) -> None:
    store = open_store(place.find(anywhere))
    with pytest.raises(KeyboardInterrupt):
        kept(store, setup, fail_at=3)
    [row] = read.listed(store)
    assert (row.state, row.kept) == (read.RUNNING, 3), "this process would still run it"
    with pytest.raises(InputError, match=f"{row.id} is being run by process"):
        keep.go_on(store, row.id)
    disowned(store)
    assert read.listed(store)[0].state == read.PARTIAL
    keeper = keep.go_on(store, row.id)
    assert sorted(keeper.kept) == [0, 1, 2]
    begun: list[Finished] = []
    measured = carry_out(plan(setup), Telling(), Local(1, Telling()), begun.append, keeper)
    keeper.finish()
    assert len(begun) == 1
    whole = carry_out(
        plan(setup), Telling(), Local(1, Telling()), lambda _: None, events.Nowhere("")
    )
    assert measured == whole
    assert read.listed(store)[0].state == read.COMPLETE


def disowned(store: Store) -> None:
    """Lets the process seem dead."""
    with store.writing() as connection:
        connection.execute(schema.COMPARISON.update().values(owner=None))


def test_a_process_owns_its_comparison_and_a_later_one_with_its_number_does_not() -> None:
    mark = origin.mark()
    assert origin.alive(mark)
    assert origin.alive(mark.replace('"began": "', '"began": "1')) is None
    assert origin.alive(mark.replace('"boot": "', '"boot": "x')) is None
    for wrong in (None, "", "[]", '{"machine": 1}'):
        assert origin.alive(wrong) is None


def test_a_list_is_filtered_by_contents_machine_and_time(anywhere: str, setup: Setup) -> None:
    store = open_store(place.find(anywhere))
    first = kept(store, setup).id
    second = kept(store, replace(setup, schedulers=(specs.scheduler("kyber"),))).id

    def found(**wanted: Any) -> list[int]:
        return [row.id for row in read.listed(store, read.Filter(**wanted))]

    assert found() == [second, first]
    assert found(schedulers=["KYB"]) == [second]
    assert found(schedulers=["none", "mq-"]) == [first]
    assert found(schedulers=["none", "kyber"]) == []
    assert found(disks=["950pro"]) == [second, first]
    assert found(disks=["%"]) == [], "no wildcard"
    assert found(workloads=["tiny"], ids=[first]) == [first]
    assert found(rigs=["kernel"]) == []
    assert found(since="2000-01-01T00:00:00+00:00") == [second, first]
    assert found(since="9000-01-01T00:00:00+00:00") == []


def test_an_export_has_all_stored_data_and_is_imported_with_times_in_utc(
    setup: Setup, tmp_path: Path
) -> None:
    ours, theirs = (open_store(place.find(str(tmp_path / name))) for name in ("ours", "theirs"))
    found = read.comparison(ours, kept(ours, setup).id, raw=True)
    [document] = exchange.parse(exchange.to_bytes([found]), "it")
    for one, run in zip(document.runs, found.runs, strict=True):
        assert run.device_before and run.device_after and run.raw
        assert (one.device_before, one.device_after) == (run.device_before, run.device_after)
        assert one.raw == run.raw
    document = replace(document, begun_at="2026-11-22T10:00:00+02:00")
    assert importing.put(theirs, [document]) == ([1], [])
    assert importing.put(theirs, [document]) == ([], [1])
    assert read.listed(theirs)[0].begun_at == "2026-11-22T08:00:00.000+00:00"


def test_names_that_are_no_text_are_kept_all_the_same(anywhere: str, setup: Setup) -> None:
    """A file's name may hold any byte."""
    store = open_store(place.find(anywhere))
    [job] = setup.workloads
    odd = replace(setup, workloads=(replace(job, name="caf\udce9"),))
    found = read.comparison(store, kept(store, odd).id)
    assert found.listed.workloads == ("caf\\udce9",)
    assert found.runs[0].measurement.workload == "caf\udce9"


def test_a_newer_store_is_refused_and_an_older_one_brought_up_to_date(
    anywhere: str, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(place.find(anywhere))
    number = kept(store, setup).id

    def add(connection: Any) -> None:
        connection.execute(text("ALTER TABLE run ADD COLUMN remark TEXT"))
        if failing:
            raise OSError(28, "No space left on device")

    failing = True
    later_version = schema.VERSION + 1
    monkeypatch.setattr(schema, "VERSION", later_version)
    monkeypatch.setattr(schema, "STEPS", {later_version: add})
    with pytest.raises(StoreError, match="No space left"):
        open_store(place.find(anywhere))
    # The step was undone, or it could not be done again.
    failing = False
    later = open_store(place.find(anywhere))
    with later.reading() as connection:
        assert connection.execute(text("SELECT remark FROM run")).all() == [(None,)] * 4
    assert len(read.comparison(later, number).runs) == 4
    monkeypatch.undo()
    monkeypatch.setenv("BLKLAB_STORE", anywhere)
    with pytest.raises(StoreError, match=f"of version {later_version}, made by a newer blklab"):
        open_store(place.find(anywhere))


def test_a_store_of_version_1_is_read(tmp_path: Path) -> None:
    """A store of the first version, from `sqlite3 results.db .dump`."""
    dump = (Path(__file__).parent / "data/store-1.sql").read_text(encoding="utf-8")
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.executescript(dump)
    connection.close()
    store = open_store(place.find(str(tmp_path / "old.db")))
    [row] = read.listed(store)
    found = read.comparison(store, row.id, raw=True)
    assert (row.state, row.schedulers) == (read.COMPLETE, ("none", "mq-deadline:fifo_batch=1"))
    assert len(found.runs) == 4
    assert found.runs[0].raw["odd"] == bytes(range(256))
    with store.reading() as reading:
        assert reading.execute(schema.RUN_KEY.select()).all() == []


def test_a_foreign_database_is_refused(anywhere: str) -> None:
    where = place.find(anywhere)
    foreign = database._engine(where, False)
    with foreign.begin() as connection:
        connection.execute(text("CREATE TABLE customers (id INTEGER)"))
    foreign.dispose()
    with pytest.raises(StoreError, match="not a store of blklab: it has 'customers'"):
        open_store(where)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("mysql://root@localhost/x", "no store on 'mysql'; there is: a file, sqlite, postgresql"),
        ("sqlite://", "of sqlite a file is expected"),
        ("sqlite:///:memory:", "of sqlite a file is expected"),
        ("postgresql://u:secret@host:port/x", "not the URL of a database; expected po"),
        ("/", "/: is a directory"),
    ],
)
def test_a_place_that_cannot_be_meant_is_refused(given: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        place.find(given)
    assert "secret" not in str(error.value)


def test_the_usual_place_is_in_the_users_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BLKLAB_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert (place.find().text, place.find().chosen) == ("/data/blklab/results.db", False)
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert place.find().text == "/home/me/.local/share/blklab/results.db"
    monkeypatch.setenv("BLKLAB_STORE", "here.db")
    assert (place.find().text, place.find().chosen) == ("here.db", True)
    assert place.find("there.db").text == "there.db"
    secret = place.find("postgresql://me:secret@host/x")
    assert secret.text == "postgresql+psycopg://me:***@host/x"


def test_a_server_that_does_not_answer_is_one_line() -> None:
    with pytest.raises(StoreError, match=r"postgresql\+psycopg://me:\*\*\*@/x") as error:
        open_store(place.find("postgresql://me:secret@/x?host=/nowhere"))
    assert "secret" not in str(error.value)


def test_packed_data_unpack_and_damaged_data_are_refused() -> None:
    around = [b"x" * size for size in range(190, 210)]
    for content in (b"", b"x", *around, b"x" * 5000, random.Random(1).randbytes(5000)):
        assert packing.unpack(packing.pack(content)) == content
    whole = packing.pack(b"x" * 5000)
    assert len(whole) < 100
    for wrong in (b"", b"\x02abc", whole[:-1], b"\x01abc"):
        with pytest.raises(DamagedError):
            packing.unpack(wrong)
    with pytest.raises(DamagedError):
        packing.unpack_json(packing.pack(b"[" * 100_000))


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 400 + ".0", "NaN", "-Infinity"])
def test_a_document_holds_finite_numbers_only(number: str) -> None:
    with pytest.raises(DamagedError, match="number"):
        packing.unpack_json(packing.pack(f'{{"bytes_per_s": {number}}}'.encode()))


@pytest.mark.parametrize("name", ["disk", "\udc80"])
def test_numbers_that_are_not_finite_become_none_with_any_file_name(name: str) -> None:
    kept = packing.pack_json({"name": name, "low": math.nan, "high": [math.inf, 1.5]})
    assert packing.unpack_json(kept) == {"name": name, "low": None, "high": [None, 1.5]}


def test_a_request_survives_the_store(setup: Setup) -> None:
    asked = request_of(replace(setup, host={"cpus": 2}))
    assert from_bytes("here", to_bytes(asked), Request) == asked
    with pytest.raises(DamagedError, match=r"^here: "):
        from_bytes("here", packing.pack_json({"setup": 1}), Request)


def test_a_changed_input_prevents_resuming(
    tmp_path: Path, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = describe(setup, sim.SimRig())
    check_same("it", described, described, request_of(setup))
    other = described | {"versions": described["versions"] | {"python": "2.7"}}
    check_same("it", other, described, request_of(setup))
    for key, value, message in (
        ("versions", {"blklab": "0.0", "python": ""}, "begun by blklab 0.0, this is "),
        ("rig_setup", {"text": "Linux 1"}, "it ran on Linux 1; now it would run on"),
        ("disks", [], "its disks would change"),
    ):
        with pytest.raises(InputError, match=message):
            check_same("it", described | {key: value}, described, request_of(setup))
    (tmp_path / "sized.fio").write_text(JOB + "bs=${SIZE}\n")
    monkeypatch.setenv("SIZE", "4k")
    sized = replace(setup, workloads=(specs.workload(tmp_path / "sized.fio"),))
    asked = request_of(sized)
    monkeypatch.setenv("SIZE", "8k")
    with pytest.raises(InputError, match="its variables or the files that it includes"):
        check_same("it", described, described, asked)


@pytest.mark.parametrize("wrong", ["", "x", "-1", "0", "1.5", "²", "9" * 30, "1,"])
def test_a_number_is_a_number(wrong: str) -> None:
    assert (number("12"), numbers("3,2,3")) == (12, [3, 2])
    with pytest.raises(InputError, match="see: blklab results"):
        numbers(wrong)


# Errors of the file


@contextmanager
def locked(file: Path) -> Iterator[None]:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("ROLLBACK")
    connection.close()


def test_a_store_that_fails_is_tried_again_with_the_next_run(
    own_store: Path, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_WAIT_S", 0.05)
    store = open_store(place.find())
    rig = Telling()
    keeper = keep.begin(store, describe(setup, rig), request_of(setup), 4)
    seen: list[str] = []
    with locked(own_store):
        # One after the other: of two that end at once both are kept, or lost, together.
        for number in range(2):
            carry_out(
                plan(setup)[number : number + 1],
                rig,
                Local(1, rig),
                lambda _: seen.append(keeper.lost),
                Renumbered(keeper, number),
            )
    assert seen[0] == f"1 run is not stored: {own_store}: locked by another process"
    assert seen[1].startswith("2 runs are not stored")
    assert read.listed(store)[0].kept == 0
    carry_out(plan(setup)[:1], rig, Local(1, rig), lambda _: None, Renumbered(keeper, 2))
    assert keeper.lost == ""
    assert read.listed(store)[0].kept == 3


def test_a_set_up_changed_while_the_store_fails_is_written_with_the_next_run(
    own_store: Path, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_WAIT_S", 0.05)
    store, rig = open_store(place.find()), Telling()
    described = describe(setup, rig)
    keeper = keep.begin(store, described, request_of(setup), 4)
    with locked(own_store):
        keeper.revise(described | {"repeats": 1}, 2)
        assert keeper.lost == f"{own_store}: locked by another process"
    carry_out(plan(setup)[:2], rig, Local(1, rig), lambda _: None, keeper)
    assert keeper.lost == ""
    kept = read.comparison(store, keeper.id)
    assert (kept.setup["repeats"], kept.listed.planned, kept.listed.kept) == (1, 2, 2)
    with locked(own_store):
        keeper.revise(described | {"repeats": 2}, 4)
        keeper.finish()
    assert read.listed(store)[0].state == read.RUNNING
    keeper.finish()
    assert keeper.lost == ""
    kept = read.comparison(store, keeper.id)
    assert (kept.setup["repeats"], kept.listed.planned, kept.listed.state) == (2, 4, read.COMPLETE)


class Renumbered(events.Nowhere):
    """Keeps runs under later numbers."""

    def __init__(self, keeper: keep.InStore, first: int) -> None:
        super().__init__("")
        self.keeper = keeper
        self.first = first

    def keep(self, runs: Mapping[int, Finished]) -> None:
        self.keeper.keep({number + self.first: finished for number, finished in runs.items()})


@pytest.mark.parametrize("content", [b"x" * 5000, b"SQLite format 3\x00" + b"x" * 5000])
def test_a_file_that_is_no_store_is_refused(own_store: Path, content: bytes) -> None:
    own_store.write_bytes(content)
    with pytest.raises(StoreError, match=r"results\.db: (not a store of blklab|damaged)"):
        open_store(place.find())
    assert own_store.read_bytes() == content


def test_a_damaged_store_is_one_line_or_still_right(
    own_store: Path, tmp_path: Path, setup: Setup
) -> None:
    store = open_store(place.find())
    number = kept(store, setup).id
    store.close()
    whole = own_store.read_bytes()
    chance = random.Random(1)
    refused = 0
    for _ in range(150):
        broken = bytearray(whole)
        for _ in range(chance.choice([1, 5, 200])):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        file = tmp_path / "broken.db"
        for old in tmp_path.glob("broken.db*"):
            old.unlink()
        file.write_bytes(bytes(broken[: chance.choice([len(broken), len(broken) // 2])]))
        try:
            where = open_store(place.find(str(file)))
            read.listed(where)
            read.comparison(where, number, raw=True)
        except BlklabError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 30


@pytest.mark.parametrize("damaged", [False, True])
def test_a_store_that_is_let_go_leaves_no_connection(anywhere: str, damaged: bool) -> None:
    """A store that was opened, or refused as newer: in both cases the garbage collector closes
    it."""
    store = open_store(place.find(anywhere))
    if damaged:
        with store.writing() as connection:
            connection.execute(schema.MARK.update().values(version=schema.VERSION + 1))
        with pytest.raises(StoreError, match="newer blklab"):
            open_store(place.find(anywhere))
    gc.collect()  # What other tests left is not this one's.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        left: list[object] = []
        hook = sys.unraisablehook
        sys.unraisablehook = lambda met: left.append(met.exc_value)
        try:
            # Referenced only by a cycle, as in an error's traceback.
            cycle: list[object] = [store]
            cycle.append(cycle)
            del store, cycle
            gc.collect()
        finally:
            sys.unraisablehook = hook
    assert left == []


def test_reading_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store there yet"):
        open_store(place.find(str(tmp_path / "new/results.db")), make=False)
    assert not (tmp_path / "new").exists()


def test_an_id_is_never_given_twice(anywhere: str, setup: Setup) -> None:
    store = open_store(place.find(anywhere))
    first = kept(store, setup).id
    with store.writing() as connection:
        connection.execute(schema.COMPARISON.delete())
        assert not connection.execute(schema.RUN.select()).all(), "runs go with it"
        assert not connection.execute(schema.RAW.select()).all()
    assert kept(store, setup).id == first + 1
