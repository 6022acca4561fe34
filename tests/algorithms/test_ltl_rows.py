"""Rows whose terms cancel are met, and `ltl` sees that."""

import numpy as np

import linkwork as lw


def test_rows_that_ask_for_no_acceleration_are_no_singularity():
    """A rod in the line of an arm: k and J vdot vanish beside the terms of k, so errors are rounding of these."""
    b = lw.Builder("arm")
    body = lw.BodyInertia(1.2, (0.1, 0.05, 0.2), np.diag([0.02, 0.03, 0.025]))
    b.link("upper", "world", "spherical", inertia=body)
    b.link("lower", "upper", "revolute", axis="y", inertia=body, placement=lw.Placement.at((0, 0, 0.3)))
    b.frame("tip", "lower", lw.Placement.at((0, 0, 0.2)))
    model = b.build().with_constraints(lw.Distance("tip", "world", length=0.4))
    f, dense = lw.forward_dynamics(model, method="ltl"), lw.forward_dynamics(model, method="kkt", backend="numpy")
    for seed in range(12):
        q, v = lw.random_state(model, seed=seed)
        found = f.kernel(q, v, np.zeros(model.nv))  # the kernel itself: no second try by a dense solve
        expected = dense(q, v, np.zeros(model.nv))
        np.testing.assert_allclose(found[0], expected.a, atol=1e-11)
        np.testing.assert_allclose(found[1], expected.lam, atol=1e-11)
