"""linkwork bench terms: both sides have the same terms, and nothing is timed that disagrees."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import KernelError
from linkwork.robots.mechanisms import chain
from linkwork_bench import terms
from linkwork_bench.inputs import Robot
from linkwork_bench.peers import Build, Host

STAND_IN = """#!{python}
import os, shutil, sys
if "PIN_TERMS_VALUES" in os.environ:
    shutil.copy({values!r}, os.environ["PIN_TERMS_VALUES"])
else:
    print("time,pinocchio," + sys.argv[sys.argv.index("--only") + 1] + ",chain,none,3,0,2.5")
"""


def test_the_native_side_has_every_name() -> None:
    source = terms.SOURCE.read_text()
    said = set(re.findall(r't\.run\(\s*(?:std::string\()?"([\w-]+)"', source))
    stems = {name for case in terms.cases().values() for name in case.theirs}
    assert all(any(name.startswith(s) for s in said) for name in stems)
    assert all(any(name.startswith(s) for name in stems) for s in said)


def harness(folder: Path, values: np.ndarray) -> Build:
    """A build folder whose program has these values and takes 2.5 us."""
    (folder / "pin_bench").touch()
    values.tofile(folder / "values")
    program = folder / terms.PROGRAM
    program.write_text(STAND_IN.format(python=sys.executable, values=str(folder / "values")))
    program.chmod(0o755)
    return Build.at(folder)


def test_terms_are_compared_and_then_timed(tmp_path: Path) -> None:
    model = chain(3)
    q, v, tau = (np.random.default_rng(k).normal(size=(40, model.nv)) for k in range(3))
    robot = Robot("chain", model, {"none": (), "tip": (lw.point("linktip"),)}, q, v, tau, tmp_path)
    assert terms.frames_of(robot) == ["linktip"]
    right = lw.gravity_forces(model, backend="numpy")(q[::2]).g
    (found,) = terms.measured(robot, ["g"], harness(tmp_path, right), Host(), 1, 0.001)
    assert found.pinocchio == 2.5
    assert found.one_x[0] == pytest.approx(2.5 / found.one)
    assert found.error is not None
    assert found.error < 1e-14
    terms._show([found])
    with pytest.raises(KernelError, match="apart; nothing is timed"):
        terms.measured(robot, ["g"], harness(tmp_path, right + 1e-6), Host(), 1, 0.001)
