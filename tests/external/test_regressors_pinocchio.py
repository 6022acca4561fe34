"""Regressors against Pinocchio, on real robots; its order of parameters is ours."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import assert_close

pin = pytest.importorskip("pinocchio")

from pin_model import to_pinocchio  # noqa: E402

import linkwork as lw  # noqa: E402
from linkwork.io.zoo import find  # noqa: E402


@pytest.mark.filterwarnings("ignore::linkwork.io.xml.LoadWarning")
@pytest.mark.parametrize("name", ["go1", "ur5", "panda", "talos_reduced", "anymal_c", "tiago", "icub"])
def test_regressors_of_real_robots(name):
    try:
        model = lw.load(find(name).path, base=find(name).base).without_constraints()
    except lw.LinkworkError as problem:
        pytest.skip(f"{name} is not installed: {problem}")
    pm = to_pinocchio(model)
    data, rng = pm.createData(), np.random.default_rng(0)
    torque, energy = (lw.regressor(model, kind, backend="numpy") for kind in ("torque", "energy"))
    for seed in range(3):
        q, v, a = model.random_q(seed), rng.normal(size=model.nv), rng.normal(size=model.nv)
        assert_close(torque(q, v, a).Y, pin.computeJointTorqueRegressor(pm, data, q, v, a))
        ours = energy(q, v)
        assert_close(ours.kinetic, pin.computeKineticEnergyRegressor(pm, data, q, v))
        assert_close(ours.potential, pin.computePotentialEnergyRegressor(pm, data, q))
