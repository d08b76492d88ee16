"""From a study file to a `Study`. Errors name the file, line, key and value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from blklab.base.catalogue import Entry
from blklab.domain import specs
from blklab.errors import InputError, closest, nearest
from blklab.experiment.metrics import METRICS
from blklab.experiment.statistics import MATTERS
from blklab.study import keys
from blklab.study.keys import Key
from blklab.study.model import Claim, Kernel, Part, Study, wrong
from blklab.study.places import KeyPath

_CHARACTERS_MAX = 1 << 20
_SHOWN_MAX = 60
_DOTS_MAX = 200
_SYNTAX = re.compile(r"(.*?)\s*\(at (?:line (\d+), column \d+|end of document)\)", re.DOTALL)


def parse(file: Entry) -> Study:
    """The study in `file`. InputError for any invalid part."""
    return _Reader(file).study(_document(file))


def _document(file: Entry) -> dict[str, Any]:
    if len(file.text) > _CHARACTERS_MAX:
        reason = f"not a study: more than {_CHARACTERS_MAX} characters"
        raise InputError(reason, str(file.path))
    for place, row in enumerate(file.text.split("\n"), 1):
        # tomllib needs time quadratic in the parts of a key: more than an hour for 200 KB of dots.
        if max(part.count(".") for part in row.split("=")) > _DOTS_MAX:
            reason = f"more than {_DOTS_MAX} dots; no key has so many"
            raise InputError(reason, str(file.path), place)
    try:
        return tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        found = _SYNTAX.fullmatch(str(error))
        text = " ".join((found[1] if found else str(error)).split())
        line = int(found[2]) if found and found[2] else file.text.count("\n") + 1
        raise InputError(text, str(file.path), line) from None
    except (RecursionError, ValueError):
        # Integers of thousands of digits, lists in lists in lists.
        raise InputError("numbers or lists are too long or too deep", str(file.path)) from None


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
        row = self._checked(table, path, keys.PART)
        for place, scheduler in enumerate(row["schedulers"]):
            try:
                kernel = specs.scheduler(scheduler).kernel
            except InputError as error:
                raise self._wrong((*path, "schedulers", place), str(error)) from error
            if kernel is not None and kernel not in self._kernels:
                raise self._wrong(
                    (*path, "schedulers", place),
                    f"'{scheduler}': the study has no [[kernel]] of name '{kernel}'"
                    f"{nearest(kernel, self._kernels)}",
                    found=kernel,
                    nearest=closest(kernel, self._kernels),
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
            row.get("vary_disk", False),
        )

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
                f"found {_shown(kind)}{hint}",
                found=_shown(kind),
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
            row.get("not_reproduced", ""),
        )

    def _among(self, names: Iterable[str], there: Sequence[str], path: KeyPath) -> None:
        for place, name in enumerate(names):
            if name not in there:
                step = name if path[-1] == "values" else place
                raise self._wrong(
                    (*path, step),
                    f"the part has no '{name}'{nearest(name, there)}",
                    found=name,
                    nearest=closest(name, there),
                )

    def _checked(self, table: dict[str, Any], path: KeyPath, rows: Sequence[Key]) -> dict[str, Any]:
        known = {key.name: key for key in rows}
        for name in table:
            if name not in known:
                raise self._wrong(
                    (*path, name),
                    f"there is no such key{nearest(name, known)}",
                    found=name,
                    nearest=closest(name, known),
                )
        for key in rows:
            if key.name in table:
                self._fits(table[key.name], (*path, key.name), key.shape)
            elif key.default is None:
                where = f"[[{'.'.join(s for s in path if isinstance(s, str))}]] " if path else ""
                raise self._wrong(
                    path,
                    f"{where}the key '{key.name}' is missing ({key.help}); "
                    f"expected {key.shape.expected}",
                    expected=key.shape.expected,
                )
        return table

    def _fits(self, value: Any, path: KeyPath, shape: keys.Shape) -> None:
        if not shape.fits(value):
            found = _shown(value)
            raise self._wrong(
                path,
                f"found {found}, expected {shape.expected}",
                found=found,
                expected=shape.expected,
            )
        if shape.of_each is not None:
            for name, item in value.items():
                self._fits(item, (*path, name), shape.of_each)

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


def _shown(value: Any) -> str:
    """The value in TOML, shortened."""
    match value:
        case bool():
            text = str(value).lower()
        case int() if abs(value) >= 1 << 64:
            text = "a number beyond 64 bits"
        case str():
            text = f'"{value}"'
        case dict():
            text = "a table"
        case list() if value and all(isinstance(item, dict) for item in value):
            text = "tables"
        case _:
            text = str(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
