"""Model-predictive control of a walking quadruped, with its whole-body dynamics and contact phases.

    min sum_k 1/2 |r(x_k, u_k)|^2,    x_{k+1} = f(x_k, u_k, phase_k),    contact forces in their friction pyramids

Solved by fatrop or ipopt. Every 20 ms the plan is made anew, from the state of a simulation with real contacts.
Linkwork's step with its Jacobians is an external function of CasADi: machine code, no graph. Second derivatives count
as zero (Gauss and Newton).
"""

import time

import casadi as ca
import numpy as np

import linkwork as lw
from linkwork.robots.mechanisms import quadruped, standing

N, DT, SWING = 14, 0.02, 10  # knots, seconds, knots of a phase
TURNS = 2  # solver iterations for each plan: it starts from the one before
SPEED, LIFT, FRICTION = 0.3, 0.05, 0.5  # m/s, m, of the plan; the ground's is larger
LEGS = ("front_left", "front_right", "rear_left", "rear_right")
FEET = [f"{leg}_foot" for leg in LEGS]
PYRAMID = np.kron(np.eye(4), [[-1, 0, FRICTION], [1, 0, FRICTION], [0, -1, FRICTION], [0, 1, FRICTION]])
nq, nv, nu = 19, 18, 12
nx, nw = nq + nv, nq + nv + nu

POSTURE = np.concatenate([[5, 20, 200], [300] * 4, [5] * 12])  # weights: trunk, its quaternion, joints
MOTION = np.concatenate([[10] * 6, [0.1] * 12])
WEIGHTS, EFFORT, CLEARANCE = np.sqrt(np.concatenate([POSTURE, MOTION])), np.sqrt(0.002), np.sqrt(4e3)


class Controller:
    """Plans of N knots, each starting from the last one."""

    def __init__(self, robot, solver):
        stops = lw.Stabilisation(period=100.0, damping=25 / np.pi / DT)  # feet that touch down stop within a step
        model = robot.with_constraints(*(lw.point(foot, axes="world", stabilisation=stops) for foot in FEET))
        self.step = lw.discrete_step(model, dt=DT, modes=True).casadi_external(gauss_newton=True)
        self.feet = lw.forward_kinematics(robot, FEET).casadi_external(gauss_newton=True)
        self.stand = np.concatenate([standing(robot), np.zeros(nv)])
        self.plan = np.tile(np.concatenate([self.stand, np.zeros(nu)]), N + 1)[: N * nw + nx]
        self.solver, self.lower, self.upper = self._problem(solver)

    def _problem(self, solver):
        w = ca.MX.sym("w", N * nw + nx)
        x = [w[nw * k : nw * k + nx] for k in range(N + 1)]
        u = [w[nw * k + nx : nw * (k + 1)] for k in range(N)]
        start, target = ca.MX.sym("start", nx), ca.MX.sym("target", nx, N + 1)
        phase, lift = ca.MX.sym("phase", 4, N), ca.MX.sym("lift", 4, N + 1)
        jacobian, r, g, J, lower, equal = self.step.jacobian(), [], [], [], [], []
        for k in range(N + 1):
            r += [WEIGHTS * (x[k] - target[:, k]), CLEARANCE * (self.feet(x[k][:nq])[0][:, 2] - lift[:, k])]
            if k == N:
                break
            r.append(EFFORT * u[k])
            given = x[k][:nq], x[k][nq:], ca.vertcat(ca.MX(6, 1), u[k]), phase[:, k]
            q, v, forces = self.step(*given)
            g.append(x[k + 1] - ca.vertcat(q, v))
            # CasADi would find this Jacobian by itself, in ten times the time: it is the blocks of all steps
            blocks = jacobian(*given, q, v, forces)  # of each result: by q, v, all joint forces, phase
            of_q, of_v, of_forces = (ca.horzcat(*blocks[i : i + 2], blocks[i + 2][:, 6:]) for i in (0, 4, 8))
            after = ca.MX(nx, nw * (N - k - 1))
            J.append(ca.horzcat(ca.MX(nx, nw * k), -ca.vertcat(of_q, of_v), ca.DM.eye(nx), after))
            lower, equal = lower + [0] * nx, equal + [True] * nx
            if k == 0:
                g.append(x[0] - start)
                J.append(ca.horzcat(ca.DM.eye(nx), ca.MX(nx, nw * N)))
                lower, equal = lower + [0] * nx, equal + [True] * nx
            pyramid = ca.sparsify(ca.DM(PYRAMID))
            g.append(pyramid @ forces)
            J.append(ca.horzcat(ca.MX(16, nw * k), pyramid @ of_forces, ca.MX(16, nw * (N - k - 1) + nx)))
            lower, equal = lower + [-1] * 16, equal + [False] * 16  # feet in the air have no force: inside
        r, g, p = ca.vertcat(*r), ca.vertcat(*g), ca.veccat(start, target, phase, lift)
        slopes = ca.Function("nlp_jac_g", [w, p], [g, ca.vertcat(*J)], ["x", "p"], ["g", "jac_g_x"])
        own = {"max_iter": TURNS, "print_level": 0, "mu_init": 1e-2}
        structure = {"structure_detection": "auto", "equality": equal} if solver == "fatrop" else {}
        options = {
            "cache": {"nlp_jac_g": slopes},
            "print_time": False,
            "error_on_fail": False,
            solver: own,
            **structure,
        }
        made = ca.nlpsol("mpc", solver, {"x": w, "p": p, "f": ca.sumsqr(r) / 2, "g": g}, options)
        return made, lower, np.where(equal, 0.0, np.inf)

    def __call__(self, knot, q, v):
        """The plan from a state on: (N, nx) states and (N, nu) joint forces."""
        phase, lift, target = np.ones((4, N)), np.zeros((4, N + 1)), np.tile(self.stand, (N + 1, 1)).T
        for k in range(N + 1):
            half, since = divmod(knot + k, SWING)
            for leg in ((1, 2), (0, 3))[half % 2] if half > 0 else ():
                phase[leg, k : k + 1] = 0
                lift[leg, k] = LIFT * np.sin(np.pi * since / SWING)
        target[0] = q[0] + SPEED * DT * np.arange(N + 1)
        target[nq] = SPEED
        p = np.concatenate([q, v, *(y.ravel(order="F") for y in (target, phase, lift))])
        guess = np.concatenate([self.plan[nw:], self.plan[-nw:]])
        guess[:nx] = np.concatenate([q, v])
        found = self.solver(x0=guess, p=p, lbg=self.lower, ubg=self.upper)
        self.plan = np.array(found["x"]).ravel()
        knots = self.plan[: N * nw].reshape(N, nw)
        return knots[:, :nx], knots[:, nx:]


def main(solver="fatrop", seconds=1.5, dt=0.002):
    """Walk in the simulation; gives how far, and the processor time of each plan."""
    if not ca.has_nlpsol(solver):
        solver = "ipopt"  # older wheels of CasADi have no fatrop
    robot = quadruped()
    plan, world = Controller(robot, solver), lw.step(robot, [lw.Contact(foot, friction=0.8) for foot in FEET])
    q, v, impulses, spent = standing(robot), np.zeros(nv), None, []
    for knot in range(int(seconds / DT)):
        begin = time.process_time()
        x, u = plan(knot, q, v)
        spent.append(time.process_time() - begin)
        for i in range(round(DT / dt)):
            part = (i + 1) * dt / DT
            goal, fast = (1 - part) * x[0] + part * x[1], x[1][nq + 6 :]
            tau = np.concatenate([np.zeros(6), u[0] + 20 * (goal[7:nq] - q[7:]) + 0.5 * (fast - v[6:])])
            r = world(q, v, tau, [dt]) if impulses is None else world(q, v, tau, [dt], impulses=impulses)
            q, v, impulses = r.q, r.v, r.impulses
    middle, slowest = 1e3 * np.median(spent), 1e3 * np.max(spent[1:])
    print(f"{solver}: {q[0]:.2f} m in {seconds:g} s, trunk at a height of {q[2]:.3f} m")
    print(f"{middle:.1f} ms of processor time for a plan ({1e3 / middle:.0f} Hz), at most {slowest:.1f}")
    assert q[0] > 0.5 * SPEED * seconds, "the quadruped should walk ahead"
    assert q[2] > 0.2, "the quadruped should not fall"
    return q, spent


if __name__ == "__main__":
    main()
