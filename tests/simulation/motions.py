"""Small mechanisms whose motion is known, and what must not change along it."""

from __future__ import annotations

import numpy as np

import linkwork as lw


def pendulum() -> lw.Model:
    """A point-like mass on a rod of 1 m, about y."""
    b = lw.Builder("pendulum")
    b.link("bob", joint="revolute", axis="y", inertia=lw.BodyInertia(1.0, np.array([0, 0, -1.0]), 0.01 * np.eye(3)))
    return b.build()


def free_body() -> lw.Model:
    """A brick without gravity, its centre of mass off the origin."""
    b = lw.Builder("brick")
    b.link("brick", joint="free", inertia=lw.BodyInertia(2.0, np.array([0.1, -0.2, 0.3]), np.diag([0.1, 0.2, 0.25])))
    return b.build().with_gravity((0, 0, 0))


def ball_chain() -> lw.Model:
    """Two brick-like links on ball joints: quaternions, coupled."""
    b = lw.Builder("ball chain")
    brick = lw.BodyInertia(1.0, np.array([0.0, 0.02, -0.3]), np.diag([0.05, 0.04, 0.01]))
    b.link("upper", joint="spherical", inertia=brick)
    b.link("lower", "upper", joint="spherical", placement=lw.Placement.at((0, 0, -0.6)), inertia=brick)
    return b.build()


def julia_four_bar() -> tuple[lw.Model, np.ndarray]:
    """The four-bar of RigidBodyDynamics.jl's tests (lengths, masses, posture); closed to rounding."""
    b, upright = lw.Builder("four-bar"), lw.Placement.at(rpy=(np.pi / 2, 0, 0))
    for name, parent, at, mass, com, I in (
        ("link1", "world", upright, 0.5, 0.25, 0.333),
        ("link2", "link1", lw.Placement.at((0.5, 0, 0)), 1.0, 0.6, 0.537),
        ("link3", "world", upright @ lw.Placement.at((1.1, 0, 0)), 0.75, 0.375, 0.4),
    ):
        inertia = lw.BodyInertia(mass, np.array([com, 0, 0]), np.diag([1e-3, I, I]))
        b.link(name, parent, joint="revolute", axis="z", placement=at, inertia=inertia)
    b.frame("end2", "link2", lw.Placement.at((1.2, 0, 0)))
    b.frame("end3", "link3", lw.Placement.at((0.75, 0, 0)))
    tree = b.build()
    found = np.array([1.6707963267948966, -1.4591054166649482, 1.5397303602625536])
    q = lw.assemble(tree.with_constraints(lw.Connect("end2", "end3")), found, locked=["link1_joint"])
    return tree.with_constraints(lw.Hinge("end2", "end3")), q


def energy(model: lw.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Kinetic and potential energy of rows of states."""
    M = lw.mass_matrix(model, backend="casadi")(q).M
    p, R = lw.forward_kinematics(model, backend="casadi")(q)
    mass = np.array([l.inertia.mass for l in model.links[1:]])
    com = np.array([l.inertia.com for l in model.links[1:]])
    centres = p + np.einsum("blij,lj->bli", R, com)
    return np.einsum("bi,bij,bj->b", v, M, v) / 2 - np.einsum("l,bli,i->b", mass, centres, model.gravity)


def angular_momentum(model: lw.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Of a single free body about its centre of mass, in world axes."""
    body = model.links[1].inertia
    R = lw.forward_kinematics(model, backend="casadi")(q).rotations[:, 0]
    return np.einsum("bij,jk,bk->bi", R, body.I, v[:, 3:])


def gap(model: lw.Model, q: np.ndarray) -> float:
    """The largest position error of a constraint."""
    return float(np.abs(lw.constraint_error(model, backend="casadi")(q, np.zeros((len(q), model.nv))).phi).max())
