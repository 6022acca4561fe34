"""`f.derivatives()`, `f.jvp()`, `f.vjp()`: names, shapes, charts, batches, precision, pickling, errors, products."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

import linkwork as lw
from helpers import FIVE_POINT, assert_close, derivative, random_model, random_state
from linkwork.errors import InputError, LinkworkError, UnsupportedError
from linkwork.functions.differentiation import jacobians
from linkwork.joints import Composite, Prismatic, Revolute, SphericalZYX
from linkwork.robots import mechanisms
from linkwork.robots.mechanisms import chain


@pytest.fixture(scope="module")
def model():
    return random_model(3, 4, ("revolute", "spherical", "universal"), base="free").with_constraints(lw.point("f2"))


@pytest.fixture(scope="module")
def fd(model):
    return lw.forward_dynamics(model, method="prox_ltl")


def by_columns(f, n):
    return np.moveaxis(np.array([derivative(lambda h, e=e: f(h * e)) for e in np.eye(n)]), 0, -1)


def test_names_and_shapes(model, fd):
    q, v, tau = random_state(model, 1)
    r = fd.derivatives()(q, v, tau)
    assert r._fields == ("a", "lam", "da_dq", "da_dv", "da_dtau", "dlam_dq", "dlam_dv", "dlam_dtau")
    assert r.da_dq.shape == (model.nv, model.nv)
    assert r.dlam_dv.shape == (3, model.nv)
    a, lam = fd(q, v, tau)
    assert_close(r.a, a, 1e4, scale=100)
    assert_close(r.lam, lam, 1e4, scale=100)
    some = fd.derivatives(("tau", "q"))(q, v, tau)
    assert some._fields == ("a", "lam", "da_dtau", "da_dq", "dlam_dtau", "dlam_dq")
    assert_close(some.da_dq, r.da_dq, 1e4, scale=100)


def test_batches_equal_single_states(model, fd):
    states = [random_state(model, s) for s in range(5)]
    d = fd.derivatives()
    many = d(*(np.array(x) for x in zip(*states, strict=True)))
    assert many.da_dq.shape == (5, model.nv, model.nv)
    for b, state in enumerate(states):
        for mine, theirs in zip(d(*state), many, strict=True):
            assert_close(mine, theirs[b], 1e4, scale=float(np.abs(mine).max()))


def test_backends_precision_and_pickles(model, fd):
    q, v, tau = random_state(model, 2)
    d = fd.derivatives()
    r = d(q, v, tau)
    reference = lw.forward_dynamics(model, method="prox_ltl", backend="numpy").derivatives()(q, v, tau)
    copy = pickle.loads(pickle.dumps(d))(q, v, tau)
    single = lw.forward_dynamics(model, method="prox_ltl", dtype="float32").derivatives()(*map(np.float32, (q, v, tau)))
    for mine, theirs, same, short in zip(r, reference, copy, single, strict=True):
        scale = float(np.abs(theirs).max())
        assert_close(mine, theirs, 1e4, scale=scale)
        assert np.array_equal(mine, same)
        assert short.dtype == np.float32
        assert np.abs(short - theirs).max() <= 2e-2 * scale


@pytest.mark.parametrize("backend", ["kernel", "numpy"])
def test_products_agree_with_jacobians(model, backend):
    f = lw.forward_dynamics(model, method="prox_ltl", backend=backend)
    q, v, tau = random_state(model, 3)
    rng = np.random.default_rng(0)
    dq, dv, dtau, w = rng.normal(size=(4, model.nv))
    wl = rng.normal(size=3)
    r = f.derivatives()(q, v, tau)
    forward = f.jvp()(q, v, tau, dq, dv, dtau)
    assert forward._fields == ("da", "dlam")
    assert_close(forward.da, r.da_dq @ dq + r.da_dv @ dv + r.da_dtau @ dtau, 1e4, scale=1e3)
    assert_close(forward.dlam, r.dlam_dq @ dq + r.dlam_dv @ dv + r.dlam_dtau @ dtau, 1e4, scale=1e3)
    back = f.vjp()(q, v, tau, w, wl)
    assert back._fields == ("g_q", "g_v", "g_tau")
    for n, g in zip(("q", "v", "tau"), back, strict=True):
        assert_close(g, w @ getattr(r, f"da_d{n}") + wl @ getattr(r, f"dlam_d{n}"), 1e4, scale=1e3)


def test_products_with_loops_and_gears():
    """Accelerations of single joints are quotients: what is made of them must not be simplified to what they came from.

    Along motions that keep the loop closed, where derivatives are unique.
    """
    b = lw.Builder("gear")
    for name in ("one", "other"):
        b.link(name, "world", "revolute", axis="y", inertia=lw.BodyInertia(1.3, (0.1, 0.2, 0.3), 0.02 * np.eye(3)))
    gear = b.build().with_constraints(lw.Coupling("other_joint", {"one_joint": [2.5]}))
    for model in (mechanisms.four_bar(), gear):
        f, rng = lw.forward_dynamics(model), np.random.default_rng(4)
        q, v = lw.random_state(model, seed=3)
        tau, dtau, w, dv = rng.normal(size=(4, model.nv))
        free = np.linalg.svd(lw.constraint_jacobian(model)(q).J)[2][-1]

        def moved(h, model=model, q=q, v=v, free=free, dv=dv):
            at = lw.assemble(model, q + h * free)
            return at, lw.project_velocity(model, at, v + h * dv)

        def solved(h, f=f, moved=moved, tau=tau, dtau=dtau):
            return f(*moved(h), tau + h * dtau).a

        dq, dv_, expected = (derivative(g) for g in (lambda h: moved(h)[0], lambda h: moved(h)[1], solved))
        r, size = f.derivatives()(q, v, tau), float(np.abs(expected).max())
        back = f.vjp()(q, v, tau, w, np.zeros(model.rows))
        assert_close(f.jvp()(q, v, tau, dq, dv_, dtau).da, expected, 1e5, scale=size, eps=FIVE_POINT)
        assert_close(r.da_dq @ dq + r.da_dv @ dv_ + r.da_dtau @ dtau, expected, 1e5, scale=size, eps=FIVE_POINT)
        pulled = back.g_q @ dq + back.g_v @ dv_ + back.g_tau @ dtau
        assert_close(pulled, w @ expected, 1e5, scale=size, eps=FIVE_POINT)


@pytest.mark.parametrize("links", [1, 2, 3])
def test_products_of_short_chains(links):
    """M (1 / M) x is x: values that are held fixed must not cancel against what they were computed from."""
    model = chain(links)
    f = lw.forward_dynamics(model, backend="numpy")
    q, v, tau = random_state(model, 3)
    dq, dv, dtau, w = np.random.default_rng(0).normal(size=(4, model.nv))
    expected = derivative(lambda t: f(q + t * dq, v + t * dv, tau + t * dtau).a)
    size = float(np.abs(expected).max())
    assert_close(f.jvp()(q, v, tau, dq, dv, dtau).da, expected, 1e3, scale=size, eps=FIVE_POINT)
    back = f.vjp()(q, v, tau, w, np.zeros(0))
    assert_close(back.g_q @ dq + back.g_v @ dv + back.g_tau @ dtau, w @ expected, 1e3, scale=size, eps=FIVE_POINT)


def test_products_of_matrices_equal_straight_lines(model, fd, monkeypatch):
    from linkwork.functions.differentiation import jacobians
    from linkwork.kernels.programs.products import ProductProgram

    states = [np.array(x) for x in zip(*(random_state(model, s) for s in range(9)), strict=True)]
    made = []
    for by_products in (False, True):
        monkeypatch.setattr(jacobians.Jacobians, "_by_products", by_products)
        made.append(fd.derivatives())
        made[-1]._identity = None  # or the program of the other one is found by its content
        assert isinstance(made[-1].program, ProductProgram) == by_products
    straight, products = made
    for least in ("STRAIGHT_BATCH", "STRAIGHT_PRODUCT"):
        monkeypatch.setattr(f"linkwork.kernels.programs.products.{least}", 0)
    for one in (states, [x[0] for x in states]):
        for mine, theirs in zip(products(*one), straight(*one), strict=True):
            assert_close(mine, theirs, 1e4, scale=float(np.abs(theirs).max()))
    assert products(*[x[0] for x in states])._fields == straight(*[x[0] for x in states])._fields


TREES = ("revolute", "spherical", "universal")
HELD = {
    "a loop between limbs": lambda m: m.with_constraints(lw.Connect("f3", "f5"), lw.point("f2")),
    "rows of the trunk alone": lambda m: m.with_constraints(lw.point("f2"), lw.point("f8")),
    "redundant": lambda m: m.with_constraints(lw.surface("f4"), lw.point("f4"), lw.surface("f5")),
    "none": lambda m: m,
}


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("base", ["free", "fixed"])
def test_trunk_and_limbs(held, base, monkeypatch):
    """Derivatives by trunk and limbs are those by the factors of the whole matrix, modes included."""
    from linkwork.functions.differentiation import jacobians

    model = HELD[held](random_model(4, 9, TREES, base=base))
    modes = bool(model.rows) and held != "redundant"
    state = random_state(model, 5)
    given = (*state, np.array([1.0, 0.3][: len(model.constraints)])) if modes else state
    made = []
    for by_products in (True, False):
        monkeypatch.setattr(jacobians.Jacobians, "_by_products", by_products)
        f = lw.forward_dynamics(model, backend="numpy", modes=modes, method="prox_ltl" if model.rows else None)
        d = f.derivatives(("q", "v", "tau"))
        d._identity = None
        made.append(d(*given))
    kappa = 1e9 if held == "redundant" else 1e4  # the least singular value that counts; the rows' condition, 230
    for name, mine, theirs in zip(made[0]._fields, *made, strict=True):
        if held != "redundant" or name == "da_dtau":
            assert_close(mine, theirs, kappa, scale=float(np.abs(theirs).max()) if theirs.size else 1.0)


def test_external_forces(model):
    f = lw.forward_dynamics(model, external_forces=True, backend="numpy", method="prox_ltl")
    q, v, tau = random_state(model, 4)
    fext = np.random.default_rng(1).normal(size=6 * model.nlinks)
    r = f.derivatives(("fext", "q"))(q, v, tau, fext)
    expected = by_columns(lambda x: f(q, v, tau, fext + x).a, fext.size)
    assert_close(r.da_dfext, expected, 1e4, scale=10, eps=FIVE_POINT)
    expected = by_columns(lambda x: f(model.integrate(q, x), v, tau, fext).a, model.nv)
    assert_close(r.da_dq, expected, 1e4, scale=float(np.abs(expected).max()), eps=FIVE_POINT)
    free = model.without_constraints()
    inverse = lw.inverse_dynamics(free, external_forces=True, backend="numpy")
    d = inverse.derivatives(("fext", "a"))(q, v, tau, fext)
    assert_close(d.dtau_dfext, by_columns(lambda x: inverse(q, v, tau, fext + x).tau, fext.size), eps=FIVE_POINT)
    assert_close(d.dtau_da, lw.mass_matrix(free, backend="numpy")(q).M, scale=10)


FUNCTIONS = {
    "impulse": partial(lw.impulse, method="prox_ltl", restitution=0.3),
    "kinematics": partial(lw.forward_kinematics, frames=["f1", "f3"]),
    "jacobian": lw.constraint_jacobian,
    "error": lw.constraint_error,
    "delassus": partial(lw.delassus, method="ltl"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_function(model, name):
    f = FUNCTIONS[name](model, backend="numpy")
    q, v, _ = random_state(model, 5)
    given = {"q": q, "v": v} if len(f.inputs) > 1 else {"q": q}
    r = f.derivatives()(**given)
    for n in given:

        def moved(x, k, n=n):
            return np.asarray(f(**{**given, n: model.integrate(q, x) if n == "q" else given[n] + x})[k])

        for k, output in enumerate(f(**given)._fields):
            expected = by_columns(partial(moved, k=k), model.nv)
            found = getattr(r, f"d{output}_d{n}")
            assert_close(found, expected, 1e4, scale=float(np.abs(expected).max()), eps=FIVE_POINT)


def test_gradients_of_matrices_are_flat(model):
    fk = lw.forward_kinematics(model, ["f1", "f3"], backend="numpy")
    q, _, _ = random_state(model, 6)
    w, W = np.random.default_rng(0).normal(size=(2, 3)), np.random.default_rng(1).normal(size=(2, 3, 3))
    r, g = fk.derivatives()(q), fk.vjp()(q, w.ravel(), W.ravel())
    expected = np.einsum("fi,fik->k", w, r.dpositions_dq) + np.einsum("fij,fijk->k", W, r.drotations_dq)
    assert_close(g.g_q, expected, scale=10)


def test_what_cannot_be_is_refused(model, fd):
    with pytest.raises(LinkworkError, match="has derivatives"):
        fd.derivatives(("speed",))
    with pytest.raises(InputError, match="each once"):
        fd.derivatives(("q", "q"))
    with pytest.raises(InputError, match="each once"):
        fd.jvp(())
    with pytest.raises(UnsupportedError, match="CasADi"):
        lw.forward_dynamics(model, backend="casadi").derivatives()
    with pytest.raises(UnsupportedError, match="derivatives of derivatives"):
        fd.derivatives().vjp()
    q, v, tau = random_state(model, 7)
    with pytest.raises(InputError, match="has length 2"):
        fd.derivatives()(np.r_[q[:3], 2 * q[3:7], q[7:]], v, tau)


def test_reverse_products_cost_about_three_functions(model):
    """One more solve and a sweep back, for any number of inputs; less is counted for real robots (tests/counts)."""
    f = lw.forward_dynamics(model.without_constraints())
    assert f.vjp().operations <= 3.5 * f.operations


@pytest.mark.parametrize("joint", [Composite(Revolute("x"), Prismatic("y"), Revolute("z")), SphericalZYX()], ids=str)
def test_joints_whose_subspace_has_a_rate_but_no_slopes(joint):
    """Their subspaces depend on q: equations are differentiated operation by operation."""
    body = lw.BodyInertia(1.3, (0.1, 0.2, 0.05), np.diag([0.02, 0.03, 0.025]))
    b = lw.Builder("composed")
    for name, parent, by in (("base", "world", "free"), ("x", "base", joint), ("y", "x", "revolute")):
        b.link(name, parent, by, placement=lw.Placement.at((0.3, 0.1, 0.2)), inertia=body)
    model = b.build()
    q, v, tau = random_state(model, 5)
    dq, dv, w = np.random.default_rng(6).normal(size=(3, model.nv))

    def moved(f, h):
        return f(model.integrate(q, h * dq), v + h * dv, tau)[0]

    tied, by_numpy = model.with_constraints(lw.point("y")), {"backend": "numpy"}
    for f, first, rows in (
        (lw.forward_dynamics(model, **by_numpy), "a", 0),
        (lw.forward_dynamics(tied, method="pv", **by_numpy), "a", tied.rows),
        (lw.inverse_dynamics(model, **by_numpy), "tau", None),
    ):
        expected = derivative(partial(moved, f))
        r, changes = f.derivatives(("q", "v"))(q, v, tau), f.jvp(("q", "v"))(q, v, tau, dq, dv)
        found = getattr(r, f"d{first}_dq") @ dq + getattr(r, f"d{first}_dv") @ dv
        back = f.vjp(("q", "v"))(q, v, tau, w, *(() if rows is None else (np.zeros(rows),)))
        size = float(np.abs(expected).max())
        assert_close(found, expected, 1e4, scale=size, eps=FIVE_POINT)
        assert_close(changes[0], expected, 1e4, scale=size, eps=FIVE_POINT)
        assert_close(back[0] @ dq + back[1] @ dv, w @ expected, 1e4, scale=size, eps=FIVE_POINT)


def test_derivatives_that_nobody_waits_for_are_refused(monkeypatch):
    """Those of the inverse mass matrix of 67 joints did not end in ten minutes; products with them are quick."""
    monkeypatch.setattr(jacobians, "MOST", 3000)
    minv = lw.inverse_mass_matrix(chain(8))
    with pytest.raises(UnsupportedError, match=r"more than 3000 operations.* jvp\(\) or vjp\(\)"):
        minv.derivatives()(np.zeros(8))
    assert minv.jvp()(np.zeros(8), np.ones(8)).dMinv.shape == (8, 8)
