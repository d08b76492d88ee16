"""A disk's identity as it reports it, and its transport.

SCSI's page 89h holds a SATA disk's full name as ATA reports it; the SCSI names beside it are cut
off at 16 characters, the firmware at 4 (SAT-3, 12.4.2; ATA8-ACS, 7.16).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from blklab.host import reading

# The first that is found in a device's path in sysfs.
_TRANSPORTS = (
    ("/usb[0-9]", "usb"),
    ("/ata[0-9]", "sata"),
    ("/end_device-", "sas"),
    ("/rport-", "fc"),
    ("/session[0-9]", "iscsi"),
    ("/mmc_host/", "mmc"),
    ("/virtio[0-9]", "virtio"),
    ("/vbd-", "xen"),
    ("/firewire", "firewire"),
    ("/vmbus|/VMBUS", "hyper-v"),
    ("/pci[0-9a-f]{4}:", "pci"),
)
_IDENTIFY = slice(60, 572)
_FIRMWARE_WORDS = slice(46, 54)
_MODEL_WORDS = slice(54, 94)


@dataclass(frozen=True)
class Identity:
    """As the device reports it; empty if it does not."""

    vendor: str
    model: str
    firmware: str
    serial: str
    wwid: str
    transport: str
    """``sata``, ``nvme``, ``sas``, ``usb``, ``virtio`` ...; empty for a device in memory."""
    driver: str


def identity(disk: Path) -> Identity:
    """The identity of the whole disk with this directory in sysfs."""
    disk = disk.resolve()
    device = disk / "device"
    model, firmware = _of_ata(device) or ("", "")
    vendor = reading.value(device / "vendor")
    # On PCI and virtio, the vendor is a number.
    vendor = "" if vendor.startswith("0x") else vendor
    if model:
        vendor = ""
    return Identity(
        vendor=vendor,
        model=model or _first(device, "model", "name"),
        firmware=firmware or _first(device, "firmware_rev", "rev", "fwrev"),
        serial=_serial(disk),
        wwid=_first(disk, "wwid", "device/wwid", "device/cid", "md/uuid", "dm/uuid"),
        transport=_transport(disk),
        driver=reading.link_name(device / "driver"),
    )


def _first(directory: Path, *names: str) -> str:
    return next((text for name in names if (text := reading.value(directory / name))), "")


def _serial(disk: Path) -> str:
    if said := _first(disk, "serial", "device/serial"):
        return said
    try:
        page = (disk / "device/vpd_pg80").read_bytes()
    except OSError:
        return ""
    return page[4:].decode(errors="backslashreplace").strip(" \0")


def _transport(disk: Path) -> str:
    if disk.name.startswith("nvme"):
        kind = _first(disk, "device/transport")
        return "nvme" if kind in ("", "pcie") else f"nvme-{kind}"
    for pattern, name in _TRANSPORTS:
        if re.search(pattern, str(disk)):
            return name
    return ""


def _of_ata(device: Path) -> tuple[str, str] | None:
    """Model and firmware of IDENTIFY DEVICE; its words hold their two characters swapped."""
    try:
        page = (device / "vpd_pg89").read_bytes()
    except OSError:
        return None
    data = page[_IDENTIFY]
    if len(data) < _MODEL_WORDS.stop:
        return None
    return _swapped(data[_MODEL_WORDS]), _swapped(data[_FIRMWARE_WORDS])


def _swapped(words: bytes) -> str:
    pairs = (words[place : place + 2][::-1] for place in range(0, len(words), 2))
    return b"".join(pairs).decode(errors="backslashreplace").strip(" \0")
