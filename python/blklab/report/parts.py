"""What every page is made of: template environment, style, scripts, data."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

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
    """The style of all pages, and that of this one."""
    return Markup("".join(map(_text, ("report.css", *more))))


def script(*names: str) -> Markup:
    """A page's scripts, behind what all of them use."""
    return Markup("".join(map(_text, ("common.js", *names))))


def plotly() -> Markup:
    """Plotly itself: the page works without a network."""
    return Markup((files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8"))


def script_json(value: Any) -> Markup:
    """JSON that cannot end the script element it stands in, whatever strings it holds."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _text(name: str) -> str:
    return (files("blklab.report") / name).read_text(encoding="utf-8")
