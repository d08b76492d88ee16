"""Study files."""

from __future__ import annotations

from parts.text import code, keys_table, table


def study_judging() -> str:
    """The rules by which each kind of claim is reproduced."""
    from blklab.study import judge

    assert judge.__doc__ is not None
    return judge.__doc__.partition("\n\n")[2].strip() + "\n"


def study_keys() -> str:
    """The keys of a study file, table by table."""
    from blklab.study import keys

    tables = {
        "At the top": keys.STUDY,
        "`[[part]]`: a comparison": keys.PART,
        "`[[kernel]]`: a kernel to build": keys.KERNEL,
        **{f"`[[part.claim]]` of kind `{kind}`": rows for kind, rows in keys.CLAIMS.items()},
    }
    return "\n".join(f"**{title}**\n\n{keys_table(rows)}" for title, rows in tables.items())


def study_metrics() -> str:
    """The metrics of claims."""
    from blklab.experiment.metrics import METRICS

    return table(
        ("metric", "unit", "meaning", "better is"),
        (
            (code(m.name), m.unit, m.help, "more" if m.more_is_better else "less")
            for m in METRICS.values()
        ),
    )
