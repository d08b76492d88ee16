"""The rights that root gives up before a command that only computes reads its first document.

Job files, exports and stores come from anywhere, and reading them needs no rights. So a command
that root runs and that sets nothing on this machine keeps only the rights to files, and changes
files only in the places that its options and the store name, whatever the documents contain.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_SIMULATED = "sim"


class Program:
    """This process: the program ``blklab``, or one that only calls its commands, as tests do."""

    is_blklab = False


def fewer(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same command, which first gives up the rights that it does not need. Only for root, and
    only as a separate program: a process cannot get its rights back."""

    @functools.wraps(command)
    def confined(**options: Any) -> Any:
        # A resumed comparison stays on its rig; a study names the rigs of its parts; tuning is
        # confirmed on others.
        computes = options.get("rig", _SIMULATED) == _SIMULATED
        computes = computes and not options.get("resume") and not options.get("confirm")
        if computes:
            paths = [value for value in options.values() if isinstance(value, Path)]
            give_up(paths, options.get("store"))
        return command(**options)

    return confined


def give_up(paths: Iterable[Path], store: str | None) -> None:
    """Root gives up its rights, but for these paths and the store; other users have none, and a
    process that only calls commands keeps them."""
    if not (Program.is_blklab and os.geteuid() == 0):
        return
    from blklab.api.rights import give_up_rights

    give_up_rights(paths, store)
