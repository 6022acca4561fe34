"""`f.hvp()`: changes of gradients along changes of inputs, against differences of `vjp`, and what they cost."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import linkwork as lw
from helpers import FIVE_POINT, assert_close, constraints_of, derivative, random_model, random_state
from linkwork.errors import UnsupportedError
from linkwork.robots.mechanisms import chain, four_bar

KINDS = ("revolute", "spherical", "universal", "prismatic", "planar")


def judged(f, model, inputs: dict[str, np.ndarray], weights=None, seed: int = 0, kappa: float = 1e4) -> None:
    """hvp against a five-point difference of vjp along random changes of the inputs."""
    rng = np.random.default_rng([seed, 11])
    gradient, product = f.vjp(tuple(inputs)), f.hvp(tuple(inputs))
    w = weights or [rng.normal(size=k) for k in gradient.outputs.values()]
    changes = [rng.normal(size=model.nv if n == "q" else x.size) for n, x in inputs.items()]
    for d, x, n in zip(changes, inputs.values(), inputs, strict=True):
        d *= np.abs(x).ravel() if n in f.defaults else 1.0  # parameters change by their own size
    others = [n for n in f.inputs if n not in inputs and n not in f.defaults]
    assert not others

    def moved(t: float) -> np.ndarray:
        at = {
            n: model.integrate(x, t * d) if n == "q" else x + t * d.reshape(x.shape)
            for (n, x), d in zip(inputs.items(), changes, strict=True)
        }
        named = {n: x for n, x in at.items() if n in f.defaults}
        return np.concatenate(gradient(*(x for n, x in at.items() if n not in f.defaults), *w, **named))

    named = {n: x for n, x in inputs.items() if n in f.defaults}
    found = product(*(x for n, x in inputs.items() if n not in f.defaults), *w, *changes, **named)
    assert found._fields == tuple("h_" + n for n in inputs)
    expected = derivative(moved)
    assert_close(np.concatenate(found), expected, kappa, scale=float(np.abs(moved(0.0)).max()), eps=FIVE_POINT)


def state(model: lw.Model, seed: int) -> dict[str, np.ndarray]:
    return dict(zip(("q", "v", "tau"), random_state(model, seed), strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_trees(seed: int) -> None:
    model, options = random_model(seed, 5, KINDS, base="free" if seed % 2 else "fixed"), {"backend": "numpy"}
    x = state(model, seed)
    judged(lw.forward_dynamics(model, **options), model, x)
    judged(lw.inverse_dynamics(model, **options), model, {"q": x["q"], "v": x["v"], "a": x["tau"]})
    judged(lw.forward_kinematics(model, [model.links[-1].name], **options), model, {"q": x["q"]})


def test_every_type_of_constraint() -> None:
    model = random_model(7, 4, ("revolute", "prismatic"), base="free")  # small: its cost grows with the square
    x = state(model, 1)
    for c in constraints_of(model, 5)[1::2]:
        tied = model.with_constraints(c)
        if np.linalg.cond(lw.constraint_jacobian(tied, backend="numpy")(x["q"]).J) > 1e6:
            continue  # open, and redundant: its rows contradict each other
        judged(lw.forward_dynamics(tied, method="prox_ltl", backend="numpy"), tied, x, kappa=1e6)


def test_stabilised_soft_and_relations_of_the_users() -> None:
    model = chain(4, base="free")
    pull = lw.Stabilisation()
    tied = model.with_constraints(
        lw.point("link4", stabilisation=pull),
        lw.Custom(lambda a, b: np.sin(a) * b, model.joint_names[1:3], stabilisation=pull),
    )
    x = state(tied, 3)
    judged(lw.forward_dynamics(tied, backend="numpy"), tied, x)
    judged(lw.forward_dynamics(tied, R=0.1, backend="numpy"), tied, x)
    judged(lw.impulse(tied, backend="numpy"), tied, {n: x[n] for n in ("q", "v")})


def test_parameters() -> None:
    model = chain(5).with_armature("link2_joint", 0.1).with_constraints(lw.point("link5"))
    x = state(model, 4)
    groups = ("inertia", "armature", "gravity")
    given = {n: value for n, value in model.parameters().items() if n in groups}
    judged(lw.forward_dynamics(model, parameters=groups, backend="numpy"), model, x | given)


def test_redundant_rows() -> None:
    """For weights of accelerations: forces of redundant rows are not unique."""
    model = four_bar()
    q, _ = lw.random_state(model, 2)
    f, rng = lw.forward_dynamics(model, backend="numpy"), np.random.default_rng(0)
    w, zero, tau = rng.normal(size=3), np.zeros(model.rows), rng.normal(size=3)
    along = lw.project_velocity(model, q, rng.normal(size=3))  # a change that keeps the loop closed

    def moved(t: float) -> np.ndarray:
        at = lw.assemble(model, model.integrate(q, t * along), tolerance=1e-13)
        return f.vjp(("tau",))(q=at, v=np.zeros(3), tau=tau, w_a=w, w_lam=zero).g_tau

    found = f.hvp(("q", "tau"))(q, np.zeros(3), tau, w, zero, along, np.zeros(3)).h_tau
    assert np.isfinite(found).all()
    assert_close(found, derivative(moved), 1e6, scale=float(np.abs(found).max()), eps=FIVE_POINT)


def test_in_a_flat_space_it_is_a_hessian() -> None:
    """a' H b = b' H a, for joints whose q is a vector."""
    model = chain(3)
    f, rng = lw.forward_dynamics(model, backend="numpy"), np.random.default_rng(1)
    x = list(state(model, 5).values())
    w, one, two = rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    first, second = (np.concatenate(f.hvp()(*x, w, np.zeros(0), *d)) for d in (one, two))
    assert_close(two.ravel() @ first, one.ravel() @ second, 1e3, scale=float(np.abs(first).max()))


def test_compiled_batched_and_pickled() -> None:
    model = chain(5).with_constraints(lw.point("link5"))
    h, reference = lw.forward_dynamics(model).hvp(), lw.forward_dynamics(model, backend="numpy").hvp()
    given = [np.random.default_rng(k).normal(size=(5, n)) for k, n in enumerate(h.inputs.values())]
    many, one = h(*given), h(*(x[2] for x in given))
    for batch, single, true in zip(many, one, reference(*(x[2] for x in given)), strict=True):
        scale = float(np.abs(true).max())
        assert_close(batch[2], true, 1e4, scale=scale)
        assert_close(single, true, 1e4, scale=scale)
    again = pickle.loads(pickle.dumps(h))
    assert all(np.array_equal(a, b) for a, b in zip(again(*given), many, strict=True))


def test_what_it_costs() -> None:
    """Two solves and a tangent of each sweep: less than three times `vjp`, eight times the function."""
    model = chain(12, base="free")
    for f in (lw.forward_dynamics(model), lw.forward_dynamics(model.with_constraints(lw.surface("link12")))):
        assert f.hvp().operations <= 3 * f.vjp().operations
        assert f.hvp().operations <= 8 * f.operations


def test_no_third_order() -> None:
    with pytest.raises(UnsupportedError, match="derivatives of derivatives"):
        lw.forward_dynamics(chain(2)).hvp().vjp()
