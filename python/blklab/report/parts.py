"""The parts of every page: template environment, style, scripts, data, figures."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from blklab.base.units import duration_text, number_text


def environment() -> Environment:
    """Templates of this folder; every string is escaped unless it is `Markup`."""
    made = Environment(
        loader=PackageLoader("blklab.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(duration=duration_text, number=number_text)
    return made


def css(*more: str) -> Markup:
    """The style of all pages, followed by this page's own."""
    return Markup("".join(map(_text, ("report.css", *more))))


def script(*names: str) -> Markup:
    """A page's scripts, after the common ones."""
    return Markup("".join(map(_text, ("common.js", *names))))


BUNDLE = files("blklab.report") / "bundle/node_modules/plotly.js-basic-dist-min/plotly-basic.min.js"


def plotly() -> Markup:
    """Plotly itself: the page works without a network.

    Its bundle of scatter and bar charts, where the build has it, or else all of it, in four times
    the bytes.
    """
    if BUNDLE.is_file():
        return Markup(BUNDLE.read_text(encoding="utf-8"))
    return Markup((files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8"))


def script_json(value: Any) -> Markup:
    """JSON that cannot end its script element, whatever strings it contains."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _text(name: str) -> str:
    return (files("blklab.report") / name).read_text(encoding="utf-8")


_POWER_MAX = 300
_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))


def unit_of(typical_ns: float) -> tuple[str, float]:
    """A unit of time, and its length in ns."""
    for name, unit_ns in _UNITS:
        if typical_ns >= unit_ns:
            return name, unit_ns
    return _UNITS[-1]


def digits(values: Any, count: int = 4) -> list[float | None]:
    """Rounded to significant digits; a value that is not a number becomes a gap."""
    array = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        power = count - 1 - np.floor(np.log10(np.abs(array)))
    # Values too small for any picture are rounded to 0.
    scale = 10.0 ** np.where(np.isfinite(power), np.minimum(power, _POWER_MAX), 0.0)
    rounded = np.where(np.isfinite(array), np.round(array * scale) / scale, np.nan)
    return [None if value != value else value for value in rounded.tolist()]  # noqa: PLR0124
