"""Contacts in replays: places, forces, cones, and another colour where they slip."""

from __future__ import annotations

import numpy as np
import pytest

import linkwork as lw
from linkwork.backends.numpy_ import NUMPY
from linkwork.errors import InputError
from linkwork.model import Motion
from linkwork.viewer.contact_display import SLIPPING, STICKING, place_of, with_touches
from linkwork.viewer.states import states_of

SIDE = 0.1


@pytest.fixture(scope="module")
def slid():
    """A cube that slides for 0.2 s and then stands."""
    b = lw.Builder("cube")
    b.link("cube", joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3) / 600))
    model, contacts = b.build(), [lw.BoxContact("cube", friction=0.5, size=(SIDE,) * 3, corner=k) for k in range(4)]
    q, v = np.array([0, 0, SIDE / 2, 0, 0, 0, 1.0]), np.array([1.0, 0, 0, 0, 0, 0])
    run = lw.simulate(model, q, v, contacts=contacts, duration=0.3, dt=2e-3, backend="numpy")
    return model, contacts, run


def test_where_contacts_are_and_whether_they_slip(slid) -> None:
    model, contacts, run = slid
    states, touches = with_touches(states_of(model, run, 50.0), model, run, contacts, lw.Ground())
    assert np.abs(states.ends[..., 2]).max() < 1e-9  # on the ground
    offsets = states.ends[:, :, 0] - states.positions[:, 1:2]
    assert np.abs(np.abs(offsets[..., :2]) - SIDE / 2).max() < 1e-3
    assert (states.active[1] == SLIPPING).all()
    assert (states.active[-1] == STICKING).all()
    assert states.forces[-1].sum(axis=0) == pytest.approx([0, 0, 9.81], abs=1e-6)
    assert touches.normals[0, 0] == pytest.approx([0, 0, 1])
    assert [c["friction"] for c in touches.contacts] == [0.5] * 4


def test_places_of_pairs() -> None:
    """Halfway from one body to the other, whatever the order of the links."""
    b = lw.Builder("two")
    for name in ("one", "other"):
        b.link(name, joint="free", inertia=lw.BodyInertia(1.0, np.zeros(3), np.eye(3)))
    model, rng = b.build(), np.random.default_rng(0)
    q = rng.standard_normal(14)
    q[3:7] /= np.linalg.norm(q[3:7])
    q[10:] /= np.linalg.norm(q[10:])
    motion = Motion(model, q[:, None], np.zeros((12, 1)), NUMPY)
    (pair,) = lw.touching(lw.Ball("one", radius=0.2), lw.Ball("other", radius=0.3))
    distance = np.linalg.norm(q[7:10] - q[:3])
    halfway = q[:3] + (0.2 + distance - 0.3) / 2 * (q[7:10] - q[:3]) / distance
    assert place_of(pair.evaluate(motion, lw.Ground()), motion) == pytest.approx(halfway)


def coloured(page, action: str) -> dict[str, int]:
    """How many pixels have the colours of contacts that slip (yellow) and stick (green), after a script."""
    before = page.evaluate("linkwork.drawn")
    page.evaluate(action)
    page.wait_for_function(f"linkwork.drawn > {before} && linkwork.fine")
    return page.evaluate("""() => { const c = document.getElementById("view"), g = c.getContext("webgl2");
      const p = new Uint8Array(4 * c.width * c.height), out = { slip: 0, stick: 0 };
      g.readPixels(0, 0, c.width, c.height, g.RGBA, g.UNSIGNED_BYTE, p);
      for (let k = 0; k < p.length; k += 4) {
        if (p[k] > p[k + 2] + 70 && p[k + 1] > p[k + 2] + 55 && p[k] < p[k + 1] + 70) out.slip++;
        if (p[k + 1] > p[k] + 45 && p[k + 1] > p[k + 2] + 15) out.stick++;
      }
      return out; }""")


def test_the_page_draws_them(slid, page, tmp_path) -> None:
    model, contacts, run = slid
    shown = lw.write_html(tmp_path / "run.html", model, run, contacts=contacts)
    page.goto(shown.as_uri())
    page.wait_for_function("window.linkwork && linkwork.drawn > 0")
    sliding, standing = (coloured(page, f"linkwork.seek({t})") for t in (0.02, 0.28))
    # some pixels at the edges of arrows are yellowish, too
    assert sliding["slip"] > 20 + 2 * standing["slip"]
    assert standing["stick"] > 20 + 2 * sliding["stick"]


def test_contacts_of_another_motion_are_refused(slid, tmp_path) -> None:
    model, contacts, run = slid
    with pytest.raises(InputError, match="not the contacts of the motion"):
        lw.write_html(tmp_path / "a.html", model, run, contacts=contacts[:2])
    with pytest.raises(InputError, match="or for the trajectory"):
        lw.write_html(tmp_path / "a.html", model, contacts=contacts)


def test_rollouts_are_shown_as_simulations_are(slid, tmp_path) -> None:
    """The motion of one state of a batch: the same places, forces and slipping."""
    model, contacts, simulated = slid
    run = lw.rollout(model, contacts=contacts, dt=2e-3, record=("forces",), backend="numpy")
    result = run(np.tile(simulated.q[0], (2, 1)), [[0.0] * 6, simulated.v[0]], steps=150)
    motion = run.trajectory(result, 1)
    states, _ = with_touches(states_of(model, motion, 50.0), model, motion, contacts, lw.Ground())
    assert (states.active[1] == SLIPPING).all()
    assert (states.active[-1] == STICKING).all()
    assert states.forces[-1].sum(axis=0) == pytest.approx([0, 0, 9.81], abs=1e-6)
    assert motion.events[0] == lw.Event(2e-3, "touchdown", contacts[0].name)
    assert lw.write_html(tmp_path / "slid.html", model, motion, contacts=contacts).exists()
    unrecorded = lw.rollout(model, contacts=contacts, backend="numpy")
    with pytest.raises(InputError, match="forces"):
        unrecorded.trajectory(unrecorded(simulated.q[0], simulated.v[0], steps=1))
    with pytest.raises(InputError, match="state=2"):
        run.trajectory(result, 2)
