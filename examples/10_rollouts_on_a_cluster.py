"""One call, many machines: rollouts of a quadruped on a cluster, here of two local processes."""

import numpy as np

import linkwork as lw
from linkwork import scale
from linkwork.errors import MissingExtra
from linkwork.robots.mechanisms import quadruped, standing

FEET = ("front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot")
STATES, STEPS = 512, 200


def main() -> None:
    try:
        from distributed import LocalCluster
    except ImportError:
        raise MissingExtra("distributed", "cluster", "this example") from None

    model = quadruped().with_constraints(*map(lw.point, FEET))
    rng = np.random.default_rng(0)
    q0, v0 = np.tile(standing(model), (STATES, 1)), np.zeros(model.nv)
    tau = rng.normal(size=(STATES, 1, model.nv))  # other forces for every state, held all the time

    here = lw.rollout(model)(q0, v0, tau, steps=STEPS, every=STEPS)

    # a real cluster is an address: scale.rollout(model, cluster="tcp://head-node:8786")
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        run = scale.rollout(model, cluster=cluster, progress=True)
        there = run(q0, v0, tau, steps=STEPS, every=STEPS)

    print(f"{STATES} states, {STEPS} steps each: the trunks are {there.q[:, -1, 2].mean():.3f} m high on average")
    assert np.array_equal(here.q, there.q), "a cluster computes the same, to the bit"
    assert there.ok.all()


if __name__ == "__main__":  # workers import this file, and must not start clusters themselves
    main()
