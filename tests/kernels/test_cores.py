"""Cores that a process may use: by affinity, and by the time that its container has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from linkwork.system.cores import cores, quota, threads

HERE = "/docker/abc"


def container(root: Path, groups: str, files: dict[str, str]) -> Path:
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("groups", "files", "right"),
    [
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "max 100000\n"}, float("inf")),
        (
            f"0::{HERE}\n",
            {f"sys/fs/cgroup{HERE}/cpu.max": "400000 100000\n", "sys/fs/cgroup/docker/cpu.max": "200000 100000"},
            2.0,
        ),
        (
            f"4:cpu,cpuacct:{HERE}\n1:memory:/x\n",
            {
                f"sys/fs/cgroup/cpu,cpuacct{HERE}/cpu.cfs_quota_us": "300000\n",
                f"sys/fs/cgroup/cpu,cpuacct{HERE}/cpu.cfs_period_us": "100000\n",
            },
            3.0,
        ),
        (
            f"4:cpu:{HERE}\n",
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"},
            0.5,
        ),
        (
            "4:cpu:/\n",
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"},
            float("inf"),
        ),
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "nonsense\n"}, float("inf")),
    ],
)
def test_quotas_of_control_groups(tmp_path: Path, groups: str, files: dict[str, str], right: float) -> None:
    assert quota(container(tmp_path, groups, files)) == right


def test_there_is_no_quota_without_groups(tmp_path: Path) -> None:
    assert quota(tmp_path) == float("inf")


@pytest.mark.parametrize(("share", "right"), [(0.5, 1), (1.5, 1), (2.0, 2), (float("inf"), 64), (100.0, 64)])
def test_threads_are_as_many_as_there_is_time_for(share: float, right: int) -> None:
    assert threads(64, share) == right
    assert 1 <= cores() <= (os.cpu_count() or 1)
