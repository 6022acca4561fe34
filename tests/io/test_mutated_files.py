"""Real files, damaged at random: a model or a `LinkworkError`, never another exception, never a hang."""

from __future__ import annotations

import contextlib
import random
import warnings
import xml.etree.ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loaded import NO_ROBOTS

from linkwork.errors import LinkworkError
from linkwork.io import xml, zoo
from linkwork.io.load import load

JUNK = [
    "",
    " ",
    "0",
    "-1",
    "1",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1e308",
    "-1e29",
    "1e-320",
    "0 0 0",
    "1 2",
    "1 2 3 4 5 6 7",
    "x",
    "world",
    "__model__",
    "a::b",
    "true",
    "\u00e9\u4e16",
    "fixed",
    "floating",
    "ball",
    "universal",
    "revolute",
    "planar",
    "free",
    "hinge",
    "1_0",
    "0x10",
    "../..",
    "-",
    "1,2,3",
    "9" * 400,
]
CHANGES = ("delete", "duplicate", "attribute", "drop attribute", "text", "swap", "rename", "move")


def files(*suffixes: str) -> list[bytes]:
    """Files of moderate size; the quickest ones, so that many examples fit into the time."""
    found = [r.path for r in zoo.robots() if r.path.suffix in suffixes]
    chosen = sorted(found, key=lambda p: p.stat().st_size)[:: max(1, len(found) // 12)]
    return [p.read_bytes() for p in chosen if p.stat().st_size < 200_000]


def damaged(data: bytes, seed: int) -> bytes:
    """One to four changes of the tree, then perhaps of the bytes."""
    rng = random.Random(seed)
    root = ET.fromstring(data)
    for _ in range(rng.randint(1, 4)):
        change(root, rng)
    out = ET.tostring(root)
    if rng.random() < 0.15:
        out = out[: rng.randrange(len(out))]
    if rng.random() < 0.15:
        at = rng.randrange(len(out) + 1)
        out = out[:at] + rng.randbytes(rng.randint(1, 8)) + out[at + rng.randint(0, 8) :]
    return out


def change(root: ET.Element, rng: random.Random) -> None:
    everything = list(root.iter())
    parent = rng.choice([e for e in everything if len(e)] or [root])
    one = rng.choice(everything)
    kind = rng.choice(CHANGES)
    if kind == "delete" and len(parent):
        parent.remove(rng.choice(list(parent)))
    elif kind == "duplicate" and len(parent):
        parent.append(rng.choice(list(parent)))
    elif kind == "attribute" and one.attrib:
        one.set(rng.choice(list(one.attrib)), rng.choice(JUNK))
    elif kind == "drop attribute" and one.attrib:
        del one.attrib[rng.choice(list(one.attrib))]
    elif kind == "text":
        one.text = rng.choice(JUNK)
    elif kind == "swap":
        other = rng.choice([e for e in everything if e.tag == one.tag])
        one.attrib, other.attrib, one.text, other.text = other.attrib, one.attrib, other.text, one.text
    elif kind == "rename":
        one.tag = rng.choice(everything).tag
    elif kind == "move" and len(parent):
        child = rng.choice(list(parent))
        if one not in child.iter():
            parent.remove(child)
            one.append(child)


def survives(data: bytes, base: str | None) -> bool:
    """Whether the damaged text still loads; every failure is one of ours."""
    text = data.decode("utf-8", "surrogateescape").lstrip()
    if not text.startswith("<"):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load(text, base)
        except LinkworkError:
            return False
    assert len(model.neutral()) == model.nq
    return True


FUZZ = {"deadline": 20_000, "derandomize": True, "suppress_health_check": list(HealthCheck), "database": None}
BASES = st.sampled_from([None, None, "fixed", "free", "planar"])


@pytest.mark.parametrize(("suffix", "count"), [(".urdf", 200), (".sdf", 80), (".xml", 80)])
def test_damaged_files(suffix: str, count: int) -> None:
    if suffix == ".xml":
        pytest.importorskip("mujoco")
    originals = files(suffix)
    if not originals:
        pytest.skip(NO_ROBOTS)
    loaded = []

    @settings(max_examples=count, **FUZZ)  # type: ignore[arg-type]
    @given(st.sampled_from(range(len(originals))), st.integers(0, 2**32), BASES)
    def run(which: int, seed: int, base: str | None) -> None:
        loaded.append(survives(damaged(originals[which], seed), base))

    run()
    assert any(loaded)
    assert not all(loaded)


@settings(max_examples=300, **FUZZ)  # type: ignore[arg-type]
@given(st.one_of(st.binary(max_size=200), st.binary(max_size=100).map(lambda b: b"<robot>" + b + b"</robot>")))
def test_random_bytes(data: bytes) -> None:
    with contextlib.suppress(LinkworkError):
        xml.parse(data, "bytes")
    survives(data, None)
