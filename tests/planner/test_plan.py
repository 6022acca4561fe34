"""The planner: its picks by counting, its explanations, what it refuses, and that it decides once."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import linkwork as lw
from linkwork.algorithms import registry
from linkwork.backends.numpy_ import NUMPY
from linkwork.constraints import jacobian, position_error
from linkwork.errors import NotFound
from linkwork.io import zoo
from linkwork.kernels.programs.trace import trace
from linkwork.kernels.programs.value_numbering import Outgrown
from linkwork.model import Motion
from linkwork.planner.cost import (
    FEATURES,
    KEPT,
    LARGE,
    USUAL,
    Machine,
    all_features,
    features,
    in_all,
    machine,
    save_machine,
)
from linkwork.planner.plan import Plan
from linkwork.planner.stopwatch import undisturbed
from linkwork.robots import mechanisms as mech

FEET = ("front_left_foot", "rear_right_foot")


def standing() -> lw.Model:
    return mech.quadruped().with_constraints(*(lw.point(f) for f in FEET))


@pytest.fixture(autouse=True)
def uncalibrated(empty_cache):
    machine.cache_clear()
    yield
    machine.cache_clear()


MODELS = {
    "chain": lambda: mech.chain(5),
    "tree": lambda: mech.random_tree(8, seed=3),
    "contacts": standing,
    "four-bar": mech.four_bar,
    "loops": lambda: mech.chain_of_loops(2),
    "gears": lambda: mech.geared_chain(3),
    "centre of mass": lambda: mech.quadruped().with_constraints(lw.CentreOfMass()),
}


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_the_table_tells_the_truth(name, independent) -> None:
    """Operations are those of the function, every refusal is real, and the order is that of predicted times."""
    model = MODELS[name]()
    plan = lw.plan(model, independent=independent)
    known = registry.methods("forward_dynamics")
    assert {c.method for c in plan.candidates} == set(known)
    times = [c.predicted["state"] for c in plan.candidates if c.possible]
    assert times == sorted(times)
    for c in plan.candidates:
        if c.possible:
            f = lw.forward_dynamics(model, method=c.method)
            assert c.operations == f.operations
            assert c.predicted["state"] == pytest.approx(machine().us(all_features(f.program, c.iterations), "state"))
            assert independent or not model.constraints or known[c.method].redundant
        elif known[c.method].refusal(model):
            assert c.reason == known[c.method].refusal(model)
    text = plan.explain()
    assert all(c.method in text for c in plan.candidates)


@pytest.mark.parametrize("name", MODELS)
def test_functions_take_what_the_plan_says(name) -> None:
    model = MODELS[name]()
    for use in ("state", "batch"):
        assert lw.forward_dynamics(model, use=use).method == lw.plan(model, use=use).method
        chosen = lw.forward_dynamics(model, use=use, independent=True).method
        assert chosen == lw.plan(model, use=use, independent=True).method


def test_choices_that_are_plain_to_see() -> None:
    assert lw.forward_dynamics(mech.chain(3)).method == "crba_ltl"
    assert lw.forward_dynamics(mech.chain(40)).method == "aba"
    assert lw.forward_dynamics(mech.geared_chain(8)).method.startswith("c_")
    assert lw.forward_dynamics(standing(), independent=True).method in ("pv", "pv_early", "bbo", "ltl")
    assert lw.forward_dynamics(standing(), modes=True).method in ("constrained_aba", "prox_pv", "prox_ltl", "prox_bbo")
    assert not registry.methods("forward_dynamics")[lw.forward_dynamics(mech.four_bar()).method].local
    assert registry.methods("forward_dynamics")[lw.forward_dynamics(standing(), R=1e-3).method].soft


def test_clusters_are_not_switched() -> None:
    plan = lw.plan(mech.geared_chain(4), modes=True)
    why = {c.method: c.reason for c in plan.candidates}
    assert "cannot be switched" in why["c_lcaba"]


def test_a_promise_never_costs_time() -> None:
    for make in MODELS.values():
        model = make()
        safe, quick = lw.plan(model).best, lw.plan(model, independent=True).best
        assert quick.predicted["state"] <= safe.predicted["state"]


def test_plans_of_the_delassus_matrix() -> None:
    method = lw.delassus(standing()).method
    plan = lw.plan(standing(), "delassus")
    assert method == plan.method
    assert "pv_fast" not in [c.method for c in plan.candidates if c.possible]
    with pytest.raises(NotFound):
        lw.plan(standing(), "inverse_kinematics")
    with pytest.raises(NotFound):
        lw.plan(standing(), use="fleet")


def test_picks_are_right_answers() -> None:
    for name, make in MODELS.items():
        model = make()
        posture = model.neutral() if name in ("four-bar", "loops", "gears") else model.random_q(2)
        q, v = posture, np.zeros(model.nv)
        tau = np.random.default_rng(1).normal(size=model.nv)
        expected = lw.forward_dynamics(model, method="kkt", backend="numpy")(q, v, tau).a
        for independent in (False, True):
            if independent and name in ("four-bar", "loops"):
                continue  # their rows are redundant: nobody should promise that they are not
            got = lw.forward_dynamics(model, independent=independent, backend="numpy")(q, v, tau).a
            np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6 * float(np.abs(expected).max()))


def test_a_plan_is_made_once(empty_cache, monkeypatch) -> None:
    first = lw.plan(standing())

    def never(*arguments, **options):
        raise AssertionError("it was traced again")

    monkeypatch.setattr(lw.functions.function.Function, "traced", never)
    assert lw.plan(standing()) == first
    with pytest.raises(AssertionError):
        lw.plan(mech.chain(7))


def test_other_costs_make_another_plan(empty_cache) -> None:
    before = lw.plan(standing(), independent=True)
    assert machine() == USUAL
    free = dict.fromkeys(FEATURES, 0.0)
    slow = Machine(
        {**free, "numbers": 1.0}, {**free, "numbers": 1.0}, USUAL.yardstick, "a machine that only reads and writes"
    )
    save_machine(slow)
    assert machine() == slow
    after = lw.plan(standing(), independent=True)
    assert after.best.predicted != before.best.predicted


def test_features_of_a_program() -> None:
    program = trace("f", lambda xp, symbol: (lambda x: {"y": xp.sin(x[0, 0]) * x[1, 0] + 1 / x[1, 0]})(symbol("x", 2)))
    counted = {"arithmetic": 1, "kept": 0, "slow": 1, "pairs": 1, "numbers": 3, "chain": 48}
    assert features(program) == counted
    assert all_features(program) == {**counted, "large": 0, "sines": 1, "loop": 0, "call": 1}


def test_a_workspace_beyond_the_data_cache() -> None:
    """Its share that does not fit is a share of all operations, as often as they run."""
    start, again, finish = (
        {"arithmetic": 1000, "kept": 0, "slow": 0, "pairs": 0, "numbers": n, "chain": 0}
        for n in (LARGE / 1.5, LARGE / 1.5, 0)
    )
    assert in_all([start])["large"] == 0
    assert in_all([start, again, finish], 1)["large"] == pytest.approx(0.5 * 2000)
    assert in_all([start, again, finish], 3)["large"] == pytest.approx(0.5 * 4000)


def test_what_is_used_much_later_is_kept_in_memory() -> None:
    def powers(count: int):
        def f(xp, symbol):
            x = symbol("x", 1)[0, 0]
            first = last = x * x
            for _ in range(count):
                last = last * x
            return {"y": last + first}

        return features(trace("f", f))

    assert powers(KEPT + 1)["kept"] == 1
    assert powers(KEPT - 2)["kept"] == 0
    assert powers(5)["arithmetic"] == 1 + 5, "the last product goes into the sum"


def test_traces_are_given_up_when_they_outgrow() -> None:
    f = lw.forward_dynamics(mech.chain(20), method="aba")
    with pytest.raises(Outgrown):
        f.traced(limit=500)
    assert f.traced(limit=100_000).operations == f.operations


def test_command_line() -> None:
    from typer.testing import CliRunner

    from linkwork.cli.main import app

    runner = CliRunner()
    try:
        zoo.find("go1")
    except NotFound:
        pytest.skip("Go1 is not installed: example-robot-data has it")
    told = runner.invoke(app, ["plan", "go1", "--contact", "FR_foot:point", "--json"])
    data = json.loads(told.output)
    assert data["method"] == data["candidates"][0]["method"]
    told = runner.invoke(app, ["plan", "go1", "--contact", "FR_foot:point", "--independent", "--use", "batch"])
    assert told.exit_code == 0
    assert "operations" in told.output


def test_iterations_are_counted_on_the_mechanism(empty_cache) -> None:
    """Gears in clusters are exact in the first iteration, Bricard's redundant loop takes more than two."""
    gears = {c.method: c for c in lw.plan(mech.geared_chain(3)).candidates if c.possible}
    assert gears["c_lcaba"].iterations == 1.0
    model = mech.bricard()
    counted = next(c for c in lw.plan(model).candidates if c.method == "prox_ltl")
    rng = np.random.default_rng(7)
    q = np.stack([model.random_q(rng) for _ in range(1000)])
    v, tau = rng.uniform(-1, 1, (2, 1000, model.nv))
    result = lw.forward_dynamics(model, method="prox_ltl")(q, v, tau)
    assert abs(counted.iterations - np.mean(result.iterations)) < 0.5
    assert counted.iterations > 2.0


def test_iterations_that_cannot_be_counted_are_not() -> None:
    from linkwork.planner.iterations import count, samples

    model = standing()
    method = registry.methods("forward_dynamics")["lcaba"]
    program = lw.forward_dynamics(model, method="lcaba").program
    found, missed = count(program, method.prox, samples(model))
    assert 1.0 < found["state"] <= found["batch"] < 5.0
    assert missed == 0
    found, missed = count(program, replace(method.prox, max_iterations=1), samples(model))
    assert found == {"state": 1.0, "batch": 1.0}
    assert missed == 1
    assert count(program, method.prox, {"q": model.neutral()}) == ({}, 0.0)


def test_iterations_of_a_register_are_those_of_its_slowest_state() -> None:
    """Of eight states in a register, one in ten of which needs two more iterations, 57 % of registers do."""
    from linkwork.kernels.codegen.target import Target
    from linkwork.kernels.programs.program import Port
    from linkwork.planner.iterations import count

    class Counted:
        inputs = ()
        outputs = (Port("report", (3,)),)

        def interpret(self):
            return (np.column_stack([np.repeat([2.0, 4.0], [90, 10]), np.zeros(100), np.ones(100)]),)

    found, _ = count(Counted(), registry.methods("forward_dynamics")["lcaba"].prox, {})
    assert found["state"] == pytest.approx(1 + 1.2)
    assert found["batch"] == pytest.approx(1 + 1 + 2 * (1 - 0.9 ** Target.host().lanes("float64")))


def test_states_to_count_on_are_closed_and_differ() -> None:
    from linkwork.planner.iterations import CLOSED, samples

    model = mech.chain_of_loops(2)
    given = samples(model)
    assert len(np.unique(given["q"].round(6), axis=0)) == CLOSED
    for q, v in zip(given["q"], given["v"], strict=True):
        at = Motion(model, q[:, None], v[:, None], NUMPY)
        assert np.abs(position_error(at)).max() < 1e-10
        assert np.abs(jacobian(at) @ v).max() < 1e-10


def test_measured_times_order_a_plan(empty_cache) -> None:
    plan = lw.plan(standing())
    first, second, third, *_ = (c.method for c in plan.candidates)
    turned = plan.timed({"state": {second: 0.1, first: 0.2}, "batch": {first: 0.05}})
    assert [c.method for c in turned.candidates[:3]] == [second, first, third]
    assert turned.measured
    assert not plan.measured
    assert "0.1000" in turned.explain()
    assert {c.method for c in turned.candidates} == {c.method for c in plan.candidates}
    assert Plan.from_data(json.loads(json.dumps(turned.to_data()))) == turned


def test_what_was_measured_is_remembered(empty_cache) -> None:
    """A measured plan decides from then on, also for functions without `method=`."""
    model = mech.four_bar()
    before = lw.plan(model)
    assert not before.measured
    plan = lw.plan(model, measure=True)
    times = [c.measured["state"] for c in plan.candidates if c.measured]
    assert len(times) >= 2
    assert times == sorted(times)
    assert lw.plan(model) == plan
    assert lw.forward_dynamics(model).method == plan.method
    assert not lw.plan(model, use="batch").measured
    delassus = lw.plan(standing(), "delassus", measure=True)
    assert delassus.measured


def test_functions_are_timed_only_when_asked() -> None:
    model = mech.four_bar()
    near = {c.method for c in lw.plan(model).near}
    assert len(near) >= 2
    assert lw.forward_dynamics(model).method == lw.plan(model).method
    assert not lw.plan(model).measured
    chosen = lw.forward_dynamics(model, measure=True).method
    plan = lw.plan(model)
    assert plan.measured
    assert plan.method == chosen
    assert {c.method for c in plan.candidates if c.measured} == near
    assert plan.best.measured["state"] == min(c.measured["state"] for c in plan.candidates if c.measured)
    known = lw.forward_dynamics(model)
    assert known.method == chosen
    assert known.plan == plan, "timed again"


def test_functions_are_made_without_a_clock() -> None:
    """Prediction decides alone: the same method in every process on machines of a kind."""
    model = mech.chain(2)
    made = lw.forward_dynamics(model)
    assert made.method == lw.plan(model).method
    assert not made.plan.measured
    assert not lw.plan(model).measured


def test_penalties_without_loops_are_looked_at_once() -> None:
    why = {c.method: c.reason for c in lw.plan(standing()).candidates}
    assert "constrained_aba" in why["lcaba"]
    assert not why["constrained_aba"]
    assert not {c.method: c.reason for c in lw.plan(mech.four_bar()).candidates}["lcaba"]
    with pytest.raises(lw.LinkworkError, match="measure"):
        lw.plan(standing(), measure="ties")


def test_what_somebody_else_slows_down_is_left_out() -> None:
    rng = np.random.default_rng(0)
    disturbed = np.where(rng.random(101) < 0.7, rng.uniform(1.2, 3.0, 101), 1.0)
    assert undisturbed(list(disturbed)) == 1.0
    assert undisturbed(list(0.9 * disturbed)) == pytest.approx(0.9)
