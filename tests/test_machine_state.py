"""No user data are lost, whatever happens to blklab or the machine: random sequences.

`BLKLAB_TEST_SEQUENCES` of them; ``make soak`` has many more.
"""

from __future__ import annotations

import os

import pytest

from tests import machine_soak, machine_world

SEQUENCES = int(os.environ.get("BLKLAB_TEST_SEQUENCES", "18"))

pytestmark = pytest.mark.skipif(bool(machine_world.missing()), reason=machine_world.missing())


def test_after_any_sequence_all_is_as_before_or_as_it_was_asked_for() -> None:
    every = list(machine_soak.batches(SEQUENCES, 1, 2, set()))
    figures = machine_soak.total(every)
    assert not (lost := [one.failed for one in every if one.failed]), "\n\n".join(lost)
    assert figures["sequences"] >= SEQUENCES
    # A sequence that does nothing loses nothing.
    assert figures["commands"] > SEQUENCES
    assert figures["signals"] > SEQUENCES // 4
    assert figures["changes from outside"] > SEQUENCES // 4
