"""Without the distribution linkwork-bench, its tests are skipped and say so."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest


class Absent(pytest.Module):
    """A test file that cannot be imported here."""

    def collect(self) -> NoReturn:
        pytest.skip("linkwork-bench is not installed: pip install -e benchmarks", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return None if find_spec("linkwork_bench") else Absent.from_parent(parent, path=module_path)
