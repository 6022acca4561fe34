"""Kernels as external functions of CasADi: values, Jacobians by entries, what optimisers do with them."""

from __future__ import annotations

import ctypes
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError, KernelError
from linkwork.functions.export.casadi_external import EntryJacobians
from linkwork.kernels.calls.stub_library import elf
from linkwork.kernels.codegen.target import Target
from linkwork.model import Builder
from linkwork.robots.mechanisms import chain, rod
from linkwork.system.code import addresses, architecture

casadi = pytest.importorskip("casadi")

FREE = 1e3 * np.finfo(float).eps


def flier() -> lw.Model:
    """A free body with two hinges, which may be held at two points."""
    b = Builder("flier")
    b.link("trunk", joint=lw.joints.Free(), inertia=rod(3.0, (0.3, 0.1, 0.2), 0.1), actuated=False)
    b.link("arm", "trunk", lw.joints.Revolute("y"), inertia=rod(1.0, (0, 0, -0.4), 0.05))
    b.link("hand", "arm", lw.joints.Spherical(), inertia=rod(0.5, (0, 0.1, -0.3), 0.05))
    b.frame("tip", "hand", lw.Placement.at((0, 0.1, -0.3)))
    return b.build().with_constraints(lw.point("tip"))


def state(model: lw.Model, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [model.random_q(seed), rng.standard_normal(model.nv), rng.standard_normal(model.nv)]


def rates(model: lw.Model, q: np.ndarray) -> np.ndarray:
    """R, column by column, by differences along `integrate`, which is exact to first order."""
    move, h = lw.integrate(model), 1e-6
    steps = [(move(q, h * e).q_next - move(q, -h * e).q_next) / (2 * h) for e in np.eye(model.nv)]
    return np.array(steps).T


def close(x, y, factor: float = 1.0) -> bool:
    x, y = np.array(x), np.array(y)
    return bool(np.abs(x - y).max() <= factor * FREE * (1 + np.abs(y).max()))


def test_values_and_derivatives_are_those_of_the_kernel() -> None:
    fd, x = lw.forward_dynamics(chain(3)), state(chain(3))
    theirs, ours = fd.casadi_external(), fd.derivatives()(*x)
    assert close(theirs(*x), ours.a[:, None])
    found = theirs.jacobian()(*x, 0)
    for block, wanted in zip(found, (ours.da_dq, ours.da_dv, ours.da_dtau), strict=True):
        assert close(block, wanted)
    assert theirs.name_in() == ["q", "v", "tau"]
    assert theirs.name_out() == ["a"]


def test_matrices_and_what_is_always_zero() -> None:
    """M of a chain whose first joint turns about z: CasADi sees the zeros, and columns before rows."""
    model = chain(3)
    q = model.random_q(1)
    theirs, M = lw.mass_matrix(model).casadi_external(), lw.mass_matrix(model)(q).M
    assert close(theirs(q), M)
    assert theirs.nnz_out(0) == np.count_nonzero(M)
    slopes = np.array(theirs.jacobian()(q, 0)).reshape(3, 3, 3, order="F")
    assert close(slopes, lw.mass_matrix(model).derivatives()(q).dM_dq)


@pytest.mark.parametrize("length", [1.0, 1.7])
def test_derivatives_by_quaternions(length: float) -> None:
    """By entries, where the quaternion is divided by its length: along changes that joints can make, those of ours."""
    model = flier()
    fd, (q, v, tau) = lw.forward_dynamics(model, modes=True), state(model)
    theirs, ours = fd.casadi_external(), fd.derivatives()(q, v, tau)
    scaled = q.copy()
    for part in (slice(3, 7), slice(8, 12)):
        scaled[part] *= length
    x = scaled, v, tau, np.ones(1)
    a, lam = theirs(*x)
    assert close(a, fd(q, v, tau).a[:, None], 1e4)
    found, R = theirs.jacobian()(*x, a, lam), rates(model, q)
    names = theirs.jacobian().name_out()
    by_q = np.array(found[names.index("jac_a_q")])
    for part in (slice(3, 7), slice(8, 12)):
        assert np.abs(by_q[:, part] @ q[part]).max() < 1e-9  # not by the length
        R[part] *= length
    assert np.allclose(by_q @ R, ours.da_dq, rtol=0, atol=1e-8 * np.abs(ours.da_dq).max())
    assert close(found[names.index("jac_a_tau")], ours.da_dtau)
    assert close(found[names.index("jac_lam_v")], ours.dlam_dv)
    assert found[names.index("jac_a_active")].nnz() == 0


def test_columns_by_products_of_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """As larger robots have them: the same derivatives as by straight-line code."""
    model = flier()
    fd, x = lw.forward_dynamics(model, modes=True), state(model)
    made = []
    for by_products in (False, True):
        monkeypatch.setattr(EntryJacobians, "_by_products", by_products)
        made.append(EntryJacobians(fd, ("q", "v", "tau")))
        made[-1]._identity = None  # not that from the cache
    straight, products = (d(*x) for d in made)
    assert products.da_dq.shape == (model.nv, model.nq)
    for name in straight._fields:
        assert close(getattr(products, name), getattr(straight, name), 1e3), name


def test_a_step_is_linearised_by_one_kernel() -> None:
    model = flier()
    step, (q, v, u) = lw.discrete_step(model, dt=0.01, modes=True), state(model)
    theirs, ours = step.casadi_external(), step.linearize(q, v, u, np.ones(1))
    there, fast, lam = theirs(q, v, u, 1.0)
    assert close(there, ours.q[:, None], 1e4)
    assert close(fast, ours.v[:, None], 1e4)
    assert lam.shape == (3, 1)
    found = dict(zip(theirs.jacobian().name_out(), theirs.jacobian()(q, v, u, 1.0, 0, 0, 0), strict=True))
    assert close(found["jac_v_next_u"], ours.B[model.nv :])
    n, R, after = model.nv, rates(model, q), rates(model, ours.q)
    assert np.allclose(after @ ours.A[:n, :n], np.array(found["jac_q_next_q"]) @ R, atol=1e-8)
    assert np.allclose(ours.A[n:, :n], np.array(found["jac_v_next_q"]) @ R, atol=1e-7)
    assert close(found["jac_v_next_v"], ours.A[n:, n:])


def test_a_step_in_parts_has_the_same_jacobians(monkeypatch: pytest.MonkeyPatch) -> None:
    """As steps of humanoids are: dynamics and integrator apart, multiplied by CasADi."""
    model = flier()
    x, together = (*state(model), 1.0), lw.discrete_step(model, dt=0.01, modes=True).casadi_external()
    monkeypatch.setattr("linkwork.simulation.optimal_control.discrete_step.APART_FROM", 0)
    apart = lw.discrete_step(model, dt=0.01, modes=True).casadi_external(gauss_newton=True)
    one, other = (f.jacobian()(*x, *f(*x)) for f in (together, apart))
    for a, b in zip(one, other, strict=True):
        assert close(a, b, 1e3)


def test_actuators_with_servos() -> None:
    model = chain(2).with_actuators(lw.PositionServo("link1_joint", 30.0), lw.Motor("link2_joint"))
    step, (q, v, _) = lw.discrete_step(model, dt=0.01, actuators=True), state(model)
    u = np.array([0.2, -0.1])
    theirs, ours = step.casadi_external(), step.linearize(q, v, u)
    assert close(casadi.vertcat(*theirs(q, v, u)), np.concatenate([ours.q, ours.v])[:, None])
    found = theirs.jacobian()(q, v, u, 0, 0)
    assert close(casadi.blockcat([found[:3], found[3:]]), np.hstack([ours.A, ours.B]))


def test_parameters_and_constants() -> None:
    """Matrices as inputs, and derivatives by some inputs only."""
    model = chain(2)
    fd = lw.forward_dynamics(model, parameters=("gravity",))
    (q, v, tau), g = state(model), np.array([1.0, 2.0, -5.0])
    theirs = fd.casadi_external(wrt=("q", "gravity"))
    assert close(theirs(q, v, tau, g), fd(q, v, tau, gravity=g).a[:, None])
    found = theirs.jacobian()(q, v, tau, g, 0)
    assert close(found[3], fd.derivatives(["gravity"])(q, v, tau, gravity=g).da_dgravity)
    assert found[1].nnz() == found[2].nnz() == 0
    with pytest.raises(lw.LinkworkError, match="has derivatives"):
        fd.casadi_external(wrt=("speed",))


def test_threads_share_no_memory() -> None:
    model = chain(3)
    fd, x = lw.forward_dynamics(model), [np.array([state(model, k)[i] for k in range(64)]) for i in range(3)]
    many = fd.casadi_external().map(64, "thread", 2)
    assert close(many(*(y.T for y in x)), fd(*x).a.T)


@pytest.mark.parametrize("solver", ["ipopt", "fatrop"])
def test_optimisers_find_the_same_plan(solver: str) -> None:
    """A chain is brought to rest: by Gauss and Newton, and (ipopt) by its own approximation of the Hessian."""
    if not casadi.has_nlpsol(solver):
        pytest.skip(f"this CasADi has no {solver}")
    model, T, n = chain(2), 6, 2
    step = lw.discrete_step(model, dt=0.02).casadi_external(gauss_newton=True)
    w = casadi.MX.sym("w", T * 3 * n + 2 * n)
    x = [w[6 * k : 6 * k + 4] for k in range(T + 1)]
    u = [w[6 * k + 4 : 6 * k + 6] for k in range(T)]
    gaps = [x[k + 1] - casadi.vertcat(*step(x[k][:n], x[k][n:], u[k])) for k in range(T)]
    gaps.insert(1, x[0] - np.array([0.5, -0.3, 0.1, 0.0]))
    cost = sum(casadi.sumsqr(y) for y in x) + 1e-3 * sum(casadi.sumsqr(y) for y in u)
    g = casadi.vertcat(*gaps)
    quiet = {"print_level": 0, **({"sb": "yes"} if solver == "ipopt" else {})}
    structure = {"structure_detection": "auto", "equality": [True] * g.shape[0]} if solver == "fatrop" else {}

    def solve(name: str, options: dict) -> np.ndarray:
        made = casadi.nlpsol("plan", name, {"x": w, "f": cost, "g": g}, {"print_time": False, **options})
        found = made(x0=0, lbg=0, ubg=0)
        assert made.stats()["success"]
        assert np.abs(np.array(found["g"])).max() < 1e-6
        return np.array(found["x"])

    plan = solve(solver, {solver: quiet, **structure})
    own = {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory", "tol": 1e-9}
    assert np.abs(plan - solve("ipopt", {"ipopt": own})).max() < 1e-4 * np.abs(plan).max()


def test_what_cannot_be_external() -> None:
    for options in ({"dtype": "float32"}, {"backend": "numpy"}):
        with pytest.raises(InputError, match="backend='kernel' and dtype='float64'"):
            lw.forward_dynamics(chain(2), **options).casadi_external()


def test_a_step_with_parameters() -> None:
    """They are inputs with derivatives: those of `step.vjp`, by inertias as a matrix and by damping."""
    model = chain(3)
    step = lw.discrete_step(model, dt=1e-2, parameters=("inertia", "damping"))
    q, v, u, w = np.random.default_rng(2).normal(size=(4, 3))
    given = {"inertia": model.parameters().inertia, "damping": np.array([0.1, 0.2, 0.3])}
    f = step.casadi_external()
    np.testing.assert_allclose(
        np.array(f(q=q, v=v, u=u, **given)["v_next"])[:, 0], step(q, v, u, **given).v, rtol=1e-12
    )
    slopes, right = f.jacobian()(q=q, v=v, u=u, **given), step.vjp(q, v, u, np.zeros(3), w, **given)
    by = {n: w @ np.array(slopes[f"jac_v_next_{n}"]) for n in ("q", "u", "inertia", "damping")}
    np.testing.assert_allclose(by["q"], right.q, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(by["u"], right.u, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(by["damping"], right.parameters["damping"], rtol=1e-9, atol=1e-9)
    columns = by["inertia"].reshape(10, 3).T  # CasADi counts matrices column by column
    np.testing.assert_allclose(columns, right.parameters["inertia"], rtol=1e-9, atol=1e-9)


def test_a_library_written_byte_by_byte(tmp_path: Path) -> None:
    """The loader finds each of many names, and no others."""
    known = addresses(["sin", "cos", "floor"])
    functions = {f"{name}_{k}": address for name, address in known.items() for k in range(40)}
    path = tmp_path / "jumps.so"
    if sys.platform != "linux":
        pytest.skip("other systems load other formats")
    path.write_bytes(elf(functions, architecture(Target.host().triple)))
    library = ctypes.CDLL(str(path))
    for name in functions:
        function = getattr(library, name)
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
        assert function(0.7) == {"sin": np.sin, "cos": np.cos, "floor": np.floor}[name.split("_")[0]](0.7)
    with pytest.raises(AttributeError):
        library.tan_1  # noqa: B018


def test_where_a_compiler_makes_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on systems that load no ELF; without one, a sentence says so."""
    model = chain(4)
    monkeypatch.setattr("linkwork.kernels.calls.stub_library.LOADS_ELF", False)
    if shutil.which("cc"):
        q = model.random_q(0)
        theirs = lw.mass_matrix(model).casadi_external()
        assert close(theirs(q), lw.mass_matrix(model)(q).M)
        assert theirs.jacobian()(q, 0).shape == (model.nv**2, model.nq)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(KernelError, match="needs a C compiler"):
        lw.integrate(model).casadi_external()


def test_equal_functions_share_machine_code() -> None:
    from linkwork.functions.export.casadi_external import _LOADED

    before = lw.mass_matrix(chain(3)).casadi_external(), len(_LOADED)
    assert lw.mass_matrix(chain(3)).casadi_external() is not before[0]
    assert len(_LOADED) == before[1]
