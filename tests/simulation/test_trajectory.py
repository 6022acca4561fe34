"""Trajectories are named, written and read again; the command line simulates too."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli.main import app
from linkwork.errors import InputError, MissingExtra, NotFound
from linkwork.robots.mechanisms import four_bar
from linkwork.simulation.records.trajectory import column_units


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
    again = lw.Trajectory.read(run.save(tmp_path / f"run{suffix}"))
    for name in ("t", "q", "v", "tau", "lam", "active"):
        np.testing.assert_array_equal(getattr(again, name), getattr(run, name))
    assert again.names == run.names


def test_parquet_is_a_table_that_others_read(run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(run.save(tmp_path / "run.parquet"))
    assert table.column_names[:2] == ["t", "q.crank_joint"]
    np.testing.assert_array_equal(table["v.rocker_joint"].to_numpy(), run.column("v", "rocker_joint"))


@pytest.fixture(scope="module")
def fall() -> lw.Trajectory:
    b = lw.Builder("ball")
    b.link("ball", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    return lw.simulate(b.build().with_constraints(lw.point("ball")), [0, 0, 0.01, 0, 0, 0, 1], duration=0.1, ground=0.0)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_events_units_and_the_name_are_kept(fall, tmp_path, suffix):
    assert fall.events
    again = lw.Trajectory.read(fall.save(tmp_path / f"run{suffix}"))
    assert (again.events, again.units, again.model_name) == (fall.events, fall.units, "ball")
    assert "ball" in repr(again)


def test_units_are_those_of_the_joints_and_rows(fall):
    assert fall.units["q"] == ("m",) * 3 + ("1",) * 4
    assert fall.units["v"] == ("m/s",) * 3 + ("rad/s",) * 3
    assert fall.units["tau"] == ("N",) * 3 + ("N m",) * 3
    assert fall.units["lam"] == ("N",) * 3
    b, body = lw.Builder(), lw.BodyInertia(1.0, np.zeros(3), np.eye(3))
    for name, joint in (("sleeve", "cylindrical"), ("table", "planar"), ("ball", "spherical"), ("screw", "helical")):
        b.link(name, joint=joint, inertia=body)
    units = column_units(b.build().with_constraints(lw.Hinge("sleeve", "ball")))
    assert units["q"] == ("m", "rad", "m", "m", "1", "1", "1", "1", "1", "1", "rad")
    assert units["v"] == ("m/s", "rad/s", "m/s", "m/s", "rad/s", "rad/s", "rad/s", "rad/s", "rad/s")
    assert units["lam"] == ("N", "N", "N", "N m", "N m")


def test_other_formats_are_refused(run, tmp_path):
    with pytest.raises(NotFound, match="parquet"):
        run.save(tmp_path / "run.xlsx")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not a trajectory"):
        lw.Trajectory.read(tmp_path / "other.csv")


@pytest.fixture
def figures():
    """Matplotlib without a screen; figures are closed behind the test."""
    mpl = pytest.importorskip("matplotlib")
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_a_plot_has_names_units_and_the_numbers(run, figures):
    figure = run.plot(("q", "tau"), ["crank_joint"])
    angle, force = figure.axes
    assert (angle.get_ylabel(), force.get_ylabel()) == ("angle $q$ [rad]", r"joint force $\tau$ [N m]")
    assert force.get_xlabel() == "time $t$ [s]"
    assert [t.get_text() for t in angle.get_legend().get_texts()] == ["crank_joint"]
    np.testing.assert_array_equal(angle.lines[0].get_ydata(), run.column("q", "crank_joint"))
    with pytest.raises(NotFound, match="crank_joint"):
        run.plot(names=["crank"])


def test_a_plot_has_a_panel_for_every_unit_and_marks_events(fall, figures, tmp_path):
    figure = fall.plot(("q", "v", "active"))
    labels = [a.get_ylabel() for a in figure.axes]
    assert labels == ["position $q$ [m]", "orientation $q$", "velocity $v$ [m/s]", "velocity $v$ [rad/s]", "active"]
    assert "touchdown" in "".join(t.get_text() for t in figure.axes[0].texts)
    figure.savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(("package", "extra", "call"), [
    ("matplotlib.pyplot", "plot", lambda run, folder: run.plot()),
    ("pyarrow", "parquet", lambda run, folder: run.save(folder / "run.parquet")),
])  # fmt: skip
def test_what_is_not_installed_is_named(run, tmp_path, missing, package, extra, call):
    missing(package)
    with pytest.raises(MissingExtra, match=rf"linkwork\[{extra}\]"):
        call(run, tmp_path)


URDF = """<robot name="swing"><link name="base"/><link name="bob"><inertial><origin xyz="0 0 -1"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="bob"/><axis xyz="0 1 0"/></joint></robot>"""


def test_the_command_line(tmp_path):
    robot, out = tmp_path / "swing.urdf", tmp_path / "swing.csv"
    robot.write_text(URDF)
    arguments = ["simulate", str(robot), "--duration", "0.05", "--q", "0.3", "--kd", "0.1", "--integrator", "rk4"]
    shown = CliRunner().invoke(app, [*arguments, "-o", str(out), "--plot", str(tmp_path / "swing.svg")])
    assert shown.exit_code == 0, shown.output
    assert "hinge" in (tmp_path / "swing.svg").read_text()
    assert "hinge" in shown.output
    assert len(lw.Trajectory.read(out)) == 51
    facts = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert facts["states"] == 51
    assert abs(facts["q"][0]) < 0.3
