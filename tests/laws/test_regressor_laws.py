"""Regressors: what they say is linear in the parameters is what the other functions compute."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from helpers import assert_close, cond
from linkwork.model.body import BodyInertia
from linkwork.robots import mechanisms

TORQUE = ("inertia", "armature", "damping", "stiffness")


def resisting() -> lw.Model:
    """A free base, a ball, hinges and a slider, with everything that resists motion."""
    rng = np.random.default_rng(3)
    b = lw.Builder("mixed")
    for name, parent, joint, axis in (
        ("base", "world", "free", None),
        ("arm", "base", "revolute", "y"),
        ("ball", "arm", "spherical", None),
        ("rod", "arm", "prismatic", "x"),
        ("tool", "ball", "revolute", (0.6, 0.0, 0.8)),
    ):
        body = BodyInertia(rng.uniform(0.5, 2.0), rng.normal(size=3), np.diag(rng.uniform(1.0, 1.5, 3)))
        place = lw.Placement.at(rng.normal(size=3), rng.normal(size=3))
        b.link(name, parent, joint, axis=axis, inertia=body, placement=place, armature=0.3, damping=0.2, stiffness=4.0)
    return b.build()


def weightless() -> lw.Model:
    """A chain with a link that gravity does not pull, and one that it pulls by half."""
    m = mechanisms.chain(3)
    one, two = m.links[1], m.links[2]
    half = BodyInertia(two.inertia.mass / 2, two.inertia.com)
    return m.with_inertia(one.name, one.inertia, one.inertia).with_inertia(two.name, two.inertia, half)


MODELS = {
    "mixed": resisting,
    "weightless": weightless,
    "quadruped": mechanisms.quadruped,
    "tree": lambda: mechanisms.chain(5).without_constraints(),
}


def state(model: lw.Model, batch: int | None = None, seed: int = 1):
    rng = np.random.default_rng(seed)
    shape = model.nv if batch is None else (batch, model.nv)
    return model.random_q(seed, batch=batch), rng.normal(size=shape), rng.normal(size=shape)


@pytest.mark.parametrize("backend", ["numpy", "kernel"])
@pytest.mark.parametrize("name", MODELS)
def test_torques_momenta_and_energies_are_linear_in_the_parameters(name, backend):
    model = MODELS[name]().without_constraints()
    q, v, a = state(model)
    pi = lw.parameter_vector(model, TORQUE)
    Y = lw.regressor(model, parameters=TORQUE, backend=backend)(q, v, a).Y
    assert_close(Y @ pi, lw.inverse_dynamics(model, backend="numpy")(q, v, a).tau)
    by_mass = TORQUE[:2]
    P = lw.regressor(model, "momentum", parameters=by_mass, backend=backend)(q, v).Y
    assert_close(P @ lw.parameter_vector(model, by_mass), lw.mass_matrix(model, backend="numpy")(q).M @ v)
    E = lw.regressor(model, "energy", parameters=by_mass, backend=backend)(q, v)
    known = lw.energy(model, backend="numpy")(q, v)
    assert_close(E.kinetic @ lw.parameter_vector(model, by_mass), known.kinetic_energy)
    assert_close(E.potential @ lw.parameter_vector(model, by_mass), known.potential_energy)


def test_other_parameters_give_the_forces_of_the_other_robot():
    model = resisting()
    q, v, a = state(model)
    rng = np.random.default_rng(0)
    groups = {n: rng.normal(size=model.parameters()[n].shape) for n in TORQUE}
    tau = lw.inverse_dynamics(model, parameters=TORQUE, backend="numpy")(q, v, a, **groups).tau
    Y = lw.regressor(model, parameters=TORQUE, backend="numpy")(q, v, a).Y
    assert_close(Y @ np.concatenate([x.ravel() for x in groups.values()]), tau)


def test_a_spring_has_its_energy_and_friction_is_against_the_motion():
    model = resisting()
    q, v, _ = state(model)
    potential = lw.regressor(model, "energy", parameters=("stiffness",), backend="numpy")(q, v).potential
    from linkwork.backends.numpy_ import NUMPY
    from linkwork.model.springs_and_dampers import spring_energy

    assert_close(potential @ model.parameters().stiffness, spring_energy(model, q[:, None], NUMPY)[0, 0])
    Y = lw.regressor(model, parameters=("joint_friction",), backend="numpy")(q, v, v).Y
    assert np.array_equal(Y, np.diag(np.sign(v)))


def test_batches_and_packed_entries_are_those_of_single_states():
    model = mechanisms.quadruped().without_constraints()
    q, v, a = state(model, 9)
    Y, dense = lw.regressor(model)(q, v, a).Y, lw.regressor(model, backend="numpy")
    assert Y.shape == (9, model.nv, 10 * model.nlinks)
    for k in range(9):
        assert_close(Y[k], dense(q[k], v[k], a[k]).Y)
    rows, columns = lw.regressor_pattern(model)
    entries = lw.regressor(model, packed=True)(q, v, a).entries
    assert_close(entries, Y[:, rows, columns])
    assert np.count_nonzero(Y[0]) <= len(rows) < Y[0].size / 2


@pytest.mark.parametrize("make", [mechanisms.four_bar, lambda: mechanisms.geared_chain(3)])
def test_with_loops_rows_are_those_of_the_independent_joints(make):
    model = make()
    q, v = lw.random_state(model, 3)
    a = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, np.ones(model.nv)).a
    pi = lw.parameter_vector(model, TORQUE)
    inverse = lw.inverse_dynamics(model, backend="numpy")(q, v, a).tau
    kappa = cond(lw.constraint_jacobian(model, backend="numpy")(q).J)
    for backend in ("numpy", "kernel"):
        Y = lw.regressor(model, parameters=TORQUE, backend=backend)(q, v, a).Y
        assert_close(Y @ pi, inverse, kappa)
    tree = lw.regressor(model, parameters=TORQUE, projected=False, backend="numpy")(q, v, a).Y
    bare = lw.inverse_dynamics(model.without_constraints(), backend="numpy")(q, v, a).tau
    assert_close(tree @ pi, bare)


def test_what_is_not_linear_is_refused():
    m = mechanisms.chain(2)
    body = m.links[1].inertia
    odd = m.with_inertia(m.links[1].name, body, BodyInertia(body.mass / 2, body.com + 0.1))
    with pytest.raises(lw.LinkworkError, match="gravity does not pull a part"):
        lw.regressor(odd)
    with pytest.raises(lw.LinkworkError, match="does not depend on 'damping'"):
        lw.regressor(m, "momentum", parameters=("damping",))
    with pytest.raises(lw.LinkworkError, match="at least one group"):
        lw.regressor(m, parameters=())
