"""Malicious job files: every option of real fio, with values that name other files."""

from __future__ import annotations

import functools
import random
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_BASE = "rw=randrw\nbs=16k\nsize=64k\nnumber_ios=8\nruntime=1\n"
_LONG = {"runtime", "timeout", "loops", "time_based", "startdelay", "ramp_time", "numjobs", "size"}
"""Options whose only effect is a long run."""
_ENGINE_ROW = re.compile(r"^(\S+) +: ", re.MULTILINE)


@dataclass(frozen=True)
class Victims:
    """Files of another user, and places that must stay unchanged."""

    directory: Path

    def lay_out(self) -> None:
        """Creates them."""
        self.directory.mkdir()
        for name in ("victim", "log_bw.1.log", "victim.0.0"):
            (self.directory / name).write_bytes(b"precious\n" * 4096)
        (self.directory / "kept").mkdir()
        program = self.directory / "program"
        program.write_text(f"#!/bin/sh\necho ran >{self.directory}/ran\n")
        program.chmod(0o755)
        (self.directory / "more.fio").write_text("exec_prerun=touch ran\n")

    def state(self) -> dict[str, bytes]:
        """Every path below, with its content."""
        return {
            str(path): path.read_bytes() if path.is_file() else b""
            for path in sorted(self.directory.rglob("*"))
        }


@dataclass(frozen=True)
class Case:
    """One job file for `blklab fio`."""

    text: str
    ignore_unsupported: bool = False
    environment: dict[str, str] = field(default_factory=dict)


def known(victims: Victims) -> list[Case]:
    """One job file for each known way out."""
    victim, program, other = victims.directory / "victim", victims.directory / "program", "../../x"
    lines = (
        *(f"mem={kind}:{victim}" for kind in ("mmap", "mmapshared", "mmaphuge")),
        *(f"write_{kind}_log={victims.directory}/log" for kind in ("bw", "lat", "iops", "hist")),
        *(f"exec_{when}={program}" for when in ("prerun", "postrun")),
        *(f"{name}={victim}" for name in ("filename", "read_iolog", "write_iolog", "lockfile")),
        *(f"{name}={victims.directory}" for name in ("directory", "opendir", "filename_format")),
        f"filename_format={other}",
        f"filename={other}",
        f"write_lat_log={other}",
        f"ioengine=external:{program}",
        f"ioengine=filecreate\nfilename={victims.directory}/made",
        f"ioengine=filedelete\nfilename={victim}",
        f"ioengine=exec\nprogram={program}",
        "ioengine=net\nhostname=127.0.0.1\nport=9",
        "ioengine=http\nhttp_host=127.0.0.1\nfilename=/x",
        "ioengine=nbd\nuri=nbd://127.0.0.1/",
        "ioscheduler=none",
        "cgroup=blklab-test\ncgroup_weight=500",
        f"replay_redirect={victim}\nread_iolog={victim}",
        f"merge_blktrace_file={victims.directory}/made\nread_iolog={victim}:{victim}",
        "verify=crc32c\nverify_state_save=1",
        f"verify=pattern\nverify_pattern='{victim}'",
        f"buffer_pattern='{victim}'",
        f"percentile_list=50\nerror_dump=1\naux-path={victims.directory}",
        f"trigger-file={victim}\ntrigger={program}",
        f"dedupe_percentage=50\nbssplit=16k/50:16k/50\ndescription={program}",
        f"include {victims.directory}/more.fio",
        "unlink=1\nunlink_each_loop=1",
        "profile=tiobench",
        "create_on_open=1\nfallocate=native",
        "uid=65534\ngid=65534",
        "log_store_compressed=1\nlog_compression=4k\nwrite_lat_log=x",
    )
    cases = [Case(f"[w]\n{_BASE}{line}\n") for line in lines]
    names = (f"../{victim.name}", str(victim), f"w/{other}", "global", "w:x")
    cases += [Case(f"[{name}]\n{_BASE}") for name in names]
    evil = {"EVIL": f"16k\nexec_prerun={program}", "LONG": "x" * 9000}
    cases.append(Case(f"[w]\n{_BASE}bs=${{EVIL}}\n", environment=evil))
    cases.append(Case(f"[w]\n{_BASE}description=${{LONG}}\n", environment=evil))
    return cases


def drawn(victims: Victims, seed: int) -> Iterator[Case]:
    """Any number of other job files: some options of fio, each with a hostile or an ordinary
    value."""
    chance = random.Random(seed)
    values = _values(victims)
    names = [name for name in options() if name not in _LONG]
    while True:
        chosen = chance.sample(names, chance.choice((1, 1, 2, 4, 8)))
        lines = [f"{name}={chance.choice(values)}" for name in chosen]
        if chance.random() < 0.3:
            lines.append(f"ioengine={chance.choice(engines())}")
        head = chance.choice(("[w]", "[w]", "[w]", "[../x]", f"[{victims.directory}/made]"))
        # Options of the first section are for all jobs; a second job inherits them.
        text = f"[global]\n{_BASE}" + "\n".join(lines) + f"\n{head}\n"
        yield Case(text, ignore_unsupported=chance.random() < 0.7)


@functools.cache
def options() -> tuple[str, ...]:
    """All options of real fio, including those of its engines."""
    told = _ENGINE_ROW.findall(_fio("--cmdhelp=all").replace("\n  ", "\n"))
    for engine in engines():
        told += _ENGINE_ROW.findall(_fio(f"--enghelp={engine}"))
    return tuple(dict.fromkeys(told))


@functools.cache
def engines() -> tuple[str, ...]:
    """The engines of this fio, without those that send commands of their own to devices."""
    words = _fio("--enghelp").split("\n")[1:]
    return tuple(word.strip() for word in words if word.strip() not in ("", "sg", "mtd"))


def _values(victims: Victims) -> list[str]:
    victim = f"{victims.directory}/victim"
    hostile = [
        *(victim, f"mmap:{victim}", f"mmapshared:{victim}", f"{victim}:{victim}", f"'{victim}'"),
        *(f"{victims.directory}/made", f"{victims.directory}/log", str(victims.directory)),
        *(f"{victims.directory}/program", f"external:{victims.directory}/program"),
        *("../../x", "../x", "x/../../y", "./x", "x", "~/x", "$HOME/x", "`touch x`", "; touch x"),
        *("127.0.0.1", "127.0.0.1,9,tcp", "localhost", "http://127.0.0.1/", "nbd://127.0.0.1/"),
    ]
    plain = [
        *("", "0", "1", "2", "-1", "4k", "16k", "1m", "4k-16k", "50", "50:90", "1ms"),
        *("write", "read", "random", "none", "crc32c", "psync", "libaio", "shm", "malloc"),
    ]
    return hostile * 2 + plain


def _fio(word: str) -> str:
    return subprocess.run(["fio", word], check=False, capture_output=True, text=True).stdout
