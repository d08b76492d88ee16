"""The keys of a file of hosts. Parser, errors and documentation use these tables."""

from __future__ import annotations

import re
from typing import Any

from blklab.domain.comparison import OBJECTIVES
from blklab.study.keys import OBJECTIVE, REPEATS, SEED, SEVERAL, TABLES, TEXT, TEXTS, Key, Shape

HOSTS_MAX = 5000
PARALLEL_MAX = 256
_TIMEOUT_MAX_S = 3600
_PORT_MAX = 65535
_PATH_MAX = 4000
# Neither an option of ssh nor a command of a shell; IPv6 addresses are in no brackets.
_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}@)?[A-Za-z0-9_][A-Za-z0-9_.:-]{0,252}")
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
OPTIONS = (
    "AddressFamily",
    "BindAddress",
    "CertificateFile",
    "Compression",
    "ConnectionAttempts",
    "HostKeyAlias",
    "HostName",
    "IdentitiesOnly",
    "IdentityFile",
    "ProxyJump",
    "StrictHostKeyChecking",
    "UserKnownHostsFile",
)
"""The options of ssh that the file may have: none of them runs a command."""
_OPTION = re.compile(rf"(?:{'|'.join(OPTIONS)})=[^\x00-\x1f\x7f\"]{{1,1000}}")


def is_label(text: str) -> bool:
    """Whether a directory may have that name."""
    return bool(_LABEL.fullmatch(text)) and text not in (".", "..")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(_NAME.fullmatch(value))


def _is_path(value: Any) -> bool:
    return (
        isinstance(value, str)
        and value.startswith("/")
        and len(value) <= _PATH_MAX
        and value.isprintable()
    )


def _is_list(value: Any, fits: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(map(fits, value))
        and len(set(value)) == len(value)
    )


def _is_whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


HOST = Shape("a host: a name or user@name", _is_name)
SEVERAL_HOSTS = Shape(
    'a list of hosts, none twice: ["db1", "root@db2"]', lambda value: _is_list(value, _is_name)
)
LABEL = Shape(
    "a name of A-Z, a-z, 0-9, ., _ and -", lambda value: isinstance(value, str) and is_label(value)
)
PORT = Shape(f"a whole number from 1 to {_PORT_MAX}", lambda value: _is_whole(value, 1, _PORT_MAX))
SSH_OPTIONS = Shape(
    f"a list of NAME=VALUE; the names are: {', '.join(OPTIONS)}; others belong in ~/.ssh/config",
    lambda value: _is_list(value, lambda one: isinstance(one, str) and _OPTION.fullmatch(one)),
)
PATH = Shape("a path that begins with /", _is_path)
TIMEOUT = Shape(
    f"a whole number of seconds, from 1 to {_TIMEOUT_MAX_S}",
    lambda value: _is_whole(value, 1, _TIMEOUT_MAX_S),
)
PARALLEL = Shape(
    f"a whole number from 1 to {PARALLEL_MAX}", lambda value: _is_whole(value, 1, PARALLEL_MAX)
)
MODELS = Shape(
    'a table: "pattern of a disk\'s model" = "disk model"',
    lambda value: isinstance(value, dict),
    Shape(
        "a disk model, as `--disk` of compare, or auto", lambda v: isinstance(v, str) and bool(v)
    ),
)

FILE = (
    Key("objective", OBJECTIVE, "what ranks schedulers", f'"{OBJECTIVES[-1]}"'),
    Key("schedulers", SEVERAL, "the schedulers that may be chosen", "Linux's own of today"),
    Key("repeats", REPEATS, "number of repeats, each with a drawn disk", "10"),
    Key("seed", SEED, "seed of the first repeat", "1"),
    Key("timeout_s", TIMEOUT, "a host that takes longer to answer counts as down", "30"),
    Key("parallel", PARALLEL, "hosts that are asked at the same time", "16"),
    Key("workloads", TEXTS, "workloads of disks whose host has no loads", "none"),
    Key(
        "models",
        MODELS,
        "disk models for models of disks; `*` and `?` as in the shell, the first match counts",
        "auto",
    ),
    Key("host", TABLES, "`[[host]]`: machines, at least one"),
)
HOSTS = (
    Key("name", HOST, "one host, as for ssh", "see `names`"),
    Key("names", SEVERAL_HOSTS, "several hosts that have all else in common", "see `name`"),
    Key("label", LABEL, "its name in tables and directories", "the name without the user"),
    Key("port", PORT, "the port of ssh", "that of ssh"),
    Key("options", SSH_OPTIONS, "options of ssh, as `ssh -o`", "none"),
    Key(
        "workloads", TEXTS, "workloads of its other disks, as `--workload` of compare", "the file's"
    ),
    Key("load", TABLES, "`[[host.load]]`: what a disk does", "`workloads`"),
)
LOAD = (
    Key("disk", TEXT, "the kernel's name of a disk; `*` and `?` as in the shell", "see below"),
    Key("workload", TEXT, "a workload, as `--workload` of compare", "one of these three"),
    Key("recording", PATH, "a recording on the host", "one of these three"),
    Key("file", TEXT, "a recording here, relative to this file", "one of these three"),
)
SOURCES = ("workload", "recording", "file")
"""The keys of a load of which one is required."""
