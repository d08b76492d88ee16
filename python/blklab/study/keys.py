"""The keys of a study file. Parser, errors and documentation use these tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from blklab.base.limits import REPEATS_MAX
from blklab.domain.comparison import OBJECTIVES
from blklab.experiment.metrics import METRICS
from blklab.rigs import RIGS as KNOWN


@dataclass(frozen=True)
class Shape:
    """The required type and range of a value."""

    expected: str
    fits: Callable[[Any], bool]
    of_each: Shape | None = None
    """For tables with the user's own keys: the required type and range of each value."""


@dataclass(frozen=True)
class Key:
    """One key of a table."""

    name: str
    shape: Shape
    help: str
    default: str | None = None
    """The default, in words; None if the key is required."""


def _number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return _whole(-(2**63), 2**63 - 1)(value)


def _whole(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _texts(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(map(_text, value))
        and len(set(value)) == len(value)
    )


_LEAST, _MOST = 1e-18, 1e18
"""The range of a figure that can still be squared, summed and divided."""
_ABOVE_0 = "a number above 0 (1e-18 to 1e18)"


def _positive(value: Any) -> bool:
    return _number(value) and _LEAST <= value <= _MOST


def _figures(value: Any) -> bool:
    several = isinstance(value, list) and bool(value)
    return _positive(value) or (several and all(map(_positive, value)))


_FROM_0 = "a number from 0 (0, or 1e-18 to 1e18)"


def _from_0(value: Any) -> bool:
    return _positive(value) or (_number(value) and value == 0)


_PERCENT_MAX = 1000
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")

TEXT = Shape("a text", _text)
NAME = Shape(
    "a name of a-z, 0-9, _ and -, at most 40 characters",
    lambda value: isinstance(value, str) and bool(_NAME.fullmatch(value)),
)
TEXTS = Shape('a list of texts, none twice: ["a", "b"]', _texts)
PAIR = Shape(
    'two schedulers: ["a", "b"]', lambda value: _texts(value) and len(value) == len(("a", "b"))
)
SEVERAL = Shape(
    'at least two schedulers: ["a", "b"]', lambda value: _texts(value) and len(value) > 1
)
SEVERAL_WORKLOADS = Shape(
    'at least two workloads: ["a", "b"]', lambda value: _texts(value) and len(value) > 1
)
RIGS = Shape(
    f"a list of some of {', '.join(KNOWN)}",
    lambda value: _texts(value) and set(value) <= set(KNOWN),
)
REPEATS = Shape(f"a whole number from 1 to {REPEATS_MAX}", _whole(1, REPEATS_MAX))
SEED = Shape("a whole number from 0 to 2^62", _whole(0, 2**62))
RATIO = Shape(_ABOVE_0, _positive)
LIMIT = Shape(_FROM_0, _from_0)
PERCENT = Shape(
    f"a number of per cent, from 0 to {_PERCENT_MAX}",
    lambda value: _number(value) and 0 <= value <= _PERCENT_MAX,
)
OBJECTIVE = Shape(
    f"one of {', '.join(OBJECTIVES)}", lambda v: isinstance(v, str) and v in OBJECTIVES
)
METRIC = Shape(f"one of {', '.join(METRICS)}", lambda v: isinstance(v, str) and v in METRICS)
FLAG = Shape("true or false", lambda value: isinstance(value, bool))
TABLE = Shape("a table", lambda value: isinstance(value, dict))
FIGURES = Shape(
    "a table: scheduler = figure",
    lambda value: isinstance(value, dict) and bool(value),
    Shape(f"{_ABOVE_0}, or a list of them, one for each run", _figures),
)
HOST = Shape(
    "a table: name = whole number",
    lambda value: isinstance(value, dict),
    Shape("a whole number", _whole(-(2**63), 2**63 - 1)),
)
WEIGHTS = Shape("a table: job = weight", lambda value: isinstance(value, dict), RATIO)
TABLES = Shape(
    "tables, each below its [[heading]]",
    lambda value: isinstance(value, list) and all(isinstance(item, dict) for item in value),
)

STUDY = (
    Key("title", TEXT, "a summary in one line, for `blklab studies`"),
    Key("question", TEXT, "the question of the study"),
    Key("source", TEXT, "the source of the published figures", ""),
    Key("system", TEXT, "the published system, for the report's table", ""),
    Key("rigs", RIGS, "the rigs on which its parts can run; the first is the default", '["sim"]'),
    Key("repeats", REPEATS, "number of repeats, each with its own seed", "5"),
    Key("seed", SEED, "seed of the first repeat", "1"),
    Key("kernel", TABLES, "`[[kernel]]`: kernels to build", "none"),
    Key("part", TABLES, "`[[part]]`: its comparisons, at least one"),
)
KERNEL = (
    Key("name", NAME, "`SCHEDULER@NAME` runs on it"),
    Key("summary", TEXT, "how it differs from the default kernel", ""),
    Key("source", TEXT, "version, tarball or directory", "as `blklab kernel build`"),
    Key("patches", TEXTS, "files, relative to the study's", "none"),
    Key(
        "add",
        TEXTS,
        "C files for `block/`, such as a new scheduler; relative to the study's",
        "none",
    ),
    Key("config", TEXTS, "options, `NAME=VALUE`", "none"),
    Key("late_disk", TEXT, "why the disk may be late in its guests", "that makes runs invalid"),
)
PART = (
    Key("name", NAME, "also that of its directory in the report"),
    Key("question", TEXT, "the question of this part", "the study's"),
    Key("note", TEXT, "differences from the published set-up", ""),
    Key("rigs", RIGS, "the rigs on which it can run", "the study's"),
    Key("disks", TEXTS, "as `--disk` of compare"),
    Key("workloads", TEXTS, "as `--workload` of compare"),
    Key("schedulers", TEXTS, "as `--scheduler` of compare, with `@KERNEL` to name a kernel"),
    Key(
        "tune",
        TEXTS,
        "some of the schedulers: [each of their tunables](#tunables-that-matter) is tried at both "
        "ends of its range, too",
        "none",
    ),
    Key(
        "kernel",
        NAME,
        "a `[[kernel]]` of the study, for schedulers that name none",
        "blklab's own",
    ),
    Key("repeats", REPEATS, "number of repeats", "the study's"),
    Key(
        "vary_disk",
        FLAG,
        "each repeat has [a drawn disk](comparing.md#drawn-disks); not on a real disk",
        "false",
    ),
    Key(
        "recorded_under",
        TEXT,
        "one of the schedulers: those that no kernel has any more are "
        "[simulated](#schedulers-of-the-past), programs by their recording under this one",
        "they are left out",
    ),
    Key(
        "scale",
        RATIO,
        "the published workload is so many times as large; durations are multiplied by it",
        "1",
    ),
    Key("quick", TEXTS, "the workloads with `--quick`, in the same order", "`workloads`"),
    Key("quick_scale", RATIO, "as `scale`, with `--quick`", "`scale`"),
    Key("objective", OBJECTIVE, "rank by this objective", '"both"'),
    Key("host", HOST, "settings of the modelled host", "nothing"),
    Key("quick_host", HOST, "the same with `--quick`", "`host`"),
    Key("weights", WEIGHTS, "share of the disk for each job, by name; see below", "1 each"),
    Key("claim", TABLES, "`[[part.claim]]`: what was published", "none"),
)
_CLAIM_FIRST = (
    Key("kind", TEXT, "kind of the claim; the other keys depend on it"),
    Key("text", TEXT, "the published statement, in a sentence"),
)
_CLAIM_LAST = (
    Key("metric", METRIC, "the metric of the claim", '"mb_s"'),
    Key("job", TEXT, "a job of the workload, all its clones together", "all jobs"),
    Key("disks", TEXTS, "disks of the part", "each"),
    Key("workloads", TEXTS, "workloads of the part", "each"),
    Key("source", TEXT, "the place in the source", "the study's"),
    Key("not_reproduced", TEXT, "known reasons why it may not be reproduced", ""),
)
_SUMMED = Key(
    "summed", FLAG, "the claim is about the sum of the figures under all these workloads", "false"
)
_TOLERANCE = Key("tolerance_percent", PERCENT, "allowed deviation of the measured figure")
CLAIMS = {
    "figures": (
        *_CLAIM_FIRST,
        Key("values", FIGURES, "published: `scheduler = figure`, or a list, one for each run"),
        _TOLERANCE,
        Key("ranked", FLAG, "the order of the schedulers is judged, too", "false"),
        *_CLAIM_LAST,
    ),
    "ratio": (
        *_CLAIM_FIRST,
        Key("schedulers", PAIR, "the two schedulers, first and second"),
        Key("value", RATIO, "the first one's figure divided by the second one's"),
        _TOLERANCE,
        *_CLAIM_LAST,
    ),
    "difference": (
        *_CLAIM_FIRST,
        Key("schedulers", PAIR, "the two schedulers, first and second"),
        Key("value", RATIO, "the first one's figure minus the second one's"),
        _TOLERANCE,
        *_CLAIM_LAST,
    ),
    "order": (
        *_CLAIM_FIRST,
        Key("schedulers", SEVERAL, "the schedulers, the best first"),
        _SUMMED,
        *_CLAIM_LAST,
    ),
    "single-run": (
        *_CLAIM_FIRST,
        Key("schedulers", SEVERAL, "the schedulers, the best first"),
        _SUMMED,
        *_CLAIM_LAST,
    ),
    "bound": (
        *_CLAIM_FIRST,
        Key("schedulers", TEXTS, "the schedulers of the claim", "the part's"),
        Key("least", RATIO, "the figure is at least this", "any"),
        Key("most", LIMIT, "and at most this", "any"),
        *_CLAIM_LAST,
    ),
    "workload-order": (
        *_CLAIM_FIRST,
        Key("schedulers", TEXTS, "the schedulers of the claim, each on its own", "the part's"),
        Key("workloads", SEVERAL_WORKLOADS, "workloads of the part, the best first"),
        *(key for key in _CLAIM_LAST if key.name != "workloads"),
    ),
    "steady": (
        *_CLAIM_FIRST,
        Key("schedulers", TEXTS, "the schedulers of the claim", "the part's"),
        Key(
            "tolerance_percent",
            PERCENT,
            "the largest change from the start to the end of the run that counts as none",
            "2",
        ),
        *_CLAIM_LAST,
    ),
    "no-difference": (
        *_CLAIM_FIRST,
        Key("schedulers", SEVERAL, "the schedulers that are alike", "the part's"),
        Key("tolerance_percent", PERCENT, "the largest difference that counts as none", "2"),
        *_CLAIM_LAST,
    ),
}
"""The keys of a claim of each kind."""
