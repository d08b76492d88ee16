"""A study in the store: its parts are comparisons, stored with the data to resume them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import select

from blklab.base.catalogue import Entry
from blklab.domain.comparison import Setup, plan
from blklab.store import keep, packing, request
from blklab.store.database import Store
from blklab.store.keep import InStore
from blklab.store.packing import DamagedError
from blklab.store.request import Request, fingerprints
from blklab.store.schema import COMPARISON, STUDY
from blklab.study.model import Part, Skipped, Study
from blklab.study.parse import parse
from blklab.study.plan import PlannedPart
from blklab.study.run import Ready


@dataclass(frozen=True)
class KeptPart:
    """A part as it was planned."""

    rig: str
    setup: Setup | None
    skipped: tuple[Skipped, ...]
    options: dict[str, str | None] = field(default_factory=dict)
    """The rig's options."""
    simulated: Setup | None = None
    """What is simulated beside it: not stored, since it takes little time."""
    scale: float = 1.0


@dataclass(frozen=True)
class KeptStudy:
    """A study that was begun."""

    name: str
    path: Path
    text: str
    out: str
    parts: tuple[KeptPart, ...]

    def study(self) -> Study:
        """The study from its file."""
        return parse(Entry(self.name, self.path, self.text))

    def planned(self, study: Study) -> list[PlannedPart]:
        """The original plan."""
        return [
            PlannedPart(
                part,
                kept.rig,
                kept.setup,
                kept.skipped,
                kept.options,
                kept.simulated,
                kept.scale,
            )
            for part, kept in zip(study.parts, self.parts, strict=True)
        ]


def begin(store: Store, study: Study, parts: Sequence[Ready], out: str) -> dict[str, InStore]:
    """A new study; returns the comparison of each part that runs, by its name."""
    kept = KeptStudy(
        study.name,
        study.file.path.absolute(),
        study.file.text,
        out,
        tuple(_kept(part.planned) for part in parts),
    )
    with store.writing() as connection:
        made = connection.execute(
            STUDY.insert().values(
                name=packing.text(study.name),
                begun_at=keep.now(),
                request=request.to_bytes(kept),
            )
        )
        [number] = made.inserted_primary_key or (0,)
    return {
        name: keeper
        for part in parts
        if (keeper := _begin_part(store, number, study.name, part, out))
        for name in [part.planned.part.name]
    }


def _kept(planned: PlannedPart) -> KeptPart:
    return KeptPart(
        planned.rig,
        planned.setup,
        planned.skipped,
        dict(planned.options),
        planned.simulated,
        planned.scale,
    )


def kept_study(store: Store, number: int) -> KeptStudy:
    """The study of that number."""
    with store.reading() as connection:
        kept = connection.execute(select(STUDY.c.request).where(STUDY.c.id == number)).scalar_one()
    found = request.from_bytes(f"study {number}: request", kept, KeptStudy)
    if len(found.parts) != len(found.study().parts):
        raise DamagedError(f"study {number}: request: {len(found.parts)} parts, expected as many "
                           "as its file has")  # fmt: skip
    return replace(
        found,
        parts=tuple(
            replace(
                part,
                setup=part.setup and request.of_any_version(part.setup),
                simulated=part.simulated and request.of_any_version(part.simulated),
            )
            for part in found.parts
        ),
    )


def go_on(
    store: Store, number: int, study: Study, parts: Sequence[Ready], out: str
) -> tuple[list[Ready], dict[str, InStore]]:
    """The parts with their stored set-ups and comparisons. InputError if further runs would differ
    from the stored ones, or if another process runs it."""
    with store.reading() as connection:
        rows = {
            row.part: row
            for row in connection.execute(select(COMPARISON).where(COMPARISON.c.study_id == number))
        }
    found, keepers = [], {}
    for part in parts:
        name = part.planned.part.name
        row = rows.get(packing.text(name))
        if row is None:
            found.append(part)
            if keeper := _begin_part(store, number, study.name, part, out):
                keepers[name] = keeper
            continue
        where = f"comparison {row.id}"
        setup = packing.setup(f"{where}: setup", row.setup)
        asked = request.request_from_bytes(f"{where}: request", row.request)
        request.check_same(
            f"part '{name}' of comparison {row.id}", setup, part.described or {}, asked
        )
        keepers[name] = keep.go_on(store, row.id)
        found.append(Ready(part.planned, part.rig, setup))
    return found, keepers


def _begin_part(store: Store, number: int, study: str, part: Ready, out: str) -> InStore | None:
    setup, described = part.planned.setup, part.described
    if setup is None or described is None:
        return None
    wanted: Part = part.planned.part
    told = dict(part.planned.options)
    asked = Request(setup, part.planned.rig, told, wanted.objective, out, fingerprints(setup))
    return keep.begin(store, described, asked, len(plan(setup)), study=(number, study, wanted.name))
