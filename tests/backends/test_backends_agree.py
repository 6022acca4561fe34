"""NumPy, CasADi and kernels: every factory, one state and batches, double and single precision; nothing is mutated."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import EPS, assert_close, closed_at, col, cond, constraints_of, random_model, random_state
from linkwork.algorithms import registry
from linkwork.algorithms.common.iteration import Iteration, Prox, run
from linkwork.algorithms.tree.crba import crba
from linkwork.algorithms.tree.energy import kinetic_energy, potential_energy
from linkwork.algorithms.tree.momentum import centre_of_mass, momentum
from linkwork.algorithms.tree.rnea import rnea
from linkwork.backends.numpy_ import NumpyOps
from linkwork.constraints import jacobian, position_error, velocity_error
from linkwork.model import Motion

BATCH = 5


def states(model, seed=0, batch=BATCH):
    each = [random_state(model, seed + k) for k in range(batch)]
    return tuple(np.stack(x) for x in zip(*each, strict=True))


def tree(seed=0):
    """Every joint type in one mechanism, two of some."""
    return random_model(seed, 9)


def loop(seed=1):
    model = random_model(seed, 4, ("revolute",), base="free")
    q, *_ = random_state(model, seed)
    return closed_at(model, q, "f3", "l1", "meet").with_constraints(lw.Hinge("f3", "meet"), lw.point("f2")), q


FACTORIES = {
    "aba": lambda m, **o: lw.forward_dynamics(m, method="aba", external_forces=True, **o),
    "crba_ltl": lambda m, **o: lw.forward_dynamics(m, method="crba_ltl", **o),
    "rnea": lambda m, **o: lw.inverse_dynamics(m, external_forces=True, **o),
    "mass_matrix": lw.mass_matrix,
    "forward_kinematics": lambda m, **o: lw.forward_kinematics(m, ["f3", "l5", "world"], **o),
    "frame_jacobian": lambda m, **o: lw.frame_jacobian(m, ["f3", "world"], **o),
    "frame_acceleration": lambda m, **o: lw.frame_acceleration(m, "l5", reference="world", **o),
    "centroidal_momentum": lw.centroidal_momentum,
    "energy": lw.energy,
    "coriolis_matrix": lw.coriolis_matrix,
    "gravity_forces": lw.gravity_forces,
    "inverse_mass_matrix": lw.inverse_mass_matrix,
    "constraint_jacobian": lw.constraint_jacobian,
    "constraint_error": lw.constraint_error,
    "kkt": lambda m, **o: lw.forward_dynamics(m, method="kkt", **o),
}
CONSTRAINED = ("constraint_jacobian", "constraint_error", "kkt")


def case(name):
    """A model for a factory, its inputs as batches, and the condition number of what it computes."""
    if name in CONSTRAINED:
        model, _ = loop()
    else:
        model = tree()
    q, v, x = states(model)
    f = np.random.default_rng(3).normal(size=(BATCH, 6 * model.nlinks))
    inputs = {
        "aba": (q, v, x, f),
        "rnea": (q, v, x, f),
        "crba_ltl": (q, v, x),
        "kkt": (q, v, x),
        "constraint_error": (q, v),
        "frame_acceleration": (q, v, x),
        "centroidal_momentum": (q, v),
        "energy": (q, v),
        "coriolis_matrix": (q, v),
    }.get(name, (q,))
    M = lw.mass_matrix(model, backend="numpy")(q).M
    kappa = cond(*M) if name in ("aba", "crba_ltl", "kkt", "inverse_mass_matrix") else 1.0
    if name == "kkt":
        J = lw.constraint_jacobian(model, backend="numpy")(q).J
        kappa *= cond(*J) ** 2
    return model, inputs, kappa


@pytest.mark.parametrize("backend", ["casadi", "kernel"])
@pytest.mark.parametrize("name", FACTORIES)
def test_backends_agree(name, backend):
    model, inputs, kappa = case(name)
    expected = FACTORIES[name](model, backend="numpy")(*inputs)
    f = FACTORIES[name](model, backend=backend)
    batch, one = f(*inputs), f(*(x[2] for x in inputs))
    assert type(batch)._fields == expected._fields
    for mine, single, theirs in zip(batch, one, expected, strict=True):
        size = float(np.abs(theirs).max(initial=1.0))
        assert_close(mine, theirs, kappa, scale=size)
        assert_close(single, theirs[2], kappa, scale=size)


@pytest.mark.parametrize("backend", ["numpy", "casadi", "kernel"])
@pytest.mark.parametrize("name", ["aba", "constraint_error"])
def test_single_inputs_are_shared_by_a_batch(name, backend):
    model, inputs, _ = case(name)
    f = FACTORIES[name](model, backend=backend)
    q, *rest = inputs
    shared = f(q, *(x[0] for x in rest))
    spread = f(q, *(np.stack([x[0]] * BATCH) for x in rest))
    for x, y in zip(shared, spread, strict=True):
        assert_close(x, y, c=0)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 17])
def test_kernels_take_batches_of_any_size_and_layout(count):
    model = random_model(2, 5)
    q, v, tau = states(model, batch=count)
    reference, kernel = lw.forward_dynamics(model, backend="casadi"), lw.forward_dynamics(model)
    expected = reference(q, v, tau).a
    kappa = cond(*lw.mass_matrix(model, backend="numpy")(q).M)
    assert_close(kernel(q, v, tau).a, expected, kappa, scale=10.0)
    odd = kernel(np.asfortranarray(q), np.repeat(v, 2, axis=0)[::2], tau[::-1][::-1])
    assert_close(odd.a, expected, kappa, scale=10.0)


@pytest.mark.parametrize("name", [n for n in FACTORIES if n not in ("kkt", "constraint_error")])
def test_single_precision(name):
    model, inputs, kappa = case(name)
    expected = FACTORIES[name](model, backend="numpy")(*inputs)
    got = FACTORIES[name](model, dtype="float32")(*inputs)
    for x, y in zip(got, expected, strict=True):
        assert x.dtype == np.float32
        size = float(np.abs(y).max(initial=1.0))
        assert_close(x, y, kappa, scale=size, eps=float(np.finfo(np.float32).eps))


def test_single_precision_is_single():
    model, inputs, _ = case("mass_matrix")
    exact, rounded = lw.mass_matrix(model)(*inputs).M, lw.mass_matrix(model, dtype="float32")(*inputs).M
    assert np.abs(exact - rounded).max() > 100 * EPS


@pytest.mark.parametrize("seed", range(3))
def test_every_constraint_is_traced_as_it_is_executed(seed):
    model = random_model(seed)
    model = model.with_constraints(*constraints_of(model, seed))
    q, v, _ = random_state(model, seed)
    for factory, inputs in ((lw.constraint_jacobian, (q,)), (lw.constraint_error, (q, v))):
        traced, executed = (factory(model, backend=b)(*inputs) for b in ("casadi", "numpy"))
        for x, y in zip(traced, executed, strict=True):
            assert_close(x, y)


def test_redundant_rows_when_traced():
    """Singular values cannot be traced; the proximal iteration instead gives the same for any rank."""
    model, q = loop()
    model = model.with_constraints(lw.Connect("f3", "meet", name="again"), lw.surface("f2"))
    _, v, tau = random_state(model, 1)
    J = lw.constraint_jacobian(model, backend="numpy")(q).J
    assert np.linalg.matrix_rank(J) < model.rows
    v = v - np.linalg.pinv(J) @ (J @ v)
    mine, theirs = (lw.forward_dynamics(model, method="kkt", backend=b)(q, v, tau) for b in ("casadi", "numpy"))
    kappa = cond(J) ** 2 * cond(lw.mass_matrix(model, backend="numpy")(q).M)
    size = float(np.abs(theirs.a).max())
    assert_close(mine.a, theirs.a, kappa, scale=size)
    assert_close(J.T @ mine.lam, J.T @ theirs.lam, kappa, scale=size)


def test_derivatives_of_the_trace_are_derivatives_of_the_dynamics():
    """The exported CasADi function differentiates: d a / d tau = M^-1."""
    casadi = pytest.importorskip("casadi")
    model = random_model(4, 5)
    q, v, tau = random_state(model, 4)
    f = lw.forward_dynamics(model, method="aba").casadi()
    t = casadi.SX.sym("t", model.nv)
    slope = casadi.Function("slope", [t], [casadi.jacobian(f(q, v, t)[0], t)])
    M = lw.mass_matrix(model, backend="numpy")(q).M
    assert_close(np.array(slope(tau)) @ M, np.eye(model.nv), cond(M))


class Frozen(np.ndarray):
    """An array that nobody may change: what it gives birth to may not be changed either."""

    def _refuse(self, *args):
        raise AssertionError("an algorithm changes an array in place")

    __setitem__ = __iadd__ = __isub__ = __imul__ = __itruediv__ = __imatmul__ = __ipow__ = _refuse


class FrozenOps(NumpyOps):
    """NumPy whose every new matrix is frozen."""

    def constant(self, a):
        return super().constant(a).view(Frozen)

    def zeros(self, rows, cols=1):
        return super().zeros(rows, cols).view(Frozen)

    def eye(self, n):
        return super().eye(n).view(Frozen)

    def matrix(self, rows):
        return super().matrix(rows).view(Frozen)

    def cross(self, a, b):
        return np.asarray(super().cross(np.asarray(a), np.asarray(b))).view(Frozen)


FROZEN = FrozenOps()


def frozen(model, seed=0):
    q, v, tau = (col(x).view(Frozen) for x in random_state(model, seed))
    return Motion(model, q, v, FROZEN), tau


@pytest.mark.parametrize("method", [m.name for m in registry.METHODS if m.task == "forward_dynamics"])
def test_forward_dynamics_mutates_nothing(method):
    entry = registry.methods("forward_dynamics")[method]
    model = random_model(3, 5, base="free")
    if entry.rows != "none":
        model = model.with_constraints(lw.point("f2"), lw.point("f4"))
    m, tau = frozen(model)
    f = col(np.ones(6 * model.nlinks)).view(Frozen)
    options = {} if entry.prox is None else {"mu": 1e6}
    if entry.soft:
        options["R"] = [FROZEN.constant(np.full((c.rows, 1), 1e-3)) for c in model.constraints]
    out = entry.load()(m, tau, f, **options)
    if isinstance(out, Iteration):
        out = run(out, Prox(tolerance=1e-8, max_iterations=3))[:2]
    a = out[0] if isinstance(out, tuple) else out
    assert np.isfinite(a).all()


def test_everything_else_mutates_nothing():
    model = random_model(1)
    model = model.with_constraints(*constraints_of(model, 1))
    m, x = frozen(model)
    for f in (
        crba,
        lambda m: rnea(m, x),
        kinetic_energy,
        potential_energy,
        momentum,
        centre_of_mass,
        jacobian,
        position_error,
        velocity_error,
    ):
        assert np.isfinite(f(m)).all()


def test_the_frozen_backend_would_notice():
    m, _ = frozen(random_model(1, 3))
    V = m.V[1]
    for change in (lambda: V.__setitem__(0, 1.0), lambda: V.__iadd__(1.0), lambda: (V @ V.T).__imul__(2)):
        with pytest.raises(AssertionError, match="in place"):
            change()
