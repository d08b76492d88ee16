"""The fuzzer's first inputs, and its dictionary: the files that ship with blklab, a line of each
small language, and the names in the parsers' tables."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import struct
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import blklab
from blklab import _core, programs
from blklab.experiment.metrics import METRICS
from blklab.fleet import keys as fleet_keys
from blklab.host.devices.queue import SETTABLE
from blklab.host.udev.parse import LOOKED_AT, SET
from blklab.study import keys
from blklab_fuzz import packed
from blklab_fuzz.formats import journal_seed

_FUZZ = Path(__file__).parents[2]
_PACKAGE = Path(blklab.__file__).parent
_WORD = re.compile(r"[A-Za-z_$][\w./-]{2,40}")
_WORDS_MAX = 600


def seeds(target: str) -> list[bytes]:
    """Inputs of that target that are valid, or nearly valid."""
    made = _SEEDS[target]()
    return [one if isinstance(one, bytes) else one.encode() for one in made]


def dictionary(target: str) -> str:
    """For libFuzzer's ``-dict``."""
    words = dict.fromkeys(_TABLES.get(target, lambda: [])())
    for seed in seeds(target):
        words |= dict.fromkeys(_WORD.findall(seed.decode(errors="ignore")))
    chosen = list(words)[:_WORDS_MAX]
    return "".join(f'"{"".join(map(_escaped, word.encode()))}"\n' for word in chosen)


def _escaped(code: int) -> str:
    plain = code in packed.PLAIN and chr(code) not in '"\\'
    return chr(code) if plain else f"\\x{code:02x}"


def _shipped(folder: str, suffix: str) -> list[str]:
    places = (_PACKAGE / folder, _FUZZ.parent / "examples")
    return [path.read_text() for place in places for path in sorted(place.glob(f"*{suffix}"))]


def _shortened(texts: Iterable[str]) -> list[str]:
    """Without comments, which are half of the shipped text."""
    return ["\n".join(line.split("  #")[0] for line in text.split("\n") if line[:1] != "#")
            for text in texts]  # fmt: skip


def _jobs() -> list[str]:
    return [
        *_shortened(_shipped("workloads", ".fio")),
        "[global]\nsize=1m\n[a]\nnumjobs=3\nnrfiles=2\noffset_increment=4k\n[b]\nstonewall\nrw=trim\n",
        "[a]\nfilename=/dev/sda\nbs=4k,8k\nrwmixread=30\nrw=randrw:4\nrandom_distribution=zipf:1.2\n",
        "[a]\nsize=50%\nfilename=/dev/sda\noffset=10%\n[b]\nfilename=x:y\nfilesize=4k-1m\nstartdelay=2-4\n",
        "[a]\ninclude 1\nsize=${V4k}\niodepth=2*$ncpus\n\fbs=16k\ninclude 2\n\frw=randwrite\n",
        "[a]\nsize=1m\nbssplit=4k/50:8k/50\nzonemode=none\nverify=crc32c\nioengine=mmap\n",
        "[a]\nsize=1m\nwait_for=a\n[b]\nsize=1m\nwait_for=a\ncgroup=x/y\ncgroup_weight=200\nprio=3\n",
        "[a]\nsize=1m\nrate=1m,2m\nthinktime=10us-20us\nlatency_target=5ms\nruntime=1\ntime_based\n",
    ]


def _disks() -> list[str]:
    return _shortened(_shipped("disks", ".toml"))


def _overrides() -> list[str]:
    return ["0\nncq=off\nqueue_depth=1", "1\nrpm=7200\nheads=2", "2\nchannels=8\nlink_mb_s=1"]


def _page(time: int, entries: Iterable[bytes]) -> bytes:
    data = b"".join(entries)
    page = struct.pack("=QQ", time, len(data)) + data
    return struct.pack("<H", len(page)) + page


def _entry(delta: int, number: int, rwbs: bytes, sector: int, sectors: int) -> bytes:
    head = struct.pack("=IHHIII", delta << 5 | 10, number, 0, 1, 7 << 20, 0)
    return head + struct.pack("=QI10s2x", sector, sectors, rwbs)


def _pages() -> list[bytes]:
    request = [_entry(n, 100 + act, b"R", 64, 8) for n, act in enumerate((0, 1, 3))]
    written = [_entry(1, 100 + act, b"FWS", 8, 16) for act in (0, 4, 1, 2, 1, 3)]
    stamp = struct.pack("=II", 31 | 5 << 5, 9)
    extend = struct.pack("=II", 30 | 7 << 5, 1)
    return [
        _page(2000, request),
        _page(2000, request[:2]) + _page(1900, request[2:]),
        _page(3000, [*written, extend, stamp, *request]),
        _page(1 << 31, [struct.pack("=II4x", 29 | 5 << 5, 8), *request]),
    ]


def _record(time: int, action: int, sector: int, bytes_: int, behind: bytes = b"") -> bytes:
    head = struct.pack("=IIQQII", 0x65617407, 7, time, sector, bytes_, action)
    return head + struct.pack("=IIIHH", 1, 1, 0, 0, len(behind)) + behind


def _records() -> list[bytes]:
    kinds = (1, 2, 3, 6, 7, 8, 12)
    stream = b"".join(
        _record(n, kind | 1 << 16 + n % 3, 8 * n, 4096) for n, kind in enumerate(kinds)
    )
    return [b"\x07" + stream, b"\x40" + _record(5, 2 | 1 << 26, 0, 0, b"note") + stream]


def _orders() -> list[str]:
    order: dict[str, Any] = {
        "disk": {"file": "disk.toml", "overrides": [["ncq", "off"]], "seed": 1, "data": "none"},
        "scheduler": "mq-deadline",
        "queue": {"nr_requests": 64},
        "iosched": {"fifo_batch": 16, "front_merges": "1"},
        "sysctl": {"vm.dirty_bytes": 100000000},
        "host_directories": ["/home/me"],
        "file_system": {"kind": "ext4", "mountpoint": "/mnt", "mkfs_options": ["-q"]},
        "log_rows": 10,
        "trace": "blktrace",
        "run": {"program": {"command": ["fio", "a"], "environment": {"A": "b"}, "directory": "x"}},
    }
    window = {"from_ns": 1, "until_ns": 2, "requests": 3}
    job = {"job": {"text": "[a]\nrw=read\n", "seed": 1, "driver": "native", "window": window}}
    return [json.dumps(order), json.dumps(order | {"run": job, "trace": "events"})]


def _formats() -> list[str]:
    own = _FUZZ / "oracles/src"
    page, event = ((own / f"{name}.txt").read_text() for name in ("header_page", "event_format"))
    return [page, f"{page}\f{event}", f"{page.replace('size:8', 'size:4')}\f{event}"]


def _schedulers() -> list[str]:
    return [_with_tunables(row) for row in _core.schedulers()] + [
        "none",
        "mq-deadline:nr_requests=32",
    ]


def _with_tunables(row: _core.SchedulerInfo) -> str:
    settings = [f"{tunable.name}={tunable.default}" for tunable in row.tunables]
    return f"{row.name}:{','.join(settings)}" if settings else row.name


def _hosts() -> list[str]:
    rows = [row for table in _core.environment().values() for row in table]
    return ["\n".join(f"{row.name}={row.default}" for row in rows), "cpus=1024\nhz=250"]


def _host_files() -> list[str]:
    rows = [row for table in ("host", "page cache") for row in _core.environment()[table]]
    values = "\n".join(f"{row.name} = {row.default}" for row in rows)
    return [
        f'# of a machine\n[host]\n{values}\n[measured]\nkernel = "6.18"\n',
        "[host]\ncpus = 2\n",
    ]


def _studies() -> list[str]:
    return [*_shortened(_shipped("studies", ".toml")), *_shortened(_shipped("examples", ".toml"))]


def _fleets() -> list[str]:
    return [
        (_FUZZ.parent / "examples/fleet.toml").read_text(),
        'objective = "both"\nschedulers = ["none", "bfq"]\nrepeats = 3\nseed = 1\ntimeout_s = 5\n'
        'parallel = 2\nworkloads = ["oltp"]\n[models]\n"*" = "auto"\n[[host]]\nname = "a@b"\n'
        'label = "c"\nport = 22\noptions = ["User=x", "ProxyJump=y"]\n[[host.load]]\n'
        'disk = "sd*"\nworkload = "./x.fio"\n[[host.load]]\nfile = "x.rec"\n',
    ]


def _answers() -> list[str]:
    made = [path.read_text() for path in sorted((_FUZZ.parent / "examples/fleet").glob("*/*.txt"))]
    # The paths are most of it.
    short = "devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0"
    return [text.replace(short, "devices/ata1/0").partition("\n")[2] for text in made[:3]] + [
        "blklab-fleet\t1\np\tkernel/hostname\ta\nd\tsda\tdevices/a/sda\n"
        "v\tdevices/a/sda\tdevices/a\nf\tdevices/a/uevent\nf\tdevices/a/model\nt\tX\n"
        "f\tdevices/a/sda/uevent\nt\tDEVTYPE=disk\nl\tdevices/a/sda/subsystem\tblock\n"
        "f\tdevices/a/sda/size\nt\t8\nf\tdevices/a/sda/queue/rotational\nt\t1\n"
        "f\tdevices/a/sda/queue/scheduler\nt\tnone [bfq]\nf\tdevices/a/sda/dev\nt\t8:0\n"
        "u\tsda\nt\tID_MODEL=X\nt\tID_SERIAL=X_123\n"
        's\tetc/udev/rules.d/99-z.rules\nw\tKERNEL=="sd*", ATTR{queue/scheduler}="none"\n'
        "s\tetc/tuned/active_profile\nw\tmine\n"
        "s\tusr/lib/tuned/mine/tuned.conf\nw\t[disk]\nw\televator=kyber\nr\t0\t12 x\nend\n"
    ]


def _kernel_records() -> list[str]:
    record = {
        "version": "7.3.4",
        "source": "Debian's linux-source 7.3.4-1 (sid)",
        "base": "debian 7.3.4-1 00",
        "patches": ["clock.patch", "mine.patch"],
        "config": ["HZ=250"],
        "built_at": "2026-11-22T10:00:00Z",
        "build_s": 61.5,
        "compiled": 1200,
        "added": ["sstf-iosched.c"],
    }
    return [json.dumps(record), "{}"]


def _patches() -> list[bytes]:
    shipped = [path.read_bytes() for path in sorted(_PACKAGE.glob("**/*.patch"))]
    moved = b"diff --git a/block/x.c b/block/y.c\nrename from block/x.c\nrename to block/y.c\n"
    new = b'--- /dev/null\n+++ "b/block/new.c"\n@@ -0,0 +1 @@\n+int x;\n'
    return [*(one[:1500] for one in shipped), moved + new]


def _applied() -> list[str]:
    before = {"scheduler": "mq-deadline", "nr_requests": "64", "iosched/fifo_batch": "16"}
    entry = {
        "number": 1,
        "time": "2026-11-22T10:00:00+00:00",
        "key": {"kind": "id", "matches": ['ATTRS{wwid}=="naa.5000c50012345678"']},
        "settings": {"scheduler": "bfq", "iosched/low_latency": "0", "read_ahead_kb": "128"},
        "disks": [{"name": "sda", "identity": "x", "before": before, "after": before}],
        "tuned": ["balanced"],
        "profile": "[main]\n",
        "done": True,
    }
    model = {"kind": "model", "matches": ['ATTRS{model}=="ST3320620AS*"']}
    entries = [entry, entry | {"number": 2, "key": model, "tuned": None}]
    return [json.dumps({"format": 1, "entries": entries})]


def _rules() -> list[str]:
    return [
        'ACTION=="add|change", KERNEL=="sd[a-z]", ATTR{queue/rotational}=="1", '
        'ATTR{queue/scheduler}="bfq"\n',
        'SUBSYSTEM!="block", GOTO="end"\nENV{DEVTYPE}=="disk", TEST=="queue/scheduler", \\\n'
        ' ATTR{queue/nr_requests}="64", RUN+="/bin/sh -c \'echo bfq '
        ">/sys/block/%k/queue/scheduler'\"\n"
        'LABEL="end"\n',
        'ATTRS{model}==e"ST\\x33*", ENV{X}:="$attr{size}", ATTR{queue/read_ahead_kb}="$env{X}"\n',
        '# a\nPROGRAM=="/bin/true %p", RESULT=="a?b", TAG+="x", OPTIONS+="nowatch"\n',
        'IMPORT{program}="x $devnode", ATTR{queue/iosched/fifo_batch}="$$1%%"\nKERNEL==i"SDA"\n',
    ]


def _tuned() -> list[str]:
    return [
        "[main]\nsummary=x\ninclude=other\n[disk]\nelevator=bfq\ndevices=sda, !sdb\n"
        "readahead=>4096\n"
        "\f[disk]\nelevator=none\n[sysfs]\n/sys/block/sda/queue/nr_requests=64\n",
        "[my]\ntype=disk\npriority=-5\ndevices_udev_regex=^ID_SERIAL=ST.*$\nelevator=${x}\n"
        "replace=1\n",
    ]


def _boot() -> list[str]:
    return [
        "w /sys/block/sd*/queue/scheduler - - - - bfq\\n\n"
        "\fblock/sda/queue/nr_requests = 64\n"
        "\f#!/bin/sh\nfor d in sda sdb; do echo bfq > /sys/block/$d/queue/scheduler; done\n"
        '\fDISK_DEVICES="sda ata-X"\nDISK_IOSCHED="bfq keep"\n'
        "\f[Service]\nExecStart=-/bin/sh -c 'echo 1 \\\n > /sys/block/sda/queue/read_ahead_kb'\n"
        "\fquiet elevator=bfq\n"
    ]


def _kernel_tables() -> list[str]:
    return [
        "29 1 8:1 / /mnt/a\\040b rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "30 1 0:42 /@ /home rw - btrfs /dev/sda rw\n31 1 0:43 / /tank rw - zfs tank/x rw\n"
        "32 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
        "\fFilename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n"
        "\fkernel/block/bfq.ko.zst: kernel/x.ko\n\falias bfq-iosched bfq\n"
        "\fCONFIG_IOSCHED_BFQ=m\nCONFIG_MQ_IOSCHED_DEADLINE=y\n"
        "\f8:0 rbps=1048576 wbps=max riops=max wiops=120\n"
    ]


def _disk_names() -> list[str]:
    return [
        "none [mq-deadline] kyber bfq\n\fST3320620AS     \n\fnaa.5000c50012345678\n\f5QF01234\n"
        "\fMAJOR=8\nMINOR=0\nDEVNAME=sda\nDEVTYPE=disk\n\f\0x\0\x085QF01234"
        "\fE:ID_SERIAL=ST3320620AS_5QF01234\nE:ID_WWN=0x5000c50012345678\nE:ID_FS_TYPE=ext4\n",
        'none\n\f\n\f\n\fX", RUN+="/bin/sh\n\fDEVTYPE=disk\n\f\fE:ID_SERIAL=a"*?[x]|b\n',
    ]


def _options() -> list[str]:
    return [
        "host\ncpus=8,memory_kb=1048576",
        "apply\nbfq:low_latency=0,nr_requests=64",
        "set\nread_ahead_kb=128",
        "budget\n90s",
        "budget\n1.5h",
        "since\n7d",
        "since\n2026-11-22 10:00",
        "name\n7.3.4-mine+1",
        "config\nCONFIG_HZ=250",
        'config\nLOCALVERSION="-x"',
        "config\nDEBUG_INFO=n",
        "device\n/dev/sda",
    ]


def _specs_of_disks() -> list[str]:
    return ["su800-128gb", "sas-10k:queue_depth=1,ncq=off", "./x.toml:rpm=5400", "950pro-256gb:a=b"]


def _specs_of_workloads() -> list[str]:
    return [
        *("randread", "randrw-60:bs=4k,8k,iodepth=4", "oltp:numjobs=4..256", "./x.fio:size=1m"),
        *("pgbench:clients=4", "sysbench-fileio:threads=1..64", "dbench:clients=2"),
    ]


def _changes() -> list[str]:
    return [f"{text}\fbs=8k,iodepth=4" for text in _jobs()[:6]] + [
        "[a]\nsize=1m\n[global]\nbs=4k\n[b]\nsize=2m\n\fsize=4m",
        "[a]\nsize=1m\n\fblocksize=4k,8k,rw=randrw:8",
    ]


def _documents() -> list[bytes]:
    plain = json.dumps({"disks": [{"label": "a"}], "repeats": 5, "x": [1.5, None, "ü"]}).encode()
    return [b"\0" + plain, b"\0{}", b"\x01x\x9c\x03\0\0\0\0\x01"]


def _event_traces() -> list[bytes]:
    kinds = (1, 4, 12, 7, 6, 7, 8)
    records = b"".join(_record(100 * n, kind | 1 << 16, 8, 4096) for n, kind in enumerate(kinds))
    name = _record(5, 1 << 26, 0, 0, b"fio".ljust(16, b"\0"))
    grouped = _record(7, 0x101 | 2 << 16, 8, 4096, b"\7" * 8) + _record(9, 8 | 2 << 16, 8, 4096)
    remap = _record(8, 15 | 1 << 16, 8, 4096, struct.pack(">IIQ", 253 << 20, 8 << 20, 8))
    head = struct.pack("=IIQQII", 0x65617408, 1, 5, 8, 4096, 1)
    version_8 = head + struct.pack("=QIIHH12x", 1 | 1 << 16, 8 << 20, 0, 0, 0)
    swapped = struct.pack(">IIQQIIIIIHH", 0x65617407, 1, 5, 8, 4096, 7 | 2 << 16, 1, 1, 0, 0, 0)
    blkparse = (
        b"  8,0    1        1     0.000000000   697  Q  WS 223490 + 8 [jbd2]\n"
        b"  8,0    1        2     0.000001000   697  D  WS 223490 + 8 [jbd2]\n"
        b"  8,0    1        3     0.000900000     0  C  WS 223490 + 8 [0]\n"
        b"  8,0    1        4     0.001000000   697  Q FWS [jbd2]\n"
        b"  8,0    1        5     0.001200000     0  C FWS 0 [0]\n"
        b"  8,0    1        6     0.002000000     9  A   R 8 + 8 <- (8,1) 0\n"
        b"  8,0    1        7     0.002000000     9  X   R 8 / 12 [a]\nCPU0 (sda):\n"
    )
    ftrace = (
        b"# tracer: nop\n"
        b" a b-12 [001] d..1.  5.000001: block_bio_queue: 8,0 FWFSM 800 + 8 [a b]\n"
        b" a b-12 [001] d..1.  5.000002: block_rq_insert: 8,0 W 4096 () 800 + 8 be,0,4 [a b]\n"
        b"CPU:1 [LOST 5 EVENTS]\n"
        b" <idle>-0 [000] d.h1.  5.000900: block_rq_complete: 8,0 W () 800 + 8 none,0,0 [0]\n"
        b" x-1 [000]  6.000000: block_bio_remap: 8,0 R 8 + 8 <- (253,0) 0\n"
        b" x-1 [000]  6.000000: block_split: 8,0 R 8 / 12 [x]\n"
    )
    binary = (records, name + records, grouped + remap, version_8, swapped, records[:-3])
    return [*(b"\0" + one for one in binary), b"\1" + blkparse, b"\2" + ftrace]


def _row_traces() -> list[bytes]:
    vscsi = struct.pack("<IIIHHQQ", 1, 4096, 1, 0x2A, 0x100, 800, 5_000_000)
    rows = {
        "iolog": b"fio version 3 iolog\n3 a add\n36 a trim 0 8192\n52 a write 1 4096\n60 a sync\n",
        "blkreplay": b"start ; sector; length ; op\n 0.25 ; 8 ; 64 ; W ; 0.0 ; 0.0\n",
        "msr": b"128166372003061629,hm,1,Read,383496192,32768,113736\n",
        "mqsim": b"938513000 4 264719034 16 0\n",
        "alibaba": b"419,W,8792731648,16384,1577808144360767\n",
        "tencent": b"1538323200,12910952,128,0,1063\n1538323200,8,8,1,1063\n",
        "systor": b"1455592920.004500,0.000105,W,2,30743490560,4096\n1455592921.5,0.1,,2,0,512\n",
        "k5cloud": b"0,0.000000,W,409600,4096\n",
        "fiu": b"89966400263042 4892 syslogd 904265560 8 W 6 0 531e779\n",
        "hfplayer": b"#ELAPSED_USECS.D,CMD.S,SEQID.I,PHASE.I,LBA.I,NBLKS.I,THINK_USECS.D\n"
        b"10.5,RD_IN,7,0,800,8,0\n20.000,RD_OUT,7,1,0,0,0\n",
        "vscsi": vscsi,
        "oracle-general": struct.pack("<IQIq", 5633898, 800, 4096, -1),
        "csv": b"time_us,op,offset,size,latency_us\n5,R,512,4096,7.5\n",
        "sectors": b"8\n16\n",
    }
    events = ("blktrace", "blkparse", "ftrace", "blklab")
    names = [row.name for row in _core.trace_formats() if row.name not in events]
    return [bytes([names.index(name)]) + text for name, text in rows.items()]


def _traces() -> list[bytes]:
    plain = [one[1:] for one in (*_event_traces(), *_row_traces())]
    made = []
    with tempfile.TemporaryDirectory() as place:
        trace, out = Path(place, "trace"), Path(place, "out")
        trace.write_bytes(plain[0])
        _core.read_trace(trace, out=out)
        made.append(out.read_bytes())
    return [*plain, *made, gzip.compress(plain[0]), lzma.compress(plain[6])]


_SEEDS: dict[str, Callable[[], Iterable[str | bytes]]] = {
    # Rust's targets.
    "disk_file": _disks,
    "disk_override": _overrides,
    "event_formats": _formats,
    "event_pages": _pages,
    "fio_output": lambda: [(_FUZZ / "seeds/fio_output.json").read_text()],
    "guest_order": _orders,
    "guest_records": _records,
    "host_file": _host_files,
    "host_setting": _hosts,
    "job_file": _jobs,
    "scheduler_spec": _schedulers,
    "trace_any": _traces,
    "trace_events": _event_traces,
    "trace_rows": _row_traces,
    # Python's targets.
    "apply_record": _applied,
    "boot_files": _boot,
    "disk_names": _disk_names,
    "disk_spec": _specs_of_disks,
    "export": lambda: [(_FUZZ / "seeds/export.json").read_bytes()],
    "fleet_answer": _answers,
    "fleet_hosts": _fleets,
    "job_change": _changes,
    "journal_record": lambda: [journal_seed("disk"), journal_seed("files")],
    "kernel_patch": _patches,
    "kernel_record": _kernel_records,
    "kernel_scheduler": lambda: [*_schedulers(), "bfq:low_latency=0@mine", "mine:x=1"],
    "kernel_tables": _kernel_tables,
    "option": _options,
    "store_document": _documents,
    "study": _studies,
    "tuned_profile": _tuned,
    "udev_rules": _rules,
    "workload_spec": _specs_of_workloads,
}
RUST = frozenset(list(_SEEDS)[: list(_SEEDS).index("apply_record")])
"""The targets of ``fuzz/oracles``."""


@cache
def _job_words() -> list[str]:
    rows = _core.workload_options()
    names = [name for row in rows for name in (row.name, *row.aliases)]
    values = {word for row in rows for word in re.split(r"[, ]+", row.takes) if word}
    return [*(f"\n{name}=" for name in names), *sorted(values)]


def _disk_words() -> list[str]:
    rows = [row for table in _core.disk_keys().values() for row in table]
    return [
        *(f"\n{row.key} = " for row in rows),
        "[calibrated]",
        "[checked]",
        "[ranges]",
        "[",
        "]",
        "1e300",
        "nan",
    ]


def _study_words() -> list[str]:
    rows = [*keys.STUDY, *keys.KERNEL, *keys.PART, *(k for c in keys.CLAIMS.values() for k in c)]
    tables = ["\n[[part]]\n", "\n[[kernel]]\n", "\n[[part.claim]]\n"]
    return [*tables, *(f"\n{row.name} = " for row in rows), *METRICS, *keys.CLAIMS]


def _fleet_words() -> list[str]:
    tables = (fleet_keys.FILE, fleet_keys.HOSTS, fleet_keys.LOAD)
    return [*(key.name for table in tables for key in table), *fleet_keys.OPTIONS]


def _rule_words() -> list[str]:
    places = ["{queue/scheduler}", "{program}", "%k", "$attr{size}", "\\\n", 'i"', 'e"\\x41']
    return [*sorted(LOOKED_AT | SET), *places, '=="', '!="', '+="', ':="']


def _option_words() -> list[str]:
    return [*SETTABLE, *programs.NAMES, *(f"{name}\n" for name in ("host", "apply", "set"))]


_TABLES: dict[str, Callable[[], list[str]]] = {
    "job_file": _job_words,
    "job_change": _job_words,
    "workload_spec": lambda: [*(word.strip() for word in _job_words()), *programs.NAMES],
    "disk_file": _disk_words,
    "disk_override": lambda: [word.replace(" ", "") for word in _disk_words()],
    "disk_spec": lambda: [word.replace(" ", "").strip() for word in _disk_words()],
    "study": _study_words,
    "fleet_hosts": _fleet_words,
    "udev_rules": _rule_words,
    "option": _option_words,
}
