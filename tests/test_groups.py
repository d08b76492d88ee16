"""Which worker runs which test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import conftest, real_kernel


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


def test_modules_that_need_another_kernel_come_last() -> None:
    needs = ("real_kernel.with_file_systems", "real_kernel.with_nfs")
    modules = {
        path.stem
        for path in Path(__file__).parent.glob("test_*.py")
        if path != Path(__file__) and any(name in path.read_text() for name in needs)
    }
    assert modules <= {*conftest._LAST}
    assert all((Path(__file__).parent / f"{module}.py").exists() for module in conftest._LAST)


def test_a_worker_is_told_which_kernel_was_built(request: pytest.FixtureRequest) -> None:
    if not hasattr(request.config, "workerinput"):
        pytest.skip("no workers: run with --numprocesses 2 --dist loadgroup")
    image = real_kernel.image()
    assert image == real_kernel.built_before
    assert image.is_file()
