"""Files of trajectories that are damaged, foreign or hostile give errors of ours, and are never run."""

from __future__ import annotations

import json
import os
import pickle
import zipfile

import numpy as np
import pytest

import linkwork as lw
from linkwork.errors import InputError, LinkworkError
from linkwork.robots.mechanisms import four_bar
from linkwork.simulation.records.trajectory import ABOUT, TABLES

FORMATS = (".csv", ".npz", ".parquet")


@pytest.fixture(scope="module")
def run() -> lw.Trajectory:
    model = four_bar()
    return lw.simulate(model, model.neutral(), None, lambda t, q, v: [np.sin(t), 0, 0], duration=0.01)


def same(one: lw.Trajectory, other: lw.Trajectory) -> bool:
    about = (one.names, one.units, one.events, one.model_name) == (
        other.names,
        other.units,
        other.events,
        other.model_name,
    )
    return about and all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("t", *TABLES))


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """One of six kinds of damage."""
    at = int(rng.integers(len(data)))
    many, kind = np.frombuffer(data, np.uint8).copy(), rng.integers(6)
    if kind == 0:
        return data[:at]
    if kind == 1:  # one bit
        many[at] ^= 1 << rng.integers(8)
    elif kind == 2:  # some bytes
        many[rng.integers(len(data), size=rng.integers(1, 20))] = rng.integers(256)
    elif kind == 3:  # a hole
        return data[:at] + data[at + int(rng.integers(1, 200)) :]
    elif kind == 4:  # a piece twice
        return data[:at] + data[max(at - int(rng.integers(1, 200)), 0) :]
    else:  # zeros, as a disk that was full leaves them
        many[at : at + int(rng.integers(1, 400))] = 0
    return many.tobytes()


@pytest.mark.parametrize("suffix", FORMATS)
def test_damage_is_found_or_harmless(run, tmp_path, suffix):
    """300 damaged files each: an error of ours that names the file, or what was written."""
    path = run.save(tmp_path / f"run{suffix}")
    data, rng, refused = path.read_bytes(), np.random.default_rng(17), []
    original = lw.Trajectory.read(path)
    for _ in range(300):
        path.write_bytes(mutated(data, rng))
        try:
            again = lw.Trajectory.read(path)
        except LinkworkError as problem:
            refused.append(str(problem))
        else:
            assert all(len(getattr(again, n)) == len(again.t) for n in TABLES)
            assert same(again, original)
    assert len(refused) > 150
    assert all(str(path) in problem for problem in refused)


def test_text_has_a_checksum_and_needs_none(run, tmp_path):
    """One digit that changed is found; other line ends and files that others wrote are read as they are."""
    path = run.save(tmp_path / "run.csv")
    first, rest = path.read_bytes().split(b"\n", 1)
    assert first.startswith(b"# linkwork.sha256 ")
    path.write_bytes(first + b"\n" + rest.replace(b"0.003", b"0.0031", 1))
    with pytest.raises(InputError, match=r"run\.csv.*checksum"):
        lw.Trajectory.read(path)
    for text in (rest, (first + b"\n" + rest).replace(b"\r\n", b"\n")):
        path.write_bytes(text)
        np.testing.assert_array_equal(lw.Trajectory.read(path).q, run.q)


def archive(path, **arrays):
    np.savez(path, **arrays)
    return path


@pytest.fixture
def parts(run):
    """What an .npz file holds."""
    return {n: getattr(run, n) for n in ("t", *TABLES)} | {"about": np.array(run._about())}


class Bomb:
    def __reduce__(self):
        return os.abort, ()


@pytest.mark.parametrize(("change", "message"), [
    ({"q": np.array([Bomb()], dtype=object)}, "'q' is an array of object"),
    ({"about": np.array([Bomb()], dtype=object)}, "'about' is an array of object"),
    ({"q": np.zeros((11, 3), np.float32)}, "float32"),
    ({"q": np.zeros((11, 3), complex)}, "complex"),
    ({"v": np.zeros((3, 3))}, "'v' has shape"),
    ({"v": np.zeros((11, 2))}, "names of 'v'"),
    ({"t": np.zeros(11)}, "growing"),
    ({"t": np.zeros(0), **{n: np.zeros((0, 3)) for n in TABLES}}, "growing"),
    ({"about": np.array("[1, 2]")}, "record"),
    ({"about": np.array("[" * 100_000)}, "cannot be read"),
    ({"about": np.array("{")}, "cannot be read"),
    ({"about": np.array('{"names": {"q": [1, 2, 3]}}')}, "names of 'q'"),
    ({"about": np.array(1.0)}, "'about'"),
])  # fmt: skip
def test_what_does_not_fit_is_named(parts, tmp_path, change, message):
    with pytest.raises(InputError, match=message) as raised:
        lw.Trajectory.read(archive(tmp_path / "run.npz", **{**parts, **change}))
    assert "run.npz" in str(raised.value)


@pytest.mark.parametrize("change", [
    {"model_name": 3}, {"events": 1}, {"events": [[1, 2]]}, {"events": [["soon", "bounce", "foot"]]},
    {"units": {"q": ["rad"]}}, {"units": {"mass": ["kg"]}}, {"names": None},
])  # fmt: skip
def test_what_it_says_about_itself_is_checked(run, parts, tmp_path, change):
    about = np.array(json.dumps({**json.loads(run._about()), **change}))
    with pytest.raises(InputError, match=r"run\.npz"):
        lw.Trajectory.read(archive(tmp_path / "run.npz", **{**parts, "about": about}))


def test_sizes_are_believed_only_up_to_that_of_the_file(parts, tmp_path):
    """A header of 10^15 rows, and 200 MB of zeros in 200 kB."""
    path = archive(tmp_path / "run.npz", **parts)
    with zipfile.ZipFile(path, "a") as file:
        header = str({"descr": "<f8", "fortran_order": False, "shape": (10**15, 3)}).ljust(117).encode() + b"\n"
        file.writestr("w.npy", b"")
    bad = tmp_path / "long.npz"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(bad, "w") as new:
        for name in old.namelist():
            start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
            new.writestr(name, start if name == "q.npy" else old.read(name))
    with pytest.raises(InputError, match="0 bytes for an array"):
        lw.Trajectory.read(bad)
    bomb = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, b"\0" * (200 * 2**20) if name == "q.npy" else old.read(name))
    with pytest.raises(InputError, match="claim to hold"):
        lw.Trajectory.read(bomb)


def test_parquet_files_that_claim_too_much_or_hold_something_else(run, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = 20_000_000
    parquet.write_table(arrow.table({"t": np.zeros(rows)}), tmp_path / "run.parquet")
    with pytest.raises(InputError, match="claim to hold"):
        lw.Trajectory.read(tmp_path / "run.parquet")
    for columns in ({"t": [1, 2]}, {"t": ["a"]}, {"t": [None, 1.0]}, {"x": [1.0]}, {"t": [1.0], "w.a": [1.0]}, {}):
        parquet.write_table(arrow.table(columns), tmp_path / "run.parquet")
        with pytest.raises(InputError, match=r"run\.parquet"):
            lw.Trajectory.read(tmp_path / "run.parquet")
    table = parquet.read_table(run.save(tmp_path / "run.parquet"))
    parquet.write_table(table.replace_schema_metadata({ABOUT: b"\xff{"}), tmp_path / "run.parquet")
    with pytest.raises(InputError, match="cannot be read"):
        lw.Trajectory.read(tmp_path / "run.parquet")


@pytest.mark.parametrize("text", [
    "", "\n", "t", "t\n", "t,q.a\n0\n", "t,q.a\n0,b\n", "t,q.a\n0,1_0\n", "t,q.a,q.a\n0,1,2\n", "t,a\n0,1\n",
    "t,q\n0,1\n", "t,q.a\n0,1\n0,2\n", "t,q.a\nnan,1\n", 't,"q.a\n0,1\n', "t,q.a\n0,1\n\n", "t,q.\x00\n0,\x00\n",
    "t,q.a\n0," + "1" * 200_000 + "\n",
], ids=range(16))  # fmt: skip
def test_tables_of_text_that_are_none(tmp_path, text):
    (tmp_path / "run.csv").write_bytes(text.encode())
    with pytest.raises(InputError, match=r"run\.csv"):
        lw.Trajectory.read(tmp_path / "run.csv")


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_no_file(tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
    with pytest.raises(InputError, match="no trajectory at"):
        lw.Trajectory.read(path)
    os.mkfifo(path)
    with pytest.raises(InputError, match="folder, pipe or device"):
        lw.Trajectory.read(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match="folder, pipe or device"):
        lw.Trajectory.read(path)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_that_may_not_be_read(run, tmp_path, monkeypatch, suffix):
    path = run.save(tmp_path / f"run{suffix}")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(InputError, match="Permission denied"):
        lw.Trajectory.read(path)


def test_a_pickle_is_not_run(tmp_path):
    for suffix in FORMATS:
        (tmp_path / f"run{suffix}").write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(InputError, match="run"):
            lw.Trajectory.read(tmp_path / f"run{suffix}")
