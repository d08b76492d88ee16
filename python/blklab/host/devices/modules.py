"""Schedulers that this kernel does not list but could load.

The kernel asks modprobe for ``NAME-iosched``, which is a module's file name (kyber) or an alias
(bfq, mq-deadline). Where its modules are not installed, the kernel's configuration shows what it
was built with.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from pathlib import Path

from blklab.host import reading
from blklab.host.roots import Roots

_SUFFIX = "-iosched"
_CONFIG = {
    "CONFIG_MQ_IOSCHED_DEADLINE": "mq-deadline",
    "CONFIG_MQ_IOSCHED_KYBER": "kyber",
    "CONFIG_IOSCHED_BFQ": "bfq",
    "CONFIG_IOSCHED_CFQ": "cfq",
    "CONFIG_IOSCHED_DEADLINE": "deadline",
}
_KNOWN = frozenset(_CONFIG.values())
_CONFIG_BYTES_MAX = 4 << 20


def release(roots: Roots) -> str:
    """The running kernel's release, as ``uname -r`` prints it."""
    return reading.value(roots.proc / "sys/kernel/osrelease")


def loadable(roots: Roots) -> dict[str, str]:
    """Each scheduler that is a module of the running kernel, with the module's name."""
    found: dict[str, str] = {}
    for directory in _directories(roots):
        for line in reading.lines(directory / "modules.dep"):
            module = re.sub(r"\.ko.*", "", Path(line.partition(":")[0]).name).replace("_", "-")
            if module.endswith(_SUFFIX) and module != _SUFFIX:
                found[module.removesuffix(_SUFFIX)] = module
            elif module in _KNOWN:
                found[module] = module
        for line in reading.lines(directory / "modules.alias"):
            words = line.split()
            if len(words) == 3 and words[0] == "alias" and words[1].endswith(_SUFFIX):  # noqa: PLR2004
                found[words[1].removesuffix(_SUFFIX)] = words[2]
    return found


def configured(roots: Roots) -> dict[str, str]:
    """For each scheduler of Linux, ``y``, ``m`` or ``n``; empty if the configuration is not
    found."""
    text = _configuration(roots)
    if not text:
        return {}
    found = dict(re.findall(r"^(CONFIG_\w*IOSCHED\w*)=([ym])$", text, re.MULTILINE))
    return {name: found.get(option, "n") for option, name in _CONFIG.items()}


def blocked(modules: Iterable[str], roots: Roots) -> dict[str, str]:
    """Modules that modprobe may not load by their alias, with the line that forbids it as
    ``file:line``."""
    wanted = {name.replace("-", "_"): name for name in modules}
    found: dict[str, str] = {}
    for directory in (roots.etc, roots.run, roots.usr / "lib", roots.lib):
        for name in reading.names(directory / "modprobe.d"):
            path = directory / "modprobe.d" / name
            for number, line in enumerate(reading.lines(path), 1):
                words = line.split()
                if len(words) > 1 and words[0] in ("blacklist", "install"):
                    module = wanted.get(words[1].replace("-", "_"))
                    if module and name.endswith(".conf"):
                        found.setdefault(module, f"{path}:{number}")
    return found


def _directories(roots: Roots) -> list[Path]:
    version = release(roots)
    places = [roots.lib / "modules" / version, roots.usr / "lib/modules" / version]
    return places if version else []


def _configuration(roots: Roots) -> str:
    try:
        with gzip.open(roots.proc / "config.gz") as file:
            return file.read(_CONFIG_BYTES_MAX).decode(errors="replace")
    except (OSError, EOFError):
        pass
    places = [roots.boot / f"config-{release(roots)}"]
    places += [directory / "config" for directory in _directories(roots)]
    return next((text for place in places if (text := reading.value(place))), "")
