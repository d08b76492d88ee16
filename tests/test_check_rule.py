"""`blklab check-rule`: what udev rules set on modelled disks, and whether that is good."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import blklab
from blklab.api import check_rule as api
from blklab.domain import core, defaults, specs
from blklab.errors import InputError
from blklab.host.udev import judge, modelled

BLKLAB = str(Path(sys.executable).with_name("blklab"))
BY_KIND = """# As distributions ship them.
ACTION=="add|change", KERNEL=="sd[a-z]*", ATTR{queue/rotational}=="1", ATTR{queue/scheduler}="bfq"
ACTION=="add|change", KERNEL=="sd[a-z]*", ATTR{queue/rotational}=="0", \\
  ATTR{queue/scheduler}="mq-deadline", ATTR{queue/iosched/fifo_batch}="4"
ACTION=="add|change", KERNEL=="nvme[0-9]n[0-9]", ATTR{queue/scheduler}="none", \\
  ATTR{queue/rq_affinity}="2"
"""


def of(disk: str, text: str) -> api.OfDisk:
    return api._of_disk(specs.disk(disk), Path("60-io.rules"), text)


def checked(*words: str | Path, code: int) -> subprocess.CompletedProcess[str]:
    command = [BLKLAB, "check-rule", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_a_rule_is_judged_for_each_kind_of_disk() -> None:
    hdd, ssd, nvme = (of(disk, BY_KIND) for disk in ("wd10ezrx", "su800-128gb", "950pro-256gb"))
    assert (hdd.before, hdd.after, hdd.lines) == ("mq-deadline", "bfq", (2,))
    assert (ssd.before, ssd.after, ssd.lines) == ("mq-deadline", "mq-deadline:fifo_batch=4", (3,))
    assert (nvme.before, nvme.after, nvme.lines) == ("none", "none", (5,))
    assert nvme.not_simulated == ("rq_affinity=2",)


@pytest.mark.parametrize(
    ("condition", "disk", "applies"),
    [
        ('ENV{ID_BUS}=="ata"', "wd10ezrx", True),
        ('ENV{ID_BUS}=="ata"', "sas-10k", False),
        ('ENV{ID_ATA_ROTATION_RATE_RPM}!="0", ENV{ID_BUS}=="ata"', "su800-128gb", False),
        ('SUBSYSTEM=="block", ENV{DEVTYPE}=="disk"', "pm983-960gb", True),
        ('SUBSYSTEMS=="scsi"', "sas-10k", True),
        ('SUBSYSTEMS=="nvme"', "sas-10k", False),
        ('ATTR{size}>="1"', "sas-10k", False),
        ('TEST=="queue/zoned"', "sas-10k", True),
    ],
)
def test_conditions_that_rules_use_hold_for_the_right_disks(
    condition: str, disk: str, applies: bool
) -> None:
    assert bool(of(disk, f'{condition}, ATTR{{queue/scheduler}}="kyber"').lines) is applies


def test_a_jump_and_a_later_line_decide_as_in_udev() -> None:
    text = (
        'ATTR{queue/rotational}=="0", GOTO="end"\n'
        'ATTR{queue/scheduler}="kyber", ATTR{queue/iosched/read_lat_nsec}="1000000"\n'
        'ATTR{queue/scheduler}="bfq", ATTR{queue/nr_requests}="256"\n'
        'LABEL="end"\n'
    )
    assert of("wd10ezrx", text).after == "bfq:nr_requests=256", "kyber's settings went with it"
    flash = of("su800-128gb", text)
    assert (flash.after, flash.lines) == ("mq-deadline", ())


def test_a_line_that_depends_on_a_program_is_not_known_and_named() -> None:
    one = of("wd10ezrx", 'PROGRAM=="/bin/is-fast", ATTR{queue/scheduler}="none"\n')
    assert one.after == "mq-deadline" and not one.lines
    assert one.unknown == ("line 1: scheduler=none: PROGRAM is not known",)


def test_each_modelled_disk_has_the_kernels_choice(tmp_path: Path) -> None:
    for number, (name, transport, default) in enumerate(
        [
            ("wd10ezrx", "sata", "mq-deadline"),
            ("950pro-256gb", "nvme", "none"),
            ("950pro-256gb:hw_queues=1", "nvme", "mq-deadline"),
        ]
    ):
        model = specs.disk(name)
        queues = core.disk_model(model).limits.hw_queues
        chosen = defaults.of_linux(model)
        assert chosen == default
        facts = modelled.Facts(
            "A disk", transport, transport == "sata", 1 << 20, queues, default=chosen
        )
        disk, roots = modelled.written(facts, tmp_path / str(number))
        rule = {Path("1.rules"): 'ENV{ID_MODEL}=="A_disk", ATTR{queue/read_ahead_kb}="4"'}
        [effect] = judge.effects(disk, "add", roots, rule, imported=True)
        assert (effect.attribute, effect.value, effect.sure) == ("read_ahead_kb", "4", True)
        assert not judge.effects(disk, "add", roots, rule), "before udev's own rules it is empty"


def test_a_rule_that_makes_a_load_worse_ends_with_1_and_a_good_one_with_0(tmp_path: Path) -> None:
    file = tmp_path / "60-io.rules"
    load = ["--disk", "wd10ezrx", "--workload", "startup-vs-copy", "--repeats", "12"]
    file.write_text('KERNEL=="sd*", ATTR{queue/scheduler}="bfq"\n')
    good = json.loads(checked(file, *load, "--json", code=0).stdout)
    assert good["good"] and good["rows"][0]["change"] == "better"
    assert good["rows"][0]["ratio"]["low"] > 1.0
    file.write_text('KERNEL=="sd*", ATTR{queue/scheduler}="bfq"\nATTR{queue/iosched/x}="\n')
    assert f"udev ignores {file}:2: expected KEY" in checked(file, *load, code=1).stderr
    file.write_text(
        'KERNEL=="sd*", ATTR{queue/scheduler}="mq-deadline", ATTR{queue/wbt_lat_usec}="0"\n'
    )
    done = checked(file, *load, "--objective", "latency", code=1)
    assert "0 of 1 loads get better, 1 worse" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "sets nothing of the queue of any of these disks: wd10ezrx"),
        ('KERNEL=="vd*", ATTR{queue/scheduler}="bfq"\n', "sets nothing of the queue"),
        ('ATTR{queue/scheduler}="adios"\n', "sets the scheduler 'adios', which is not simulated"),
        ('ATTR{queue/scheduler}="bfq", ATTR{queue/iosched/slice_idle}="x"\n', "slice_idle"),
        ('KERNEL=="sd*" ATTR{queue/scheduler="bfq"\n', '60-io.rules:1: expected KEY=="value"'),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "60-io.rules"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        blklab.check_rule(file, disks=["wd10ezrx"], workloads=["randread"])
    assert said in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(InputError, match="No such file"):
        blklab.check_rule(tmp_path / "none.rules")
