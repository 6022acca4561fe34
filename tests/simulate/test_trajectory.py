"""Trajectories are named, written and read again; the command line simulates too."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli import app
from linkwork.errors import InputError, MissingExtra, NotFound
from linkwork.robots.mechanisms import four_bar


@pytest.fixture(scope="module")
def run() -> lw.Trajectory:
    model = four_bar()
    return lw.simulate(model, model.neutral(), None, lambda t, q, v: [np.sin(t), 0, 0], duration=0.02)


def test_columns_have_names(run):
    assert run.names["q"] == ("crank_joint", "coupler_joint", "rocker_joint")
    assert len(run.names["lam"]) == run.lam.shape[1] == 5
    np.testing.assert_array_equal(run.column("tau", "crank_joint"), np.sin(run.t))
    with pytest.raises(NotFound, match="crank_joint"):
        run.column("q", "crank")
    with pytest.raises(NotFound, match="lam"):
        run.column("forces", "crank_joint")


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
def test_what_is_written_is_read_again_to_the_bit(run, tmp_path, suffix):
    if suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(MissingExtra, match=r"linkwork\[parquet\]"):
            run.save(tmp_path / "run.parquet")
        return
    again = lw.Trajectory.read(run.save(tmp_path / f"run{suffix}"))
    for name in ("t", "q", "v", "tau", "lam", "active"):
        np.testing.assert_array_equal(getattr(again, name), getattr(run, name))
    assert again.names == run.names


def test_events_are_kept(tmp_path):
    b = lw.Builder("ball")
    b.link("ball", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    run = lw.simulate(b.build().with_constraints(lw.point("ball")), [0, 0, 0.01, 0, 0, 0, 1], duration=0.1, ground=0.0)
    assert run.events
    assert lw.Trajectory.read(run.save(tmp_path / "run.npz")).events == run.events
    assert "ball" in repr(run)


def test_other_formats_are_refused(run, tmp_path):
    with pytest.raises(NotFound, match="parquet"):
        run.save(tmp_path / "run.xlsx")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not a trajectory"):
        lw.Trajectory.read(tmp_path / "other.csv")


def test_plot_or_the_name_of_the_extra(run):
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(MissingExtra, match=r"linkwork\[plot\]"):
            run.plot()
        return
    import matplotlib as mpl

    mpl.use("Agg")
    figure = run.plot(("q", "tau"), ["crank_joint"])
    assert len(figure.axes) == 2
    assert len(figure.axes[0].lines) == 1


URDF = """<robot name="swing"><link name="base"/><link name="bob"><inertial><origin xyz="0 0 -1"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="bob"/><axis xyz="0 1 0"/></joint></robot>"""


def test_the_command_line(tmp_path):
    robot, out = tmp_path / "swing.urdf", tmp_path / "swing.csv"
    robot.write_text(URDF)
    arguments = ["simulate", str(robot), "--duration", "0.05", "--q", "0.3", "--kd", "0.1", "--integrator", "rk4"]
    shown = CliRunner().invoke(app, [*arguments, "-o", str(out)])
    assert shown.exit_code == 0, shown.output
    assert "hinge" in shown.output
    assert len(lw.Trajectory.read(out)) == 51
    facts = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert facts["states"] == 51
    assert abs(facts["q"][0]) < 0.3
