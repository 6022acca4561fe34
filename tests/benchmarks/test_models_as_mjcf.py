"""MuJoCo gets the mechanisms of the papers as they are."""

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import UnsupportedError
from linkwork_bench.mjcf import mjcf_text
from linkwork_bench.papers.mechanisms import tube_chain

mujoco = pytest.importorskip("mujoco")


def test_a_chain_with_a_welded_tip() -> None:
    model, rng = tube_chain(6), np.random.default_rng(0)
    theirs = mujoco.MjModel.from_xml_string(mjcf_text("chain", model))
    data = mujoco.MjData(theirs)
    q, v, tau = rng.uniform(-1, 1, (3, 6))
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
    mujoco.mj_forward(theirs, data)
    ours = lw.forward_dynamics(model.without_constraints(), backend="numpy")(q, v, tau).a
    np.testing.assert_allclose(data.qacc_smooth, ours, rtol=1e-9)
    assert data.nefc == model.rows
    with pytest.raises(UnsupportedError, match="points and welds"):
        mjcf_text("hinge", model.with_constraints(lw.Hinge(model.links[3].name)))
