"""Which worker runs which test."""

from __future__ import annotations

import pytest

from tests import conftest


def test_pytest_xdist_sees_the_groups(request: pytest.FixtureRequest) -> None:
    if not hasattr(request.config, "workerinput"):
        pytest.skip("no workers: run with --numprocesses 2 --dist loadgroup")
    # pytest-xdist appends the group to the name if it was marked in time.
    assert request.node.nodeid.endswith("@test_groups")


@pytest.mark.parametrize(
    ("module", "group"),
    [
        ("test_live_rig", "machine"),
        ("test_live_hostile_jobs", "machine"),
        ("test_apply_plan", "machine"),
        ("test_programs_mariadb", "programs"),
        ("test_statistics", "test_statistics"),
    ],
)
def test_tests_that_change_the_machine_are_one_group(module: str, group: str) -> None:
    assert conftest.group_of(module) == group
