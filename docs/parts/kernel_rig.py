"""Examples of the kernel rig, with their output, and the view of a guest."""

from __future__ import annotations

from blklab.rigs.kernel.view import PRIVATE
from parts.text import code, data, table


def kernel_rig_example(name: str) -> str:
    """An example of ``benches/kernel_rig.py`` with its output."""
    lines = []
    for step in data("kernel-rig")["examples"][name]:
        lines += [f"$ {step['command']}", *([step["output"]] if step["output"] else [])]
    return "\n".join(["```text", *lines, "```", ""])


def kernel_rig_file(name: str) -> str:
    """A file that the examples use."""
    return f"```ini\n{data('kernel-rig')['files'][name]}```\n"


def kernel_rig_private() -> str:
    """Names that are empty in a directory shared with a guest."""
    return table(("name", "what is in it"), ((code(name), why) for name, why in PRIVATE.items()))
