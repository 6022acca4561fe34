"""`linkwork export`: every function of a model, under names that do not collide, with a header that says what it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from inspect import Parameter, signature

import pytest
from typer.testing import CliRunner

import linkwork as lw
from linkwork.cli.export import factories
from linkwork.cli.main import app
from linkwork.errors import InputError
from linkwork.robots.mechanisms import arm, four_bar

URDF = """<robot name="swing"><link name="base"/><link name="bob"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial></link><joint name="hinge" type="continuous"><parent link="base"/>
<child link="bob"/><axis xyz="0 1 0"/></joint><transmission name="drive"><type>transmission_interface/SimpleTransmission
</type><joint name="hinge"/><actuator name="motor"><mechanicalReduction>2</mechanicalReduction></actuator>
</transmission></robot>"""
COMPILER = shutil.which("cc")


@pytest.fixture
def robot(tmp_path, in_tmp_path):
    (tmp_path / "swing.urdf").write_text(URDF)
    return tmp_path


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.mark.parametrize("function", factories())
def test_every_function_can_be_exported(robot, function):
    """Kinematics, Jacobians and dynamics: with a contact where they take one, and a frame where they need one."""
    contact = [] if function == "inverse_dynamics" else ["--contact", "bob:3d"]
    needed = signature(factories()[function]).parameters.get("frames")
    frame = ["--frame", "bob"] if needed is not None and needed.default is Parameter.empty else []
    term = ["--term", "M", "--term", "com"] if function == "terms" else []
    name = {"regressor": "torque_regressor"}.get(function, function)
    told = run("export", "swing.urdf", "-o", "out", "--function", function, *contact, *frame, *term)
    assert f"swing_{name}.h" in told
    if COMPILER:
        strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O0"]
        subprocess.run([COMPILER, *strict, "-c", "-o", "out.o", f"out/swing_{name}.c"], check=True)


@pytest.mark.parametrize(("function", "option"), [("terms", "--term"), ("frame_jacobian", "--frame")])
def test_what_a_function_needs_is_said(robot, function, option):
    done = CliRunner().invoke(app, ["export", "swing.urdf", "-o", "out", "--function", function])
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == f"{function} needs {option}"


def test_several_functions_and_robots_share_a_folder(robot):
    (robot / "other.urdf").write_text(URDF.replace('"swing"', '"other"'))
    run("export", "swing.urdf", "-o", "out")
    run("export", "swing.urdf", "-o", "out", "--function", "forward_kinematics", "--frame", "bob")
    run("export", "other.urdf", "-o", "out")
    run("export", "other.urdf", "-o", "out", "--function", "mass_matrix", "--name", "inertia of other")
    names = {"swing_forward_dynamics", "swing_forward_kinematics", "other_forward_dynamics", "inertia_of_other"}
    assert {path.stem for path in (robot / "out").glob("*.c")} == names
    project = (robot / "out" / "CMakeLists.txt").read_text()
    assert set(re.findall(r"(\w+)\.c\b", project)) == names


def test_a_foreign_project_is_left_and_said(robot):
    (robot / "out").mkdir()
    (robot / "out" / "CMakeLists.txt").write_text("project(mine)\n")
    assert "was left as it is" in run("export", "swing.urdf", "-o", "out")


def test_wrong_options_are_refused(robot):
    for words, told in (
        (["--function", "nothing"], "no function to export called 'nothing'"),
        (["--frame", "bob", "--function", "constraint_error"], "has no option --frame"),
    ):
        done = CliRunner().invoke(app, ["export", "swing.urdf", "-o", "out", *words])
        assert told in str(done.exception)


def test_the_header_says_what_it_is(tmp_path):
    model = four_bar()
    fd = lw.forward_dynamics(model, method="lcaba", prox=lw.Prox(mu=3e5, tolerance=1e-9, max_iterations=7))
    fd.export(tmp_path, "bars")
    header = (tmp_path / "bars.h").read_text()
    assert f"Linkwork {lw.__version__}" in header
    for text in (model.name, "lcaba", "kg, s, N, Nm", "default 300000", "default 1e-09", "default 6"):
        assert text in header
    assert "#define BARS_MU_DEFAULT 300000.0" in header
    assert "#define BARS_MAX_ITERATIONS_DEFAULT 6.0" in header  # after the first
    places = [header.index(f" {l.joint_name} (") for l in model.links[1:] if l.joint.nq]
    assert places == sorted(places)
    assert all(c.name in header for c in model.constraints)


def test_the_header_of_a_term_says_from_where_it_is_seen_and_nothing_of_constraints(tmp_path):
    model = four_bar()
    lw.frame_jacobian(model, "coupler_end", reference="world_aligned").export(tmp_path, "tip")
    header = (tmp_path / "tip.h").read_text()
    assert "[linear; angular] in 'world_aligned'" in header
    assert "Jacobian" in header
    assert not any(c.name in header for c in model.constraints)


def test_names_do_not_end_the_comment(tmp_path):
    model = arm(2)
    object.__setattr__(model, "name", "*/ #error 1 /* \n*/ #error 2")
    lw.mass_matrix(model).export(tmp_path, "arm")
    header = (tmp_path / "arm.h").read_text()
    assert header.count("*/") == header.count("/*") == 1
    assert "#error" not in "\n".join(line for line in header.splitlines() if not line.startswith(" *"))


def test_another_function_of_that_name_is_not_replaced(robot):
    """By a second export, or where the user has a file of that name; the same function may be exported again."""
    mass = ["export", "swing.urdf", "-o", "out", "--function", "mass_matrix", "--name", "arm"]
    bias = [*mass[:5], "inverse_dynamics", *mass[6:]]
    run(*mass)
    before = {path.name: path.read_bytes() for path in (robot / "out").iterdir()}
    run(*mass)
    done = CliRunner().invoke(app, bias)
    assert isinstance(done.exception, InputError)
    assert "arm.c" in str(done.exception)
    assert "--force" in str(done.exception)
    assert {path.name: path.read_bytes() for path in (robot / "out").iterdir()} == before
    run(*bias, "--force")
    assert (robot / "out" / "arm.c").read_bytes() != before["arm.c"]
    (robot / "out" / "mine.h").write_text("int mine;")
    with pytest.raises(InputError, match=r"mine\.h.*another name"):
        lw.mass_matrix(arm(2)).export(robot / "out", "mine")
    assert not (robot / "out" / "mine.c").exists()
    assert lw.mass_matrix(arm(2)).export(robot / "out", "mine", overwrite=True)
