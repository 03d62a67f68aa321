"""Control groups: both versions of the kernel's files, and a quota that holds where this machine permits one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .. import cgroups
from ..cgroups import Cgroup

WHY_NOT = cgroups.unavailable_reason()
limitable = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
DEAD = "import os, sys; print(os.getpid())"


def version_1(root: Path) -> Path:
    for controller in ("cpu", "cpuacct"):
        (root / controller).mkdir()
    return root


def version_2(root: Path, enabled: str = "cpu memory") -> Path:
    (root / "cgroup.controllers").write_text("cpu memory\n", encoding="ascii")
    (root / "cgroup.subtree_control").write_text(enabled, encoding="ascii")
    return root


def test_version_1_has_quota_and_period_in_one_hierarchy_and_cpu_time_in_another(tmp_path: Path) -> None:
    group = Cgroup("one", version_1(tmp_path))
    group.create(0.1)
    limits = tmp_path / "cpu/one"
    assert {path.name: path.read_text() for path in limits.iterdir()} == {"cpu.cfs_period_us": "20000", "cpu.cfs_quota_us": "2000"}
    (tmp_path / "cpuacct/one/cpuacct.usage").write_text("1500000000\n", encoding="ascii")
    assert group.cpu_seconds() == 1.5


def test_version_1_may_have_one_folder_for_both(tmp_path: Path) -> None:
    (tmp_path / "cpu,cpuacct").mkdir()
    for controller in ("cpu", "cpuacct"):
        (tmp_path / controller).symlink_to("cpu,cpuacct")
    group = Cgroup("one", tmp_path)
    group.create(0.1)
    (tmp_path / "cpu/one/cpuacct.usage").write_text("7000000\n", encoding="ascii")
    assert group.cpu_seconds() == 0.007


@pytest.mark.parametrize("enabled, after", [("cpu memory", "cpu memory"), ("memory", "+cpu"), ("cpuset", "+cpu")])
def test_version_2_has_one_folder_and_its_controller_is_enabled(tmp_path: Path, enabled: str, after: str) -> None:
    group = Cgroup("one", version_2(tmp_path, enabled))
    group.create(0.25)
    assert (tmp_path / "one/cpu.max").read_text() == "5000 20000"
    assert (tmp_path / "cgroup.subtree_control").read_text() == after
    (tmp_path / "one/cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n", encoding="ascii")
    assert group.cpu_seconds() == 2.5


@pytest.mark.parametrize("build", [version_1, version_2])
def test_a_command_joins_the_group_before_it_runs(tmp_path: Path, build) -> None:
    root = tmp_path / "with space"
    root.mkdir()
    group = Cgroup("one", build(root))
    group.create(1.0)
    ended = subprocess.run(
        group.command([sys.executable, "-c", "import os, sys; print(os.getpid(), sys.argv[1])", "a b"]),
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    process, argument = ended.stdout.split(maxsplit=1)
    assert argument == "a b\n"
    for folder in {group.limits, group.accounts}:
        assert (folder / "cgroup.procs").read_text() == f"{process}\n"


def test_a_command_that_cannot_join_does_not_run(tmp_path: Path) -> None:
    command = Cgroup("absent", version_2(tmp_path)).command(["echo", "ran"])
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode != 0 and ended.stdout == ""


def test_a_machine_without_a_controller_has_a_reason(tmp_path: Path) -> None:
    assert cgroups.unavailable_reason(tmp_path).startswith(f"CPU quotas require root and a writable CPU controller in {tmp_path}: ")


def test_groups_of_ended_runs_are_removed(tmp_path: Path) -> None:
    version_1(tmp_path)
    ended = int(subprocess.run([sys.executable, "-c", DEAD], stdout=subprocess.PIPE, check=True).stdout)
    names = {process: cgroups.NAMES.format(process=process, name="replica-1") for process in (ended, os.getpid(), "other")}
    for name in names.values():
        (tmp_path / "cpu" / name).mkdir()
        (tmp_path / "cpuacct" / name).mkdir()
    remaining = lambda: {path.name for path in tmp_path.glob("cpu*/*")}
    cgroups.sweep(tmp_path)
    assert remaining() == {names[os.getpid()], names["other"]}
    cgroups.remove(os.getpid(), tmp_path)
    assert remaining() == {names["other"]}


@limitable
def test_a_quota_holds_and_its_group_is_removed() -> None:
    with cgroups.limited("test", 0.1) as group:
        process = subprocess.Popen(group.command([sys.executable, "-c", "while True: pass"]))
        try:
            started, before = time.monotonic(), group.cpu_seconds()
            time.sleep(2)
            used = (group.cpu_seconds() - before) / (time.monotonic() - started)
        finally:
            process.kill()
            process.wait()
    # Other processes may leave it less.
    assert 0 < used < 0.12
    assert not group.limits.exists() and not group.accounts.exists()
