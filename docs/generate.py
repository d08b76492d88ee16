"""Generates parts of pages from the program's own tables: a hook of mkdocs.

A page's line ``<!-- generate: NAME WORDS -->`` is replaced by the result of the function of that
name in ``parts/``. Afterwards the examples of the page are run (see ``filled.py``). The results are
not in the repository, so they cannot be out of date.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.utils import meta

from filled import ExampleError, filled
from parts import (
    disks,
    fleet,
    jobs,
    kernel_rig,
    measured,
    program,
    recordings,
    schedulers,
    studies,
    verify,
)

_MARK = re.compile(r"^<!-- generate: (.+?) -->$", re.MULTILINE)

_PARTS = (
    disks,
    fleet,
    jobs,
    kernel_rig,
    measured,
    program,
    recordings,
    schedulers,
    studies,
    verify,
)
_MAKERS: dict[str, Callable[..., str]] = {
    name: made
    for part in _PARTS
    for name, made in vars(part).items()
    if getattr(made, "__module__", None) == part.__name__ and not name.startswith("_")
}

_FILLED: dict[str, Future[str]] = {}
"""Each page by its text: all are filled at the same time, in processes of their own."""


def on_files(files: Any, **_: Any) -> None:
    """mkdocs calls it with all that it has found."""
    pool = ProcessPoolExecutor(os.cpu_count(), get_context("fork"))
    for file in files.documentation_pages():
        markdown, _ = meta.get_data(file.content_string)
        with _errors_of(file):
            text = _MARK.sub(_generated, markdown)
        _FILLED[markdown] = pool.submit(filled, text, keep_words=False)
    pool.shutdown(wait=False)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """mkdocs calls it with every page's text."""
    with _errors_of(page.file):
        return _FILLED[markdown].result()


@contextlib.contextmanager
def _errors_of(file: Any) -> Iterator[None]:
    try:
        yield
    except (ExampleError, KeyError, ValueError, OSError) as error:
        raise PluginError(f"{file.src_uri}: {error}") from error


def _generated(mark: re.Match[str]) -> str:
    name, *words = mark.group(1).split()
    if name not in _MAKERS:
        raise ExampleError(f"there is nothing to generate as '{name}'")
    return _MAKERS[name](*words)
