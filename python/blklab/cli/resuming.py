"""The options about the store, and what goes with ``--resume``."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab.errors import InputError

StoreName = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE|URL",
        help="Store of results: a file, or postgresql+psycopg://... [default: "
        "$BLKLAB_STORE, else blklab/results.db in your data directory]",
    ),
]
NoKeep = Annotated[bool, typer.Option("--no-keep", help="Do not store the results.")]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Continue an interrupted comparison: ID; default: the latest."),
]
_GO_WITH_RESUME = ("resume", "store", "jobs", "out", "objective", "as_json")


def check(context: typer.Context, resume: bool, argument: str) -> None:
    """InputError if something is said that a comparison that goes on cannot be told."""
    told = [name for name in context.params if is_told(context, name)]
    if resume:
        if "no_keep" in told:
            raise InputError(
                "--no-keep: --resume continues a stored comparison, and stores the rest"
            )
        for name in told:
            if name not in (*_GO_WITH_RESUME, argument):
                raise InputError(f"--{name.replace('_', '-')}: --resume uses the original options")
    elif argument in told:
        raise InputError(
            f"'{context.params[argument]}': not expected; to resume a number, add --resume"
        )


def is_told(context: typer.Context, name: str) -> bool:
    """Whether the user has said it."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
