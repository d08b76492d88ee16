"""Fill the examples of a Markdown file: run its commands and insert their outputs.

Two kinds of blocks are run, in their order and in one directory:

* ```` ```console ````: bash runs each line ``$ COMMAND``; its output follows the line.
* ```` ```pycon ````: lines after ``>>>`` go to one interpreter for the whole file.

Words after the kind: ``first=N`` and ``last=N`` keep this many lines of a command's output (``...``
replaces the rest), ``exit=N`` is the expected exit code of a last command that fails.

The site is filled while it is built. README.md is read without a build, so it contains its outputs:
``python docs/filled.py README.md`` updates it, and a test compares.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_HOME = "/home/you/blklab"
"""Replaces the checkout's path in outputs."""
_BLOCK = re.compile(r"^```(console|pycon)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TIMEOUT_S = 300


class ExampleError(Exception):
    """An example behaves differently from its page."""


def filled(markdown: str, *, keep_words: bool = True) -> str:
    """The text with the outputs of its examples.

    ExampleError if one ends in another way. Without `keep_words` the words after the kind are left
    out, for other tools.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory(prefix="blklab-docs-") as directory:

        def run(block: re.Match[str]) -> str:
            kind, words, body = block.groups()
            options = _options(words)
            if kind == "console":
                lines = _console(body, options, Path(directory))
            else:
                lines = _interpreter(body, names, Path(directory))
            return "\n".join([f"```{kind}{words if keep_words else ''}", *lines, "```"])

        try:
            return _BLOCK.sub(run, markdown)
        finally:
            shutil.rmtree(f"{directory}-store", ignore_errors=True)


def _options(words: str) -> dict[str, int]:
    options = {}
    for word in words.split():
        name, _, value = word.partition("=")
        if name not in ("first", "last", "exit") or not value.isdigit():
            raise ExampleError(f"'{word}' behind ```: expected first=N, last=N or exit=N")
        options[name] = int(value)
    return options


def _console(body: str, options: Mapping[str, int], directory: Path) -> list[str]:
    lines: list[str] = []
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)", body, re.MULTILINE)
    for number, command in enumerate(commands, 1):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=directory,
            env=_environment(directory),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        expected = options.get("exit", 0) if number == len(commands) else 0
        if done.returncode != expected:
            raise ExampleError(f"$ {command}\nended with {done.returncode}\n{done.stderr}")
        # Progress on stderr is not a result; an error message is.
        output = done.stdout + (done.stderr if done.returncode else "")
        text = [_plain(line) for line in output.splitlines()]
        lines += [f"$ {line}" if not n else line for n, line in enumerate(command.split("\n"))]
        lines += _shortened(text, options)
    return lines


def _environment(directory: Path) -> dict[str, str]:
    return os.environ | {
        # Beside the page's directory, because an example may list its files: never the user's home.
        "BLKLAB_STORE": str(directory.with_name(f"{directory.name}-store") / "results.db"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "BLKLAB_SOURCE": str(ROOT),
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
    }


def _plain(line: str) -> str:
    return line.replace(str(ROOT), _HOME).rstrip()


def _shortened(lines: list[str], options: Mapping[str, int]) -> list[str]:
    if "first" not in options and "last" not in options:
        return lines
    first, last = options.get("first", 0), options.get("last", 0)
    if len(lines) <= first + last:
        return lines
    return [*lines[:first], "...", *lines[len(lines) - last :]]


def _interpreter(body: str, names: dict[str, Any], directory: Path) -> list[str]:
    lines: list[str] = []
    with contextlib.chdir(directory):
        for example in doctest.DocTestParser().get_examples(body):
            printed = io.StringIO()
            try:
                with contextlib.redirect_stdout(printed):
                    exec(compile(example.source, "<example>", "single"), names)
            except Exception as error:
                raise ExampleError(
                    f">>> {example.source}{type(error).__name__}: {error}"
                ) from error
            source = example.source.rstrip("\n").split("\n")
            lines += [f"{'...' if n else '>>>'} {line}".rstrip() for n, line in enumerate(source)]
            lines += [_plain(line) for line in printed.getvalue().splitlines()]
    return lines


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
