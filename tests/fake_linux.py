"""A fake kernel source that builds at once, and a mirror laid out like Debian's."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from blklab.rigs.kernel.mirror import SUITES

# The targets and the output of Kbuild that blklab relies on. A file `hold` in the source
# keeps the build from ending, once it has begun.
_MAKEFILE = """\
objects := $(patsubst %.c,$(O)/%.o,$(wildcard block/*.c))
.PHONY: allnoconfig linux
allnoconfig:
\tcp $(KCONFIG_ALLCONFIG) $(O)/.config
\tmkdir -p $(O)/include/config && echo 7.3.4 > $(O)/include/config/kernel.release
linux: $(O)/linux
$(O)/linux: $(objects) block/Makefile
\t@echo "  LD      linux"
\t@if [ -e hold ]; then echo begun > $(O)/begun; exec sleep 600; fi
\t@cat $(objects) > $@ && chmod +x $@
$(O)/%.o: %.c
\t@mkdir -p $(dir $@)
\t@echo "  CC      $*.o"
\t@gcc -c -o $@ $<
"""
FILES = {
    "Makefile": _MAKEFILE,
    "Kconfig": "config BLOCK\n",
    "arch/um/Kconfig": "",
    "block/Makefile": "obj-y := elevator.o\nobj-$(CONFIG_MQ_IOSCHED_KYBER) += kyber-iosched.o\n",
    "block/kyber-iosched.c": "int kyber_delay = 0;\nint kyber(void)\n{\n\treturn kyber_delay;\n}\n",
    "block/elevator.c": "int elevator;\n",
    "drivers/gpu/huge.c": "int huge;\n",
    "drivers/gpu/Kconfig": "",
}
PATCH = """\
Let kyber wait.

--- a/block/kyber-iosched.c
+++ b/block/kyber-iosched.c
@@ -1,4 +1,4 @@
-int kyber_delay = 0;
+int kyber_delay = {delay};
 int kyber(void)
 {{
 \treturn kyber_delay;
"""


def write_tree(top: Path) -> Path:
    """The source as a directory."""
    for name, text in FILES.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


def tarball(packing: str = "xz") -> bytes:
    """The source as a tarball with one directory in it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in FILES.items():
            member = tarfile.TarInfo(f"linux-source-7.3/{name}")
            # An old date, as in any release: objects are newer.
            member.size, member.mtime = len(text), 1_000_000_000
            tar.addfile(member, io.BytesIO(text.encode()))
    return lzma.compress(out.getvalue()) if packing == "xz" else gzip.compress(out.getvalue())


def package() -> bytes:
    """A Debian package with the tarball in it: deb(5)."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as tar:
        for name, text in (
            ("./usr/share/doc/copyright", b"GPL-2"),
            ("./usr/src/linux-source-7.3.tar.xz", tarball()),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    members = [("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), ("data.tar.xz", b"")]
    members[2] = ("data.tar.xz", data.getvalue())
    out = b"!<arch>\n"
    for name, text in members:
        head = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(text):<10}`\n"
        out += head.encode() + text + b"\n" * (len(text) % 2)
    return out


@dataclass
class Mirror:
    """A directory laid out as a mirror."""

    top: Path
    versions: dict[str, list[str]] = field(default_factory=dict)
    """Debian's versions per suite."""

    @property
    def address(self) -> str:
        return f"file://{self.top}"

    def path(self, version: str) -> Path:
        return self.top / f"pool/linux-source_{version}_all.deb"

    def write(self) -> None:
        """Writes all files; suites without packages are empty."""
        content = package()
        for suite in SUITES:
            stanzas = ["Package: apt\nVersion: 1\n"]
            for version in self.versions.get(suite, []):
                series = ".".join(version.split(".")[:2])
                file = self.path(version)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                stanzas.append(
                    f"Package: linux-source-{series}\nVersion: {version}\n"
                    f"Filename: {file.relative_to(self.top)}\nSize: {len(content)}\n"
                    f"SHA256: {hashlib.sha256(content).hexdigest()}\n"
                )
            index = lzma.compress("\n".join(stanzas).encode())
            digest = hashlib.sha256(index).hexdigest()
            place = self.top / f"dists/{suite}/main/binary-amd64/by-hash/SHA256/{digest}"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(index)
            (self.top / f"dists/{suite}/InRelease").write_text(
                f"SHA256:\n {digest} {len(index)} main/binary-amd64/Packages.xz\n"
            )
