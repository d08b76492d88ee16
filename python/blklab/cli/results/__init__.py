"""``blklab results``: what is kept of comparisons; one file per command."""

from __future__ import annotations

import typer

from blklab.cli.results import diff, export, imported, listed, remove, show

app = typer.Typer(
    name="results",
    help="List, show, compare, export and remove stored comparisons.",
    rich_markup_mode=None,
    add_completion=False,
)
app.command("show")(show.show)
app.command("diff")(diff.diff)
app.command("export")(export.export)
app.command("import")(imported.imported)
app.command("remove")(remove.remove)
app.callback(invoke_without_command=True)(listed.listed)
