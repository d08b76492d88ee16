"""The configuration of our kernels: a fragment, the user's own options, and the check of the
result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import InputError
from blklab.rigs.kernel.errors import KernelError

_FRAGMENT = Path(__file__).with_name("uml.config")
_GROUP = re.compile(r"# (needed|wanted|older): ")
_OPTION = re.compile(r"(?:CONFIG_)?([A-Z0-9_]+)=(y|n|-?\d+|0x[0-9a-fA-F]+|\"[^\"\n]*\")")


@dataclass(frozen=True)
class Fragment:
    """Values of options, by name without ``CONFIG_``."""

    needed: Mapping[str, str]
    wanted: Mapping[str, str]
    older: Mapping[str, str]
    own: Mapping[str, str]
    """The user's options, which count as needed."""

    def text(self) -> str:
        """The form of the kernel's KCONFIG_ALLCONFIG."""
        rows = {**self.needed, **self.wanted, **self.older, **self.own}
        return "".join(f"CONFIG_{name}={value}\n" for name, value in rows.items())

    def check(self, found: Mapping[str, str]) -> list[str]:
        """Wanted options that this kernel does not have, by name.

        KernelError if a needed one is not set as it should be in the finished configuration
        `found`, in the form of `parse`.
        """
        for table, why in ((self.own, "--config"), (self.needed, "blklab")):
            for name, value in table.items():
                if value != found.get(name, "n"):
                    raise KernelError(
                        f"CONFIG_{name} is {found.get(name, 'n')} in this kernel's "
                        f"configuration, but {why} needs {value}: it does not exist in this "
                        "version, or something it depends on is not set"
                    )
        return [name for name, value in self.wanted.items() if value != found.get(name, "n")]


def fragment(own: Iterable[str] = ()) -> Fragment:
    """Our fragment, and `own`: ``NAME=VALUE`` with or without ``CONFIG_``, which has precedence.

    InputError if one of `own` has another form.
    """
    tables: dict[str, dict[str, str]] = {"needed": {}, "wanted": {}, "older": {}}
    group = ""
    for line in _FRAGMENT.read_text(encoding="utf-8").splitlines():
        if head := _GROUP.match(line):
            group = head[1]
        tables[group or "needed"].update(parse(line))
    own_table = dict(_own(option) for option in own)
    for table in tables.values():
        for name in own_table.keys() & table.keys():
            del table[name]
    return Fragment(**tables, own=own_table)


def parse(text: str) -> dict[str, str]:
    """A kernel's configuration: name without ``CONFIG_`` -> value. Comments are left out."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.startswith("CONFIG_"):
            found[name.removeprefix("CONFIG_")] = value
    return found


def _own(option: str) -> tuple[str, str]:
    match = _OPTION.fullmatch(option)
    if match is None:
        raise InputError(f"--config: '{option}': expected NAME=y, NAME=n, a number or a \"text\"")
    return match[1], match[2]
