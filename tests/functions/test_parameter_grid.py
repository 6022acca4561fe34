"""Every group of parameters with every kind of function: an input that does what the changed model does, or refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError
from linkwork.functions.parameters import GROUPS
from linkwork.functions.terms import TERMS
from linkwork.robots import mechanisms as mech

STEPS, DT, R = 4, 2e-3, 0.3
Values = Mapping[str, np.ndarray]


def machine() -> lw.Model:
    """An arm with all that can be a parameter: springs, a slack tendon, a motor, a servo, friction, rows on a link."""
    model = mech.arm(3).with_damping("link1_joint", 0.2).with_springs("link2_joint", 3.0, 0.1)
    model = model.with_friction("link1_joint", 0.05).with_armature("link3_joint", 0.02)
    model = model.with_tendons(lw.Tendon({"link1_joint": 1.0, "link3_joint": -0.5}, 4.0, 0.1, (-0.02, 0.03)))
    model = model.with_actuators(lw.Motor("link1_joint", gear=2.0), lw.PositionServo("link2_joint", kp=5.0, kd=0.2))
    return model.with_constraints(lw.LinkRows({"link3": [[0.3, 0.1, -0.2, 0.5, 0.4, 1.0]]}, k=[0.2], name="task"))


MODEL = machine()
Q, V, U = np.array([0.3, -0.4, 0.5]), np.array([0.2, 0.5, -0.3]), np.array([0.4, -0.2])
A = np.array([0.5, -0.2, 0.7])


def others() -> dict[str, np.ndarray]:
    """Values of all groups that are not the model's."""
    rng, own = np.random.default_rng(3), dict(MODEL.parameters())
    out = {n: x + rng.uniform(0.05, 0.2, x.shape) for n, x in own.items()}
    out["inertia"] = own["inertia"] * rng.uniform(1.1, 1.4, (MODEL.nlinks, 1))
    out["tendon_rest"] = np.array([[-0.01, 0.01]])  # taut, as the first is
    out["softness"] = np.array([0.7])
    return out


def changed(values: Values) -> lw.Model:
    """The model with these values as its own; softness is not the model's."""
    x, t, links = {**MODEL.parameters(), **values}, MODEL.topology, [MODEL.links[0]]
    for i in t.links:
        v, q, link = t.v_slices[i], t.q_slices[i], MODEL.links[i]
        names = {"damping": v, "stiffness": v, "rest": q}
        passive = replace(link.passive, friction=x["joint_friction"][v], **{n: x[n][at] for n, at in names.items()})
        body = lw.BodyInertia.from_parameters(x["inertia"][i - 1])
        links.append(replace(link, inertia=body, armature=x["armature"][v], passive=passive))
    (rows,), (tendon,) = MODEL.constraints, MODEL.tendons
    tendon = replace(
        tendon,
        stiffness=x["tendon_stiffness"][0],
        damping=x["tendon_damping"][0],
        rest=tuple(x["tendon_rest"][0]),
    )
    each = zip(MODEL.actuators, x["gain"], x["bias"], strict=True)
    return replace(
        MODEL,
        links=tuple(links),
        gravity=x["gravity"],
        constraints=(replace(rows, K={"link3": x["link_rows"]}, k=rows.k + x["targets"]),),
        tendons=(tendon,),
        actuators=tuple(replace(a, gain=g, bias=b) for a, g, b in each),
    )


FORCES = {"gravity", "damping", "stiffness", "rest", "tendon_stiffness", "tendon_damping", "tendon_rest"}
MASS, CONTROL, ROWS = {"inertia", "armature"}, {"gain", "bias"}, {"targets", "link_rows", "softness"}

Call = Callable[[lw.Model, tuple[str, ...], Values, Any], np.ndarray]
"""(model, names of parameters, their values, R) -> numbers."""


def soft(names: tuple[str, ...], r: Any) -> dict[str, Any]:
    """R=, where it is asked for."""
    return {"R": r} if r is not None else {"R": R} if "softness" in names else {}


def dynamics(model: lw.Model, names: tuple[str, ...], r: Any, hard: str, **more: Any) -> Any:
    """Forward dynamics by the method `hard`, unless rows are soft."""
    how = soft(names, r) or {"method": hard}
    return lw.forward_dynamics(model, parameters=names, actuators=True, **how, **more)


def forward(model: lw.Model, names: tuple[str, ...], x: Values, r: Any) -> np.ndarray:
    found = dynamics(model, names, r, "kkt", backend="numpy")(Q, V, U, **x)
    return np.concatenate([found.a, found.lam])


def inverse(model: lw.Model, names: tuple[str, ...], x: Values, r: Any) -> np.ndarray:
    f = lw.inverse_dynamics(model.without_constraints(), parameters=names, backend="numpy")
    return np.asarray(f(Q, V, A, **x).tau)


def rolled(model: lw.Model, names: tuple[str, ...], x: Values, r: Any, **more: Any) -> np.ndarray:
    run = lw.rollout(model, dt=DT, steps=STEPS, actuators=True, parameters=names, **soft(names, r), **more)
    return run(Q, V, u=U, **x).q


def in_contact(model: lw.Model, names: tuple[str, ...], x: Values, r: Any) -> np.ndarray:
    return rolled(model, names, x, r, contacts=[])


def one_step(model: lw.Model, names: tuple[str, ...], x: Values, r: Any) -> np.ndarray:
    return lw.step(model, actuators=True, parameters=names, backend="numpy", **soft(names, r))(Q, V, U, DT, **x).v


def discrete(model: lw.Model, names: tuple[str, ...], x: Values, r: Any) -> np.ndarray:
    step = lw.discrete_step(model, dt=DT, actuators=True, parameters=names, **soft(names, r))
    q, v, A, B = step.linearize(Q, V, U, **x)
    np.testing.assert_allclose(step(Q, V, U, **x).v, v, rtol=1e-9)
    return np.concatenate([q, v, A.ravel(), B.ravel()])


def complete(names: tuple[str, ...], x: Values) -> dict[str, np.ndarray]:
    """With the model's own values: CasADi has one number as a default, for all entries."""
    own = {**MODEL.parameters(), "softness": np.array([R])}
    return {n: x.get(n, own[n]) for n in names}


def in_casadi(model: lw.Model, names: tuple[str, ...], x: Values, r: Any) -> np.ndarray:
    f = dynamics(model, names, r, "prox_ltl")
    tau, x = {"tau": np.zeros(model.nv)}, complete(names, x)
    flat = {n: y.ravel() for n, y in x.items()}
    graph = np.array(f.casadi()(q=Q, v=V, u=U, **tau, **flat)["a"])[:, 0]
    code = np.array(f.casadi_external()(q=Q, v=V, u=U, **tau, **x)["a"])[:, 0]
    np.testing.assert_allclose(code, graph, atol=1e-6 * (1 + np.abs(graph).max()))
    assert all(f"{n}" in f.c_source() for n in names)
    return graph


def casadi_step(model: lw.Model, names: tuple[str, ...], x: Values, r: Any) -> np.ndarray:
    step = lw.discrete_step(model, dt=DT, actuators=True, parameters=names, **soft(names, r)).casadi_external()
    found = step(q=Q, v=V, u=U, **complete(names, x))
    return np.concatenate([np.array(found["q_next"])[:, 0], np.array(found["v_next"])[:, 0]])


def by_torch(model: lw.Model, names: tuple[str, ...], x: Values, r: Any) -> np.ndarray:
    torch = pytest.importorskip("torch")
    from linkwork.learn import torch as learn

    given = {n: torch.tensor(y) for n, y in x.items()}
    q, v, u = (torch.tensor(y) for y in (Q, V, U))
    run = lw.rollout(model, dt=DT, steps=STEPS, actuators=True, parameters=names, **soft(names, r))
    moved = learn.rollout(run)(q, v, u=u, **given)
    step = learn.function(lw.discrete_step(model, dt=DT, actuators=True, parameters=names, **soft(names, r)))
    after = step(q, v, u, **given)
    return np.concatenate([moved.q.numpy().ravel(), after.v.numpy()])


def terms_of(factory: Callable[..., Any], *args: np.ndarray, **more: Any) -> Call:
    def call(model: lw.Model, names: tuple[str, ...], x: Values, r: Any) -> np.ndarray:
        return np.asarray(factory(model, parameters=names, backend="numpy", **more)(*args, **x)[0])

    return call


def all_terms(model: lw.Model, names: tuple[str, ...], x: Values, r: Any) -> np.ndarray:
    f = lw.terms(model, list(TERMS), parameters=names)
    return np.concatenate([np.ravel(y) for y in f(Q, V, A, **x)])


def frame_terms(model: lw.Model, names: tuple[str, ...], x: Values, r: Any) -> np.ndarray:
    return np.asarray(lw.terms(model, ["J"], "link3", parameters=names)(Q, **x).J)


KINDS: dict[str, tuple[Call, set[str]]] = {
    "forward_dynamics": (forward, {*MASS, *FORCES, *CONTROL, *ROWS}),
    "inverse_dynamics": (inverse, {*MASS, *FORCES}),
    "constrained_inverse_dynamics": (
        terms_of(lw.constrained_inverse_dynamics, Q, V, A),
        {*MASS, *FORCES, "link_rows"},
    ),
    "impulse": (terms_of(lw.impulse, Q, V, method="kkt"), {*MASS, "link_rows"}),
    "mass_matrix": (terms_of(lw.mass_matrix, Q), MASS),
    "delassus": (terms_of(lw.delassus, Q), {*MASS, "link_rows"}),
    "operational_space_inertia": (
        terms_of(lw.operational_space_inertia, Q, np.ones(1)),
        {*MASS, "link_rows"},
    ),
    "terms": (all_terms, {*MASS, "gravity"}),
    "centre_of_mass": (terms_of(lw.centre_of_mass, Q), {"inertia"}),
    "gravity_forces": (terms_of(lw.gravity_forces, Q), {"inertia", "gravity"}),
    "frames": (frame_terms, set()),
    "actuation": (terms_of(lw.actuation, Q, V, U), CONTROL),
    "rollout": (rolled, {*MASS, *FORCES, *CONTROL, *ROWS}),
    "rollout with contacts": (in_contact, {*MASS, *FORCES, *CONTROL, *ROWS, "joint_friction"}),
    "step": (one_step, {*MASS, *FORCES, *CONTROL, *ROWS, "joint_friction"}),
    "discrete_step": (discrete, {*MASS, *FORCES, *CONTROL, *ROWS}),
    "casadi": (in_casadi, {*MASS, *FORCES, *CONTROL, *ROWS}),
    "casadi step": (casadi_step, {*MASS, *FORCES, *CONTROL, *ROWS}),
    "torch": (by_torch, {*MASS, *FORCES, *CONTROL, *ROWS}),
}


@pytest.mark.filterwarnings("ignore::linkwork.errors.UnmodelledWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_every_group(kind: str) -> None:
    """Against the changed model; each group counts, none given is the model as it is, others are refused."""
    call, takes = KINDS[kind]
    for group in GROUPS:
        if group not in takes:
            with pytest.raises(InputError, match=f"does not depend on '{group}'; it"):
                call(MODEL, (group,), {}, None)
    new = {n: x for n, x in others().items() if n in takes}
    got = call(MODEL, tuple(new), new, None)
    right = call(changed({n: x for n, x in new.items() if n != "softness"}), (), {}, new.get("softness"))
    np.testing.assert_allclose(got, right, rtol=0, atol=1e-8 * (1 + np.abs(right).max()))
    own, plain = call(MODEL, tuple(new), {}, None), call(MODEL, (), {}, R if "softness" in new else None)
    np.testing.assert_allclose(own, plain, rtol=0, atol=1e-8 * (1 + np.abs(plain).max()))
    for group in new:
        assert np.abs(call(MODEL, tuple(new), {group: new[group]}, None) - own).max() > 1e-7, group


def both(names: set[str]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The model's own values and others, for two lanes."""
    own = complete(tuple(sorted(names)), {})
    return own, {n: x for n, x in others().items() if n in names}


@pytest.mark.filterwarnings("ignore::linkwork.errors.UnmodelledWarning")
@pytest.mark.parametrize("kind", ["rollout", "rollout with contacts", "step", "discrete_step"])
def test_every_lane_has_its_own(kind: str) -> None:
    """Each of two lanes computes what one state with its values does; in single precision, too."""
    takes = KINDS[kind][1]
    own, new = both(takes)
    lanes = {n: np.stack([own[n], new[n]]) for n in takes}
    how: dict[str, Any] = {"actuators": True, "parameters": tuple(takes), "R": R}
    if kind == "step":
        f = lw.step(MODEL, **how)
        found = [f(Q, V, U, DT, **x).v for x in (lanes, own, new)]
    elif kind == "discrete_step":
        f = lw.discrete_step(MODEL, dt=DT, **how)
        found = [f(np.tile(Q, (2, 1)) if x is lanes else Q, V, U, **x).v for x in (lanes, own, new)]
    else:
        more = {"contacts": []} if "contacts" in kind else {}
        runs = [lw.rollout(MODEL, dt=DT, steps=STEPS, dtype=d, **how, **more) for d in ("float64", "float32")]
        found = [runs[0](np.tile(Q, (2, 1)) if x is lanes else Q, V, u=U, **x).q for x in (lanes, own, new)]
        single = runs[1](np.tile(Q, (2, 1)), V, u=U, **lanes).q
        np.testing.assert_allclose(single, found[0], atol=1e-5)
    np.testing.assert_allclose(found[0], found[1:], rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::linkwork.errors.UnmodelledWarning")
def test_gradients_by_every_group() -> None:
    """Through a rollout of discrete steps, by all groups, against five-point differences."""
    takes, T = KINDS["discrete_step"][1], 6
    _, at = both(takes)
    step = lw.discrete_step(MODEL, dt=DT, actuators=True, parameters=tuple(takes), R=R)
    rng, u = np.random.default_rng(0), np.tile(U, (T, 1))
    w_q, w_v = rng.normal(size=(2, T + 1, MODEL.nv))
    g = step.rollout_vjp(Q, V, u, w_q, w_v, **at).parameters
    assert {*g} == takes

    def loss(x: Values) -> float:
        run = step.rollout(Q, V, u, **x)
        return float((w_q * run.q).sum() + (w_v * run.v).sum())

    for n in sorted(takes):
        d = 0.1 * rng.uniform(0.5, 1, at[n].shape) * (0.02 if n == "tendon_rest" else np.abs(at[n]) + 0.1)
        h = 1e-2
        parts = [k * loss({**at, n: at[n] + s * h * d}) for s, k in ((-2, 1), (-1, -8), (1, 8), (2, -1))]
        right = sum(parts) / (12 * h)
        assert abs((g[n] * d).sum() - right) <= 1e-7 * (abs(right) + 1e-2), n


NONSENSE = {
    "inertia": ([(0, 0)], (np.nan, -1.0)),
    "armature": ([2], (np.nan, -1.0)),
    "joint_friction": ([0], (np.nan, -1.0)),
    "softness": ([0], (np.nan, -1.0, 0.0)),
    "tendon_rest": ([(0, 0), (0, 1)], (np.nan,)),
    "gravity": ([2], (np.nan,)),
    "damping": ([1], (np.nan,)),
    "rest": ([1], (np.nan,)),
    "gain": ([(0, 0)], (np.nan,)),
    "link_rows": ([(0, 3)], (np.nan,)),
}


@pytest.mark.filterwarnings("ignore::linkwork.errors.UnmodelledWarning")
@pytest.mark.parametrize("kind", ["forward_dynamics", "step", "rollout", "discrete_step"])
def test_nonsense_is_refused(kind: str) -> None:
    """Numbers that no body, joint or row has, one at a time, also where results would be numbers; and shapes."""
    takes = KINDS[kind][1]
    how: dict[str, Any] = {"actuators": True, "parameters": tuple(takes), "R": R}
    if kind == "forward_dynamics":
        fd = lw.forward_dynamics(MODEL, **how)
        call = lambda **x: fd(Q, V, U, **x)  # noqa: E731
    elif kind == "step":
        step = lw.step(MODEL, **how)
        call = lambda **x: step(Q, V, U, DT, **x)  # noqa: E731
    elif kind == "rollout":
        run = lw.rollout(MODEL, dt=DT, steps=2, **how)
        call = lambda **x: run(Q, V, u=U, **x)  # noqa: E731
    else:
        discrete = lw.discrete_step(MODEL, dt=DT, **how)
        call = lambda **x: discrete(Q, V, U, **x)  # noqa: E731
    own = complete(tuple(takes), {})
    for name, (places, numbers) in NONSENSE.items():
        for at in places if name in takes else ():
            for number in numbers:
                wrong = own[name].copy()
                wrong[at] = number
                with pytest.raises(InputError, match=name):
                    call(**{name: wrong})
    with pytest.raises(InputError, match="tendon_rest"):
        call(tendon_rest=np.array([[0.1, -0.1]]))
    for name in takes:
        for wrong in ("text", own[name][..., :-1], [[[own[name].tolist()]]], [[1], [2, 3]]):
            with pytest.raises(InputError):
                call(**{name: wrong})


@pytest.mark.parametrize("backend", ["kernel", "numpy"])
def test_masses_of_terms(backend: str) -> None:
    """What is fixed to the world counts as before, bodies that cannot be are refused where M is factorised."""
    b, body = lw.Builder("held"), lw.BodyInertia(2.0, np.array([0.1, 0.2, 0.3]), 0.1 * np.eye(3))
    b.link("stand", "world", "fixed", inertia=body)
    b.link("arm", "stand", "revolute", axis="y", inertia=body)
    model = b.build()
    x = 2 * model.parameters().inertia
    com = lw.centre_of_mass(model, parameters=("inertia",), backend=backend)
    heavier = model
    for link, row in zip(model.links[1:], x, strict=True):
        heavier = heavier.with_inertia(link.name, lw.BodyInertia.from_parameters(row))
    np.testing.assert_allclose(com([0.3]).com, lw.centre_of_mass(model)([0.3]).com, atol=1e-15)
    np.testing.assert_allclose(com([0.3], inertia=x).com, lw.centre_of_mass(heavier)([0.3]).com, atol=1e-15)
    inverse = lw.inverse_mass_matrix(model, parameters=("inertia",), backend=backend)
    with pytest.raises(InputError, match="a negative mass"):
        inverse([0.3], inertia=-x)


def test_what_is_asked_for_by_another_name() -> None:
    for name in ("friction", "contact_friction"):
        for make in (lw.rollout, lw.step, lw.forward_dynamics):
            with pytest.raises(InputError, match=r"input `friction` of lw.step .* 'joint_friction'"):
                make(MODEL, parameters=(name,))
    with pytest.raises(InputError, match="without iterations"), pytest.warns(lw.errors.UnmodelledWarning):
        lw.rollout(MODEL, R=1.0, prox=lw.Prox())
