"""The file of hosts of `blklab fleet`."""

from __future__ import annotations

from parts.text import keys_table


def fleet_keys() -> str:
    """The keys of the file, table by table."""
    from blklab.fleet import keys

    tables = {
        "At the top": keys.FILE,
        "`[[host]]`: a machine, or several that have all else in common": keys.HOSTS,
        "`[[host.load]]`: what a disk does": keys.LOAD,
    }
    return "\n".join(f"**{title}**\n\n{keys_table(rows)}" for title, rows in tables.items())
