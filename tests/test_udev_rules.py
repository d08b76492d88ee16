"""udev's rules: the files in effect, and the certain and uncertain effects of lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.host.udev import judge, patterns
from blklab.host.udev.parse import ordered, parse
from tests.fake_sysfs import Machine

_BFQ = 'ATTR{queue/scheduler}="bfq"'


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def found(machine: Machine, disk: Path, action: str = "add") -> list[tuple[str, str | None, bool]]:
    """Attribute, value, sure."""
    effects = judge.effects(disk, action, machine.roots)
    return [(effect.attribute, effect.value, effect.sure) for effect in effects]


def test_the_first_directory_wins_and_the_names_give_the_order(machine: Machine) -> None:
    machine.write("usr/lib/udev/rules.d/60-io.rules", "# theirs")
    machine.write("lib/udev/rules.d/60-io.rules", "# theirs")
    machine.write("etc/udev/rules.d/60-io.rules", "# mine")
    machine.write("run/udev/rules.d/50-early.rules", "")
    machine.write("usr/lib/udev/rules.d/70-late.rules", "")
    machine.write("etc/udev/rules.d/99-note.txt", "")
    machine.write("etc/udev/rules.d/.61-hidden.rules", "")
    assert [str(path.relative_to(machine.top)) for path in ordered(machine.roots)] == [
        "run/udev/rules.d/50-early.rules",
        "etc/udev/rules.d/60-io.rules",
        "usr/lib/udev/rules.d/70-late.rules",
    ]


def test_a_rule_masked_by_an_empty_file_or_a_link_to_null_does_nothing(machine: Machine) -> None:
    disk = machine.disk("sda")
    for name in ("60-io.rules", "61-io.rules"):
        machine.write(f"usr/lib/udev/rules.d/{name}", _BFQ)
    assert len(found(machine, disk)) == 2
    machine.link("etc/udev/rules.d/60-io.rules", Path("/dev/null"))
    machine.write("etc/udev/rules.d/61-io.rules", "")
    assert found(machine, disk) == []


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (f'KERNEL=="sd[a-z]", ATTR{{queue/rotational}}=="1", {_BFQ}', [("scheduler", "bfq", True)]),
        (f'KERNEL=="sd[a-z]", ATTR{{queue/rotational}}=="0", {_BFQ}', []),
        (f'ENV{{DEVTYPE}}=="disk", {_BFQ}', [("scheduler", "bfq", True)]),
        (f'ACTION=="remove", {_BFQ}', []),
        (f'ATTR{{absent}}!="1", {_BFQ}', []),
        # The active scheduler at the time of the rule is unknown; the list of schedulers is known.
        (f'ATTR{{queue/scheduler}}=="*kyber*", {_BFQ}', [("scheduler", "bfq", True)]),
        (f'ATTR{{queue/scheduler}}=="*[[]kyber[]]*", {_BFQ}', [("scheduler", "bfq", False)]),
        (f'PROGRAM=="/bin/is-it %k", {_BFQ}', [("scheduler", "bfq", False)]),
        (f'PROGRAM=="/bin/is-it %k", KERNEL=="nvme*", {_BFQ}', []),
        (f'ATTRS{{model}}=="ST3*", SUBSYSTEMS=="scsi", {_BFQ}', [("scheduler", "bfq", True)]),
        (f'ATTRS{{model}}=="ST3*", SUBSYSTEMS=="pci", {_BFQ}', []),
        (
            'RUN+="/bin/sh -c \'echo bfq > /sys/block/%k/queue/scheduler\'"',
            [("scheduler", "bfq", True)],
        ),
        ('RUN+="/bin/sh -c \'$env{X} /sys/%p/queue/nr_requests\'"', [("nr_requests", None, False)]),
        ('RUN+="/bin/true"', []),
        ('ATTR{queue/read_ahead_kb}="$result"', [("read_ahead_kb", None, False)]),
        # A program runs last, in whichever line it is.
        (
            'RUN+="/bin/sh -c \'echo none > /sys/%p/queue/scheduler\'"\n' + _BFQ,
            [("scheduler", "bfq", True), ("scheduler", "none", True)],
        ),
        (f'PROGRAM=="x", GOTO="end"\n{_BFQ}\nLABEL="end"\n{_BFQ}',
         [("scheduler", "bfq", False), ("scheduler", "bfq", True)]),
    ],
)  # fmt: skip
def test_a_rules_effect_and_its_certainty_are_determined(
    machine: Machine, rule: str, expected: list[tuple[str, str | None, bool]]
) -> None:
    disk = machine.disk("sda", bus="pci0000:00/ata1/host0/0:0:0:0")
    for parent in ("pci0000:00", "pci0000:00/ata1/host0/0:0:0:0"):
        machine.write(f"sys/devices/{parent}/uevent", "")
    scsi = "sys/devices/pci0000:00/ata1/host0/0:0:0:0"
    machine.write(f"{scsi}/model", "ST3320620AS     ")
    machine.link(f"{scsi}/subsystem", Path("../../../../../bus/scsi"))
    machine.link("sys/devices/pci0000:00/subsystem", Path("../../bus/pci"))
    machine.write("etc/udev/rules.d/60-io.rules", rule)
    assert found(machine, disk) == expected


def test_a_property_is_empty_until_a_rule_could_have_brought_it_in(machine: Machine) -> None:
    disk = machine.disk("sda")
    machine.write("run/udev/data/b8:0", "E:ID_SERIAL=Disk_1")
    rule = f'ENV{{ID_SERIAL}}=="Disk_1", {_BFQ}'
    machine.write("etc/udev/rules.d/50-early.rules", rule)
    machine.write("usr/lib/udev/rules.d/60-storage.rules", 'IMPORT{builtin}="scsi_id"')
    machine.write("etc/udev/rules.d/70-late.rules", rule)
    effects = judge.effects(disk, "add", machine.roots)
    assert [(effect.line.file.name, effect.sure) for effect in effects] == [("70-late.rules", True)]


def test_without_a_database_an_imported_property_is_unknown_and_named(machine: Machine) -> None:
    disk = machine.disk("sda")
    rule = f'IMPORT{{builtin}}="scsi_id"\n\nENV{{ID_SERIAL}}=="Disk_1", {_BFQ}'
    machine.write("etc/udev/rules.d/70-late.rules", rule)
    (effect,) = judge.effects(disk, "add", machine.roots)
    assert (effect.line.number, effect.sure) == (3, False)
    assert effect.why == "ENV{ID_SERIAL} is not known"


def test_a_script_that_names_the_queue_is_found_but_not_believed(machine: Machine) -> None:
    disk = machine.disk("sda")
    machine.write("usr/lib/udev/set-it", "#!/bin/sh\necho bfq > /sys/block/$1/queue/scheduler")
    for named in ("set-it", "/usr/lib/udev/set-it", "//usr/lib/udev/set-it"):
        machine.write("etc/udev/rules.d/60-io.rules", f'RUN+="{named} %k"')
        (effect,) = judge.effects(disk, "add", machine.roots)
        assert (effect.attribute, effect.value, effect.sure) == ("scheduler", None, False)
        assert effect.why.endswith("set-it is a program")


def test_lines_about_queues_that_udev_ignores_are_reported(machine: Machine) -> None:
    machine.write("etc/udev/rules.d/60-io.rules", 'ATTR{queue/scheduler}="bfq\nKERNEL=="sda"')
    machine.write("etc/udev/rules.d/61-io.rules", "nonsense")
    (line,) = judge.broken(machine.roots)
    assert (line.file.name, line.number) == ("60-io.rules", 1)
    assert line.error.startswith('expected KEY=="value", found')


@pytest.mark.parametrize("pattern", ["[z-a]", "[", "a[", "\\", "[]", "[!]", "(", "*" * 50, "|", ""])
def test_an_odd_pattern_is_no_error(pattern: str) -> None:
    assert isinstance(patterns.matches(pattern, "aa"), bool)


@pytest.mark.parametrize(
    ("written", "read"),
    [(r"a\x41\101", "aAA"), (r"\u0041\U00000041", "AA"), (r"\s\t\\", " \t\\"), (r"\"", '"')],
)
def test_escapes_are_read_where_the_rule_says_that_there_are_some(
    machine: Machine, written: str, read: str
) -> None:
    file = machine.write("etc/udev/rules.d/60-io.rules", f'ENV{{X}}=e"{written}"')
    [line] = parse(file)
    assert [token.value for token in line.tokens] == [read]


@pytest.mark.parametrize("wrong", [r"\9", r"\1", r"\²", r"\400", r"\x4", r"\UFFFFFFFF", r"\q"])
def test_a_line_with_an_invalid_escape_is_ignored_as_udev_does(
    machine: Machine, wrong: str
) -> None:
    file = machine.write("etc/udev/rules.d/60-io.rules", f'ENV{{X}}=e"{wrong}"')
    [line] = parse(file)
    assert line.tokens == ()
    assert line.error.endswith("is not an escape sequence")
