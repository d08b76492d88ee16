"""``blklab kernel``: kernels to try, as programs; one file per command."""

from __future__ import annotations

import typer

from blklab.cli.kernel import build, listed, remove, run, shell, source

app = typer.Typer(
    name="kernel",
    help="Build Linux as a program, patched or not, store it and start it.",
    rich_markup_mode=None,
    add_completion=False,
)
app.command("build")(build.build)
app.command("list")(listed.listed)
app.command("remove")(remove.remove)
app.command("run", context_settings={"allow_interspersed_args": False})(run.run)
app.command("shell")(shell.shell)
app.command("source")(source.source)


@app.callback(invoke_without_command=True)
def group(context: typer.Context) -> None:
    """Build Linux as a program, patched or not, store it and start it."""
    if context.invoked_subcommand is None:
        print(context.get_help())
