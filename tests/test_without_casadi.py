"""Linkwork without CasADi: all runs but what is for users of CasADi, and that says what to install."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

NO_ROBOT = 77
"""The exit code of a task whose robot is not installed."""

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "casadi":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Blocked())
try:
    import casadi
except ImportError:
    pass
else:
    raise AssertionError("casadi is there")
import numpy as np, linkwork as lw
from linkwork.errors import MissingExtra, NotFound
from linkwork.robots.mechanisms import chain, four_bar
"""

TASKS = {
    "the README": "",
    "closed loops": """
model = four_bar()
q = lw.assemble(model, model.neutral() + 0.1)
assert np.abs(lw.constraint_error(model, backend="numpy")(q, np.zeros(model.nv)).phi).max() <= 1e-12
q, v = lw.random_state(model, 0)
a, lam = lw.forward_dynamics(model)(q, v, np.zeros(model.nv))
run = lw.rollout(model, dt=1e-3, steps=10)(q, v, np.zeros(model.nv))
assert np.isfinite(run.q).all()
""",
    "tello": """
from linkwork.robots.tello import tello
try:
    model = tello()
except NotFound:
    sys.exit(77)
q = lw.assemble(model, model.random_q(0), tolerance=1e-10)
v = lw.project_velocity(model, q, np.ones(model.nv))
for method in ("c_aba", "kkt"):
    a = lw.forward_dynamics(model, method=method, backend="numpy")(q, v, np.zeros(model.nv)).a
    assert np.isfinite(a).all()
assert lw.forward_dynamics(model, method="c_aba").operations > 0
""",
    "a Custom constraint": """
names = chain(3).joint_names[:2]
model = chain(3).with_constraints(lw.Custom(lambda a, b: np.sin(a) - np.hypot(b, 0.5) + 0.6, names))
q = lw.assemble(model, [0.4, 0.2, 0.1])
v, tau = lw.project_velocity(model, q, np.ones(3)), np.zeros(3)
true = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a
fd = lw.forward_dynamics(model)
assert np.allclose(fd(q, v, tau).a, true, rtol=1e-10, atol=1e-10)
assert fd.derivatives()(q, v, tau).da_dq.shape == (3, 3)
assert np.isfinite(lw.simulate(model, q, v, duration=0.01).q).all()
""",
    "derivatives": """
fd = lw.forward_dynamics(chain(3).with_constraints(lw.point("link3")))
x = np.full(3, 0.3), np.ones(3), np.zeros(3)
assert np.isfinite(fd.derivatives()(*x).da_dq).all()
assert np.isfinite(fd.vjp()(*x, np.ones(3), np.ones(3)).g_q).all()
""",
    "C": """
import tempfile
fd = lw.forward_dynamics(chain(3))
assert "double" in fd.c_source()
with tempfile.TemporaryDirectory() as folder:
    assert len(fd.export(folder)) == 3
""",
    "the command line": """
import contextlib, io, json
sys.argv = ["linkwork", "doctor", "--json"]
out = io.StringIO()
with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
    from linkwork.cli.main import main
    main()
told = json.loads(out.getvalue())
assert told["extras"]["casadi"] is None
assert told["compile test"]["problem"] is None
""",
    "users of CasADi": """
def phi(a):
    import casadi
    return casadi.sin(a)

model = chain(2)
fd, prox = lw.forward_dynamics(model), lw.forward_dynamics(model.with_constraints(lw.point("link2")), method="prox_ltl")
for call in (
    fd.casadi,
    fd.casadi_external,
    lw.discrete_step(model).casadi_external,
    prox.casadi,
    lambda: lw.forward_dynamics(model, backend="casadi")(*np.zeros((3, 2))),
    lambda: model.with_constraints(lw.Custom(phi, model.joint_names[:1])),
):
    try:
        call()
    except MissingExtra as problem:
        assert "pip install 'linkwork[casadi]'" in str(problem), problem
    else:
        raise AssertionError("no error")
""",
}


@pytest.mark.parametrize("task", TASKS)
def test_without_casadi(task: str) -> None:
    code = TASKS[task]
    if task == "the README":
        (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", BLOCKED + code], capture_output=True, text=True, check=False)
    if done.returncode == NO_ROBOT:
        pytest.skip("the robot 'tello_humanoid' is not installed; LINKWORK_ROBOTS lists where to look")
    assert done.returncode == 0, done.stderr
