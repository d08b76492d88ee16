"""What root gives up before a command that only computes reads its first document.

Job files, exports and stores come from anywhere, and to read them needs no rights. So a command of
root's that sets nothing on this machine keeps the rights about files alone, and changes files
only where its options and the store say so, whatever stands in what it reads.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_SIMULATED = "sim"


class Program:
    """This process: the program ``blklab``, or one that only calls its commands, as tests do."""

    is_blklab = False


def fewer(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same command, which begins by giving up what it does not need. Only of root's, and only
    as a program of its own: rights that are gone are gone for the process."""

    @functools.wraps(command)
    def confined(**options: Any) -> Any:
        # What goes on does so on the rig where it was begun; a study names the rigs of its parts.
        computes = options.get("rig", _SIMULATED) == _SIMULATED and not options.get("resume")
        if Program.is_blklab and computes and os.geteuid() == 0:
            _give_up(options)
        return command(**options)

    return confined


def _give_up(options: Mapping[str, Any]) -> None:
    from blklab.api.rights import give_up_rights

    paths = [value for value in options.values() if isinstance(value, Path)]
    give_up_rights(paths, options.get("store"))
