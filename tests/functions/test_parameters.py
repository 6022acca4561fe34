"""Parameters as inputs: what a function computes with them is what one of the changed model computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import linkwork as lw
from linkwork.algorithms import registry
from linkwork.errors import InputError, NotFound, UnsupportedError
from linkwork.robots import mechanisms as mech

EPS = np.finfo(float).eps
ALL = ("inertia", "armature", "gravity", "damping", "stiffness", "rest")


def balls() -> lw.Model:
    """A free body with an arm of a ball joint and a slide."""
    b, body = lw.Builder("balls"), lw.BodyInertia(1.5, np.array([0.1, 0.05, -0.1]), np.diag([0.02, 0.03, 0.04]))
    b.link("base", joint="free", inertia=body, armature=[0, 0, 0, 0.1, 0.2, 0.1])
    b.link("arm", "base", "spherical", placement=lw.Placement.at((0.2, 0, 0.1), (0.3, 0.2, 0.1)), inertia=body)
    b.link("rod", "arm", "prismatic", axis="x", placement=lw.Placement.at((0, 0.3, 0)), inertia=body)
    b.link("car", "world", "planar", inertia=body)
    return b.build()


def legs() -> lw.Model:
    """A free body on three legs at odd angles: small, because dozens of kernels are compiled for it."""
    b, body = lw.Builder("legs"), lw.BodyInertia(2.0, np.array([0.05, 0.0, 0.02]), np.diag([0.03, 0.05, 0.04]))
    rod = lw.BodyInertia(0.6, np.array([0.03, 0.05, -0.1]), np.diag([8e-3, 8e-3, 6e-3]))
    below = lw.Placement.at((0, 0, -0.2))
    b.link("trunk", joint="free", inertia=body)
    for k, turn in enumerate((0.3, 2.4, 4.5)):
        hip = lw.Placement.at((0.2 * np.cos(turn), 0.2 * np.sin(turn), 0.0), (0.1, 0.0, turn))
        b.link(f"thigh{k}", "trunk", "revolute", axis="x", placement=hip, inertia=rod)
        b.link(f"shank{k}", f"thigh{k}", "revolute", axis="y", placement=below, inertia=rod)
    for k in (1, 2):
        b.link(f"sole{k}", f"shank{k}", "revolute", axis="x", placement=below, inertia=rod)
        b.frame(f"foot{k}", f"sole{k}", below)
    return b.build()


MODELS = {
    "legs": lambda: legs().with_constraints(lw.point("foot1"), lw.surface("foot2")),
    "four-bar": mech.four_bar,
    "gears": lambda: mech.geared_chain(3),
    "balls": balls,
}


def other_values(model: lw.Model, seed: int = 0) -> dict[str, np.ndarray]:
    """Parameters of bodies that are like the model's, and joints with springs and damping."""
    rng, out = np.random.default_rng(seed), {n: x.copy() for n, x in model.parameters().items()}
    for i, l in enumerate(model.links[1:]):
        com = l.inertia.com + rng.normal(size=3) * 0.02
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        I = turn @ (l.inertia.I * rng.uniform(0.7, 1.5) + 1e-4 * np.eye(3)) @ turn.T
        out["inertia"][i] = lw.BodyInertia(l.inertia.mass * rng.uniform(0.5, 2) + 0.01, com, I).parameters
    for name in ("armature", "damping", "stiffness"):
        out[name] = np.empty(model.nv)
        for i in model.topology.links:
            out[name][model.topology.v_slices[i]] = rng.uniform(0.01, 1.0)
    out["gravity"], out["rest"] = rng.normal(size=3), model.random_q(rng)
    return out


def rebuilt(model: lw.Model, values: dict[str, np.ndarray]) -> lw.Model:
    """The model with these parameters as its own."""
    t, links = model.topology, [model.links[0]]
    for i in t.links:
        v, q, link = t.v_slices[i], t.q_slices[i], model.links[i]
        passive = replace(
            link.passive, damping=values["damping"][v], stiffness=values["stiffness"][v], rest=values["rest"][q]
        )
        body = lw.BodyInertia.from_parameters(values["inertia"][i - 1])
        links.append(replace(link, inertia=body, armature=values["armature"][v], passive=passive))
    return replace(model, links=tuple(links), gravity=values["gravity"])


def state(model: lw.Model, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, v = lw.random_state(model, seed)
    return q, v, np.random.default_rng(seed).normal(size=model.nv)


def close(got, right, model: lw.Model, q: np.ndarray, c: float = 1e3) -> None:
    kappa = float(np.linalg.cond(lw.mass_matrix(model, backend="numpy")(q).M))
    np.testing.assert_allclose(got, right, rtol=0, atol=c * kappa * EPS * (1 + float(np.abs(right).max(initial=0.0))))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", [m.name for m in registry.methods("forward_dynamics").values() if not m.soft])
def test_every_method(name: str, method: str) -> None:
    model = MODELS[name]()
    entry = registry.methods("forward_dynamics")[method]
    if entry.refusal(model) is not None or (name == "four-bar" and not (entry.redundant or entry.local)):
        pytest.skip("not for this model")
    values = other_values(model)
    changed, (q, v, tau) = rebuilt(model, values), state(model)
    given = {n: values[n] for n in ALL}
    right = lw.forward_dynamics(changed, method="kkt", backend="numpy")(q, v, tau).a
    got = lw.forward_dynamics(model, method=method, parameters=ALL, backend="numpy")(q, v, tau, **given)
    np.testing.assert_allclose(got.a, right, rtol=0, atol=1e-6 * (1 + float(np.abs(right).max())))


@pytest.mark.parametrize("name", MODELS)
def test_kernels_for_states_and_batches(name: str) -> None:
    """Rewritten models, lumped inertias: one value for all, one per lane, defaults, float32."""
    model = MODELS[name]()
    many = [other_values(model, s) for s in range(3)]
    q, v, tau = state(model)
    fd = lw.forward_dynamics(model, parameters=ALL)
    right = [lw.forward_dynamics(rebuilt(model, x), method="kkt", backend="numpy")(q, v, tau).a for x in many]
    for x, a in zip(many, right, strict=True):
        np.testing.assert_allclose(fd(q, v, tau, **{n: x[n] for n in ALL}).a, a, atol=1e-6 * (1 + np.abs(a).max()))
    lanes = fd(q, v, tau, **{n: np.array([x[n] for x in many]) for n in ALL}).a
    np.testing.assert_allclose(lanes, right, atol=1e-6 * (1 + np.abs(right).max()))
    own = lw.forward_dynamics(model)(q, v, tau).a
    np.testing.assert_allclose(fd(q, v, tau).a, own, atol=1e-8 * (1 + np.abs(own).max()))
    single = lw.forward_dynamics(model, parameters=ALL, dtype="float32")
    got = single(np.float32(q), np.float32(v), np.float32(tau), **{n: np.float32(many[0][n]) for n in ALL})
    assert got.converged
    rounding = 1e3 * float(np.finfo(np.float32).eps)
    np.testing.assert_allclose(got.a, right[0], atol=rounding * (1 + float(np.abs(right[0]).max())))


def test_the_other_functions() -> None:
    tree, gears = balls(), mech.geared_chain(3)
    by_numpy = {"backend": "numpy"}  # what is right: nothing is compiled for it
    for model in (tree, gears):
        values = other_values(model)
        changed, (q, v, a) = rebuilt(model, values), state(model)
        given, mass = {n: values[n] for n in ALL}, {n: values[n] for n in ("inertia", "armature")}
        tau = lw.inverse_dynamics(model, parameters=ALL)(q, v, a, **given).tau
        close(tau, lw.inverse_dynamics(changed, **by_numpy)(q, v, a).tau, changed, q)
        M = lw.mass_matrix(model, parameters=tuple(mass))(q, **mass).M
        close(M, lw.mass_matrix(changed, **by_numpy)(q).M, changed, q)
    model = MODELS["legs"]()
    values = other_values(model)
    changed, (q, v, _) = rebuilt(model, values), state(model)
    mass = {n: values[n] for n in ("inertia", "armature")}
    for method in ("pv", "efpa", "ltl", "kkt_cholesky", "dense"):
        got = lw.delassus(model, method=method, parameters=tuple(mass))(q, **mass).matrix
        close(got, lw.delassus(changed, method="dense", backend="numpy")(q).matrix, changed, q)
    feet, b = (m.without(m.constraints[1].name) for m in (model, changed)), np.linspace(-1, 1, 3)
    one, other = feet
    right = lw.operational_space_inertia(other, method="dense", **by_numpy)(q, b).force
    for method in ("pv_fast", "efpa"):
        got = lw.operational_space_inertia(one, method=method, parameters=tuple(mass))(q, b, **mass).force
        np.testing.assert_allclose(got, right, rtol=1e-6)
    jump = lw.impulse(model, parameters=tuple(mass))(q, v, **mass)
    np.testing.assert_allclose(jump.v_after, lw.impulse(changed, **by_numpy)(q, v).v_after, atol=1e-7)
    a = lw.forward_dynamics(changed, **by_numpy)(q, v, np.zeros(model.nv)).a
    given = {n: values[n] for n in ALL}
    got = lw.constrained_inverse_dynamics(model, parameters=ALL)(q, v, a, **given)
    right = lw.constrained_inverse_dynamics(changed, **by_numpy)(q, v, a).tau
    np.testing.assert_allclose(got.tau, right, atol=1e-6)
    exported = lw.forward_dynamics(balls(), parameters=("gravity",), backend="casadi")
    q, v, tau = state(balls())
    right = lw.forward_dynamics(balls().with_gravity((1, 2, 3)), **by_numpy)(q, v, tau).a
    close(exported(q, v, tau, [1.0, 2.0, 3.0]).a, right, balls(), q)


def test_targets_are_added_to_the_right_hand_sides() -> None:
    model, rng = MODELS["legs"](), np.random.default_rng(0)
    q, v, tau = state(model)
    J = lw.constraint_jacobian(model, backend="numpy")(q).J
    for method in ("pv", "prox_pv", "constrained_aba", "kkt", "pv_early", None):
        fd = lw.forward_dynamics(model, method=method, targets=True)
        rest, wanted = fd(q, v, tau), rng.normal(size=(4, model.rows))
        for k, a, residual in zip(wanted, *(getattr(fd(q, v, tau, wanted), n) for n in ("a", "residual")), strict=True):
            np.testing.assert_allclose(J @ (a - rest.a), k, atol=1e-6)
            assert residual < 1e-6
            assert fd(q, v, tau, k).residual < 1e-6
    assert fd(q, v, tau, targets=wanted[0]).lam.shape == (model.rows,)


def test_softness_as_an_input() -> None:
    model = MODELS["legs"]()
    q, v, tau = state(model)
    soft = lw.forward_dynamics(model, R=1.0, parameters=("softness",))
    for R in (1e-4, 1.0, 1e3):
        right = lw.forward_dynamics(model, R=R)(q, v, tau)
        got = soft(q, v, tau, np.full(model.rows, R))
        close(got.a, right.a, model, q)
        np.testing.assert_allclose(got.residual, right.residual, atol=1e-6)
    with pytest.raises(InputError, match="give R="):
        lw.forward_dynamics(model, parameters=("softness",))


def test_an_inertia_as_input_costs_little() -> None:
    """An eighth more operations on Talos, whose bodies have no symmetry, and a fifth to look whether bodies can have
    these inertias."""
    try:
        model, most = lw.load("talos_reduced", base="free", passive=False), 1.32
    except lw.LinkworkError:
        model, most = mech.humanoid(), 1.9  # of boxes, whose constants are mostly zeros
    counts = [lw.forward_dynamics(model, method="aba", parameters=p).operations for p in ((), ("inertia",))]
    assert counts[1] <= most * counts[0]


def test_weightless_links_stay_so() -> None:
    b, body = lw.Builder("held"), lw.BodyInertia(1.0, np.array([0.1, 0.2, 0.0]), 0.01 * np.eye(3))
    b.link("arm", joint="revolute", axis="y", inertia=body, weightless=body)
    model = b.build()
    heavier = lw.BodyInertia(3.0, np.array([0.3, 0.0, 0.1]), 0.02 * np.eye(3))
    x = heavier.parameters[None]
    for backend in ("kernel", "numpy"):
        fd = lw.forward_dynamics(model, parameters=("inertia",), backend=backend)
        assert abs(fd([0.3], [0.0], [0.0], x).a[0]) < 1e-12
    assert np.abs(lw.inverse_dynamics(model, parameters=("inertia",))([0.3], [0.0], [0.0], x).tau).max() < 1e-12


def test_rollouts_with_a_mechanism_per_lane() -> None:
    for model, stable in ((balls(), ALL), (MODELS["legs"](), ALL)):
        many = [other_values(model, s) for s in range(3)]
        q, v, _ = state(model)
        v = 0.1 * v
        given = {n: np.array([x[n] for x in many]) for n in stable}
        options = {"steps": 10, "every": 5, "dt": 5e-4}
        got = lw.rollout(model, parameters=stable, **options)(np.tile(q, (3, 1)), v, **given)
        assert got.ok.all()
        slow = lw.rollout(model, parameters=stable, backend="numpy", **options)(np.tile(q, (3, 1)), v, **given)
        np.testing.assert_allclose(got.q, slow.q, atol=1e-9)
        for b, x in enumerate(many):
            alone = lw.rollout(rebuilt(model, x), backend="numpy", **options)(q, v)
            # steps of joints that turn in space are split with the model's own inertias: equal to the order of a step
            np.testing.assert_allclose(got.q[b], alone.q, atol=2e-4)
    model = mech.arm(4)
    x = other_values(model)
    options = {"steps": 20, "every": 10, "parameters": ("inertia", "damping")}
    got = lw.rollout(model, **options)(model.neutral(), np.ones(4), inertia=x["inertia"], damping=x["damping"])
    same = {**model.parameters(), "inertia": x["inertia"], "damping": x["damping"]}
    alone = lw.rollout(rebuilt(model, same), steps=20, every=10)(model.neutral(), np.ones(4))
    np.testing.assert_allclose(got.q, alone.q, atol=1e-12)


def test_what_is_asked_for_wrongly() -> None:
    model = mech.arm(3)
    with pytest.raises(NotFound, match="inertia"):
        lw.forward_dynamics(model, parameters=("inertias",))
    with pytest.raises(InputError, match="does not depend on 'gravity'"):
        lw.mass_matrix(model, parameters=("gravity",))
    with pytest.raises(InputError, match="this model has none"):
        lw.forward_dynamics(model, targets=True)
    with pytest.raises(InputError, match=r"\(3, 10\) or \(batch, 3, 10\)"):
        lw.forward_dynamics(model, parameters=("inertia",))(np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(30))
    with pytest.raises(InputError, match="parameters="):
        lw.rollout(model, steps=1)(np.zeros(3), np.zeros(3), damping=1.0)
    held = mech.quadruped().with_constraints(lw.CentreOfMass())
    with pytest.raises(UnsupportedError, match="masses"):
        lw.forward_dynamics(held, parameters=("inertia",))


def test_the_parameters_of_a_model() -> None:
    model = balls().with_damping("arm_joint", 0.3).with_springs("rod_joint", 5.0, 0.1)
    p = model.parameters()
    assert p.inertia.shape == (model.nlinks, 10)
    assert p["damping"].sum() == pytest.approx(0.9)
    assert p.stiffness[9] == 5.0
    assert p.rest[11] == 0.1
    assert set(p) == set(p.units)
    body = lw.BodyInertia.from_parameters(p.inertia[1])
    np.testing.assert_allclose(body.I, model.links[2].inertia.I, atol=1e-15)
    np.testing.assert_allclose(body.com, model.links[2].inertia.com, atol=1e-15)


def _wrong_mass(x: np.ndarray) -> None:
    x[3, 0] *= -1


def _about_the_centre(x: np.ndarray) -> None:
    """Moments about the centre of mass instead of the link's origin, far from each other."""
    x[3, 1:4] = x[3, 0] * np.array([0.0, 2.0, 1.0])


def _another_order(x: np.ndarray) -> None:
    """xx xy xz yy yz zz."""
    x[3, 4:] = x[3, 4:][[0, 1, 3, 2, 4, 5]]


@pytest.mark.parametrize("change", [_wrong_mass, _about_the_centre, _another_order])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_inertias_that_no_body_has_are_refused(change: Any, dtype: str) -> None:
    model = legs().with_constraints(lw.point("foot1"))
    q, v = lw.random_state(model, 1)
    good, rng = model.parameters().inertia, np.random.default_rng(0)
    bad, tau = good.copy(), rng.normal(size=model.nv)
    change(bad)
    f = lw.forward_dynamics(model, method="pv", parameters=("inertia",), dtype=dtype)
    for each in (bad, np.array([good, bad, good])):
        with pytest.raises(InputError, match=rf"link '{model.links[4].name}' a negative"):
            f(q, v, tau, each)
    assert np.isfinite(f(q, v, tau, good).a).all()
    if dtype == "float64":
        with pytest.raises(InputError, match="a negative"):
            lw.rollout(model, dt=1e-3, parameters=("inertia",))(q, v, steps=2, inertia=bad)
        with pytest.raises(InputError, match="a negative"):
            lw.forward_dynamics(model, method="pv", parameters=("inertia",), backend="numpy")(q, v, tau, bad)
        armed = lw.forward_dynamics(model, method="pv", parameters=("armature",))
        with pytest.raises(InputError, match="negative entries"):
            armed(q, v, tau, model.parameters().armature - 0.1)


@pytest.mark.parametrize("method", ["ltl", "pv", "pv_r", "efpa", "kkt_cholesky"])
def test_whatever_factorises_the_mass_matrix_refuses_such_inertias(method: str) -> None:
    """Delassus matrices, operational-space inertias and steps gave numbers of bodies that cannot be."""
    model = mech.chain(3).with_constraints(lw.point("linktip"))
    q, bad = model.random_q(0), model.parameters().inertia
    bad[1, 0] = -1.0
    options: dict[str, Any] = {"parameters": ("inertia",), "backend": "kernel" if method == "pv" else "numpy"}
    f = lw.delassus(model, method=method, **options)
    for each in (bad, np.array([model.parameters().inertia, bad])):
        with pytest.raises(InputError, match="delassus: 'inertia' gives link 'link2' a negative mass"):
            f(q, inertia=each)
    assert np.isfinite(f(q).matrix).all()
    with pytest.raises(InputError, match="link 'link2' a negative mass"):
        lw.operational_space_inertia(model, method=method, **options)(q, np.zeros(3), inertia=bad)
    if method == "pv":
        with pytest.raises(InputError, match="link 'link2' a negative mass"):
            lw.step(model.without_constraints(), [lw.Contact("linktip")], parameters=("inertia",), backend="numpy")(
                q, q, q, 1e-3, inertia=bad
            )
        with pytest.raises(InputError, match="'armature' has negative entries"):
            lw.delassus(model, method=method, parameters=("armature",), backend="numpy")(q, armature=-np.ones(3))


def test_derivatives_refuse_such_inertias_and_what_is_linear_in_them_takes_any() -> None:
    model = mech.chain(3)
    q, v, x = state(model)
    good = model.parameters().inertia
    bad = good.copy()
    bad[1, 0] = -1.0
    fd = lw.forward_dynamics(model, parameters=("inertia",))
    one, none = np.ones(model.nv), np.zeros(0)
    for f, more in ((fd.derivatives(), {}), (fd.jvp(["q"]), {"dq": one}), (fd.vjp(["q"]), {"w_a": one, "w_lam": none})):
        with pytest.raises(InputError, match="link 'link2' a negative mass"):
            f(q=q, v=v, tau=x, inertia=bad, **more)
        assert all(np.isfinite(y).all() for y in f(q=q, v=v, tau=x, inertia=good, **more))
    inverse = lw.inverse_dynamics(model, parameters=("inertia",))
    tau = [inverse(q, v, x, inertia=y).tau for y in (good, bad, 2 * good - bad)]
    np.testing.assert_allclose(tau[1] + tau[2], 2 * tau[0], atol=1e-12 * np.abs(tau).max())


def test_bodies_at_the_edge_of_what_is_possible_are_taken() -> None:
    """Points and rods far from a link's origin, and links without mass: rounding refuses none of them."""
    model, rng = mech.quadruped(), np.random.default_rng(0)
    q, v = lw.random_state(model, 1)
    f = [lw.forward_dynamics(model, method="aba", parameters=("inertia",), dtype=d) for d in ("float64", "float32")]
    for k in range(30):
        x = model.parameters().inertia
        for i in range(1, len(x), 2):  # the other links keep joints from moving nothing
            along = rng.normal(size=3)
            rod = rng.choice([0.0, 1e-3]) * (along @ along * np.eye(3) - np.outer(along, along))
            x[i] = lw.BodyInertia(
                10.0 ** rng.uniform(-4, 2), 10.0 ** rng.uniform(-3, 1) * rng.normal(size=3), rod
            ).parameters
        x[2] = 0.0
        for g in f:
            assert np.isfinite(g(q, v, np.zeros(model.nv), x).a).all(), k


def rows_on_links() -> tuple[lw.Model, np.ndarray]:
    """Rows over one link and over two, and other numbers for them."""
    rng = np.random.default_rng(4)
    model = legs().with_constraints(
        lw.LinkRows({"shank0": rng.normal(size=(2, 6))}, name="one"),
        lw.point("foot1"),
        lw.LinkRows({l: rng.normal(size=(2, 6)) for l in ("shank1", "shank2")}, name="two"),
    )
    return model, rng.normal(size=model.parameters().link_rows.shape)


def with_link_rows(model: lw.Model, K: np.ndarray) -> lw.Model:
    one, point, two = model.constraints
    (a,), (b, c) = one.K, two.K
    rows = replace(one, K={a: K[:2]}), point, replace(two, K={b: K[2:4], c: K[4:]})
    return model.without_constraints().with_constraints(*rows)


@pytest.mark.parametrize("method", ["pv", "prox_pv", "lcaba", "kkt", "ltl", "prox_bbo", None])
def test_numbers_of_link_rows_as_inputs(method: str | None) -> None:
    """One kernel for all K: one for all states, one for each; in rewritten frames, with the right residual."""
    model, K = rows_on_links()
    np.testing.assert_array_equal(model.parameters().link_rows[:2], model.constraints[0].K["shank0"])
    q, v, tau = state(model)
    fd = lw.forward_dynamics(model, method=method, parameters=("link_rows",))
    right = lw.forward_dynamics(with_link_rows(model, K), method="kkt", backend="numpy")(q, v, tau)
    for got in (
        fd(q, v, tau, link_rows=K),
        lw.forward_dynamics(model, method=method, parameters=("link_rows",), backend="numpy")(q, v, tau, K),
    ):
        np.testing.assert_allclose(got.a, right.a, atol=1e-7 * (1 + np.abs(right.a).max()))
        assert got.residual < 1e-6 * (1 + np.abs(right.a).max())
    own = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau)
    np.testing.assert_allclose(fd(q, v, tau).a, own.a, atol=1e-7 * (1 + np.abs(own.a).max()))
    both = fd(q, v, tau, link_rows=np.array([K, model.parameters().link_rows]))
    np.testing.assert_allclose(both.a, [right.a, own.a], atol=1e-7 * (1 + np.abs(right.a).max()))
    assert (both.residual < 1e-6 * (1 + np.abs(right.a).max())).all()


def test_numbers_of_link_rows_elsewhere() -> None:
    model, K = rows_on_links()
    q, v, tau = state(model)
    right = lw.delassus(with_link_rows(model, K), method="dense", backend="numpy")(q).matrix
    for method in ("pv", "dense", "ltl"):
        got = lw.delassus(model, method=method, parameters=("link_rows",))(q, K).matrix
        np.testing.assert_allclose(got, right, atol=1e-8 * np.abs(right).max())
    pv = {"method": "pv", "backend": "numpy"}
    D = lw.forward_dynamics(model, parameters=("link_rows",), **pv).derivatives()(q, v, tau, link_rows=K)
    by_q = lw.forward_dynamics(with_link_rows(model, K), **pv).derivatives()(q, v, tau)
    np.testing.assert_allclose(D.da_dq, by_q.da_dq, atol=1e-6 * (1 + np.abs(by_q.da_dq).max()))
    with pytest.raises(InputError, match="this model has none"):
        lw.forward_dynamics(mech.arm(3), parameters=("link_rows",))
    twice = model.with_constraints(model.constraints[0])
    with pytest.raises(InputError, match="names of their own"):
        lw.forward_dynamics(twice, parameters=("link_rows",))
