"""From a study file to a `Study`. Errors name the file, line, key and value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from blklab.base.catalogue import Entry
from blklab.domain import specs, sweep
from blklab.domain.space import ends_of
from blklab.errors import InputError, closest, nearest
from blklab.experiment.drift import METRICS as DRIFTING
from blklab.experiment.metrics import METRICS
from blklab.experiment.statistics import MATTERS
from blklab.study import keys, tables
from blklab.study.keys import Key
from blklab.study.model import Claim, Kernel, Part, Study, wrong
from blklab.study.places import KeyPath


def parse(file: Entry) -> Study:
    """The study in `file`. InputError for any invalid part."""
    return _Reader(file).study(tables.document(file, "a study"))


class _Reader:
    """Reads the tables of one file."""

    def __init__(self, file: Entry) -> None:
        self._file = file

    def study(self, document: dict[str, Any]) -> Study:
        rows = self._checked(document, (), keys.STUDY)
        kernels = self._several(rows.get("kernel", []), "kernel", self._kernel)
        if not rows["part"]:
            raise self._wrong(("part",), "missing; expected at least one [[part]]")
        self._kernels = [kernel.name for kernel in kernels]
        self._shared = rows
        parts = self._several(rows["part"], "part", self._part)
        for what, names in (("kernel", self._kernels), ("part", [part.name for part in parts])):
            for place, name in enumerate(names):
                if name in names[:place]:
                    raise self._wrong((what, place, "name"), f"'{name}' is given twice")
        return Study(
            self._file,
            rows["title"],
            rows["question"],
            rows.get("source", ""),
            rows.get("seed", 1),
            tuple(kernels),
            tuple(parts),
            rows.get("system", ""),
        )

    def _several(self, tables: Sequence[dict[str, Any]], name: str, read: Any) -> list[Any]:
        return [read(table, (name, place)) for place, table in enumerate(tables)]

    def _kernel(self, table: dict[str, Any], path: KeyPath) -> Kernel:
        row = self._checked(table, path, keys.KERNEL)
        return Kernel(
            row["name"],
            row.get("summary", ""),
            row.get("source"),
            tuple(row.get("patches", ())),
            tuple(row.get("add", ())),
            tuple(row.get("config", ())),
            row.get("late_disk", ""),
        )

    def _part(self, table: dict[str, Any], path: KeyPath) -> Part:
        row = {**self._checked(table, path, keys.PART)}
        for place, scheduler in enumerate(row["schedulers"]):
            try:
                kernel = specs.scheduler(scheduler).kernel
            except InputError as error:
                raise self._wrong((*path, "schedulers", place), str(error)) from error
            self._built(kernel, (*path, "schedulers", place), f"'{scheduler}': ")
        self._built(row.get("kernel"), (*path, "kernel"))
        for key in ("workloads", "quick"):
            if key in row:
                row[key] = self._sizes(row[key], (*path, key))
        under = row.get("recorded_under")
        self._among([] if under is None else [under], row["schedulers"], (*path, "recorded_under"))
        tuned = row.get("tune", ())
        self._among(tuned, row["schedulers"], (*path, "tune"))
        for place, scheduler in enumerate(tuned):
            try:
                ends_of(specs.scheduler(scheduler))
            except InputError as error:
                raise self._wrong((*path, "tune", place), str(error)) from error
        quick = row.get("quick", ())
        if quick and len(quick) != len(row["workloads"]):
            raise self._wrong(
                (*path, "quick"),
                f"{len(quick)} workloads, expected {len(row['workloads'])}, as in 'workloads'",
            )
        claims = [
            self._claim(claim, (*path, "claim", place), row)
            for place, claim in enumerate(row.get("claim", []))
        ]
        return Part(
            row["name"],
            row.get("question", self._shared["question"]),
            row.get("note", ""),
            tuple(row.get("rigs", self._shared.get("rigs", ("sim",)))),
            tuple(row["disks"]),
            tuple(row["workloads"]),
            tuple(row["schedulers"]),
            row.get("repeats", self._shared.get("repeats", 5)),
            row.get("objective", "both"),
            row.get("host", {}),
            {name: float(weight) for name, weight in row.get("weights", {}).items()},
            tuple(claims),
            under,
            float(row.get("scale", 1.0)),
            tuple(quick),
            float(row.get("quick_scale", row.get("scale", 1.0))),
            row.get("quick_host", row.get("host", {})),
            row.get("vary_disk", False),
            tuple(tuned),
            row.get("kernel"),
        )

    def _built(self, kernel: str | None, path: KeyPath, what: str = "") -> None:
        """InputError if the study does not build that kernel."""
        if kernel is not None and kernel not in self._kernels:
            raise self._wrong(
                path,
                f"{what}the study has no [[kernel]] of name '{kernel}'"
                f"{nearest(kernel, self._kernels)}",
                found=kernel,
                nearest=closest(kernel, self._kernels),
            )

    def _sizes(self, workloads: Sequence[str], path: KeyPath) -> list[str]:
        """Each size of a sweep, ``numjobs=4..256``, is a workload of its own."""
        sizes = []
        for place, text in enumerate(workloads):
            try:
                sizes += sweep.expanded(text)
            except InputError as error:
                raise self._wrong((*path, place), str(error).removeprefix("--workload ")) from error
        if twice := next((text for text in sizes if sizes.count(text) > 1), None):
            raise self._wrong(path, f"'{twice}' is there twice")
        return sizes

    def _claim(self, table: dict[str, Any], path: KeyPath, part: Mapping[str, Any]) -> Claim:
        kind = table.get("kind")
        if not isinstance(kind, str) or kind not in keys.CLAIMS:
            one_of = f"one of {', '.join(keys.CLAIMS)}"
            expected = f"expected {one_of}"
            if "kind" not in table:
                raise self._wrong(path, f"the key 'kind' is missing; {expected}", expected=one_of)
            hint = nearest(kind, keys.CLAIMS) if isinstance(kind, str) else f"; {expected}"
            raise self._wrong(
                (*path, "kind"),
                f"found {tables.shown_value(kind)}{hint}",
                found=tables.shown_value(kind),
                expected=one_of,
                nearest=closest(kind, keys.CLAIMS) if isinstance(kind, str) else None,
            )
        row = self._checked(table, path, keys.CLAIMS[kind])
        values = row.get("values", {})
        for name in ("disks", "workloads", "schedulers"):
            self._among(row.get(name, ()), part[name], (*path, name))
        self._among(values, part["schedulers"], (*path, "values"))
        metric = row.get("metric", "mb_s")
        if "job" in row and not METRICS[metric].of_a_job:
            raise self._wrong((*path, "job"), f"'{metric}' is a figure of all jobs together")
        if kind == "bound" and not {"least", "most"} & set(row):
            raise self._wrong(path, "a bound needs the key 'least' or 'most'")
        if METRICS[metric].may_be_zero and kind != "bound":
            raise self._wrong(
                (*path, "metric"), f"'{metric}' may be 0; only a claim of the kind 'bound' has it"
            )
        if kind == "steady" and metric not in DRIFTING:
            raise self._wrong(
                (*path, "metric"),
                f"no drift of '{metric}' is measured; expected one of {', '.join(DRIFTING)}",
                found=metric,
                expected=f"one of {', '.join(DRIFTING)}",
                nearest=closest(metric, DRIFTING),
            )
        if kind == "steady" and "job" in row:
            raise self._wrong((*path, "job"), "a drift is that of all jobs together")
        percent = row.get("tolerance_percent", (MATTERS - 1) * 100)
        return Claim(
            kind,
            row["text"],
            metric,
            row.get("job"),
            tuple(row.get("workloads", part["workloads"])),
            tuple(row.get("disks", part["disks"])),
            row.get("summed", False),
            tuple(values or row.get("schedulers", part["schedulers"])),
            {
                name: tuple(map(float, value if isinstance(value, list) else [value]))
                for name, value in values.items()
            },
            float(row.get("value", 1.0)),
            percent / 100,
            row.get("least"),
            row.get("most"),
            row.get("source", self._shared.get("source", "")),
            row.get("ranked", False),
            row.get("not_reproduced", ""),
        )

    def _among(self, names: Iterable[str], there: Sequence[str], path: KeyPath) -> None:
        for place, name in enumerate(names):
            if name not in there:
                step = {"values": (name,), "recorded_under": ()}.get(str(path[-1]), (place,))
                raise self._wrong(
                    (*path, *step),
                    f"the part has no '{name}'{nearest(name, there)}",
                    found=name,
                    nearest=closest(name, there),
                )

    def _checked(self, table: dict[str, Any], path: KeyPath, rows: Sequence[Key]) -> dict[str, Any]:
        return tables.checked(self._file, table, path, rows)

    def _wrong(
        self,
        path: KeyPath,
        message: str,
        *,
        found: str | None = None,
        expected: str | None = None,
        nearest: str | None = None,
    ) -> InputError:
        return wrong(self._file, path, message, found=found, expected=expected, nearest=nearest)
