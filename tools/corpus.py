"""Load every robot file below a folder, and compare each with the library that its format belongs to.

    python tools/corpus.py FOLDER [--json FILE] [--seconds 60] [--only TEXT]

URDF (and xacro) beside Pinocchio, MJCF beside MuJoCo: mass matrix and bias forces in a random state, relative to their
largest entries; SDF is only loaded. Files may refer to others anywhere below the folder. They are read in a process of
their own, which may crash or take too long without ending the run. Every file gets one verdict:

    agrees     both load it, and the terms are equal to 1e-9 (1e-8 beside MuJoCo)
    loads      we load it; the other library does not, or there is none
    refused    we refuse it in a sentence; the other library loads it
    both       both refuse it
    differs    both load it, and the terms are not equal
    crash      anything else: an error that is not ours, a dead process, too much time
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import linkwork as lw
from linkwork import interop

SUFFIXES = (".urdf", ".xacro", ".xml", ".mjcf", ".sdf", ".world")
ROOTS = {"robot": "urdf", "mujoco": "mjcf", "sdf": "sdf"}
NEAR = {"urdf": 1e-9, "mjcf": 1e-8}
"""Relative to the largest entry: both sides read the same digits, but MuJoCo takes a centre of mass that is within some
1e-9 of the body's origin for the origin."""


def main() -> int:
    """Every file below the folder; the exit code says whether any differs or crashes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write every verdict, one JSON object per line")
    parser.add_argument("--seconds", type=float, default=60.0, help="the most time for a file")
    parser.add_argument("--only", default="", help="only files with this text in their path")
    given = parser.parse_args()
    os.environ["LINKWORK_ROBOTS"] = os.pathsep.join(
        filter(None, [str(given.folder), os.environ.get("LINKWORK_ROBOTS")])
    )
    found: list[dict[str, str]] = []
    files = [(f, kind) for f in robot_files(given.folder) if given.only in str(f) and (kind := format_of(f))]
    with Reader(given.seconds) as reader:
        for file, kind in files:
            verdict, note = reader.read(file, kind)
            found.append(
                {"file": str(file.relative_to(given.folder)), "format": kind, "verdict": verdict, "note": note}
            )
            if verdict in ("refused", "differs", "crash"):
                print(f"{verdict:8} {found[-1]['file']}: {note}", flush=True)
    if given.json is not None:
        given.json.write_text("".join(json.dumps(x) + "\n" for x in found))
    print(table(found))
    return int(any(x["verdict"] in ("differs", "crash") for x in found))


def robot_files(folder: Path) -> Iterator[Path]:
    """Files that may be robots, each content once."""
    seen = set()
    for file in sorted(folder.rglob("*")):
        if file.suffix in SUFFIXES and file.is_file() and (key := (file.parent, file.read_bytes())) not in seen:
            seen.add(key)
            yield file


def format_of(file: Path) -> str | None:
    """The format by the root element; None for XML that is no robot."""
    from linkwork.io.xml import parse

    try:
        return ROOTS.get(parse(file.read_bytes(), str(file)).tag)
    except lw.LinkworkError:
        text = file.read_bytes()
        return next((kind for tag, kind in ROOTS.items() if f"<{tag}".encode() in text), None)


class Reader:
    """A process that reads files, started again when it dies or takes too long."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.process: multiprocessing.process.BaseProcess | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def read(self, file: Path, kind: str) -> tuple[str, str]:
        """The verdict about a file, and what led to it."""
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=serve, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
        try:
            self.pipe.send((file, kind))
            if self.pipe.poll(self.seconds):
                verdict, note = self.pipe.recv()
                return str(verdict), str(note)
            note = f"more than {self.seconds:g} s"
        except (EOFError, OSError):
            self.process.join(1)
            note = f"the process ended with {self.process.exitcode}"
        self._stop()
        return "crash", note

    def _stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def serve(pipe: Connection) -> None:
    """Answer with verdicts about files until nobody asks."""
    while True:
        try:
            file, kind = pipe.recv()
        except EOFError:
            return
        pipe.send(judge(file, kind))


def judge(file: Path, kind: str) -> tuple[str, str]:
    """The verdict about one file in this process."""
    refusal = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = lw.load(file, passive=False)
    except lw.LinkworkError as problem:
        refusal = str(problem).splitlines()[0]
    except Exception as problem:  # whatever it is, it should have been a sentence
        return "crash", repr(problem)
    try:
        compare = PEERS.get(kind, lambda file: None)(file)
    except (ValueError, RuntimeError, OSError) as problem:
        return ("both" if refusal else "loads"), refusal or str(problem).splitlines()[0]
    if refusal or compare is None:
        return ("refused" if refusal and compare is not None else "both" if refusal else "loads"), refusal
    try:
        error = compare(model)
    except Exception as problem:
        return "crash", repr(problem)
    return ("agrees" if error <= NEAR[kind] else "differs"), f"{error:.1e}"


def errors(model: lw.Model, q: np.ndarray, v: np.ndarray, M: np.ndarray, c: np.ndarray) -> float:
    """The larger error of mass matrix and bias forces, relative to their largest entries."""
    if not model.nv:
        return 0.0
    ours = lw.terms(model, ("M", "c"), backend="numpy")(q, v)
    scale = np.abs(M).max(initial=1e-300)
    heavy = max(np.abs(c).max(initial=0.0), scale)
    return float(max(np.abs(ours.M - M).max() / scale, np.abs(ours.c - c).max() / heavy))


def state(model: lw.Model) -> tuple[np.ndarray, np.ndarray]:
    """A random state of the tree."""
    return model.random_q(0), np.random.default_rng(0).uniform(-1, 1, model.nv)


def beside_pinocchio(file: Path) -> Callable[[lw.Model], float]:
    """Compares with Pinocchio's model of a URDF file."""
    import pinocchio as pin

    if b"ros.org/wiki/xacro" in file.read_bytes() or file.suffix == ".xacro":
        raise ValueError("Pinocchio does not read xacro")
    peer = pin.buildModelFromUrdf(str(file))

    def compare(model: lw.Model) -> float:
        q, v = state(model)
        theirs = interop.pinocchio(model, peer)
        T, data = theirs.velocity_matrix(q), peer.createData()
        peer.gravity.linear = model.gravity
        M = pin.crba(peer, data, theirs.q_to(q))
        M = np.triu(M) + np.triu(M, 1).T
        c = pin.nonLinearEffects(peer, data, theirs.q_to(q), theirs.v_to(q, v))
        return errors(model, q, v, T.T @ M @ T, T.T @ c)

    return compare


def beside_mujoco(file: Path) -> Callable[[lw.Model], float]:
    """Compares with MuJoCo's model of an MJCF file."""
    import mujoco

    peer = mujoco.MjModel.from_xml_path(str(file))

    def compare(model: lw.Model) -> float:
        q, v = state(model)
        theirs, data = interop.mujoco(model, peer), mujoco.MjData(peer)
        data.qpos[:], data.qvel[:] = theirs.q_to(q), theirs.v_to(q, v)
        mujoco.mj_fwdPosition(peer, data)
        mujoco.mj_fwdVelocity(peer, data)
        M = np.zeros((peer.nv, peer.nv))
        for column, unit in zip(M, np.eye(peer.nv), strict=True):
            mujoco.mj_mulM(peer, data, column, unit)
        drift, T = theirs.a_to(q, v, np.zeros(model.nv)), theirs.velocity_matrix(q)
        return errors(model, q, v, T.T @ M @ T, T.T @ (data.qfrc_bias + M @ drift))

    return compare


PEERS: dict[str, Callable[[Path], Any]] = {"urdf": beside_pinocchio, "mjcf": beside_mujoco}


def table(found: list[dict[str, str]]) -> str:
    """How many files of each format got each verdict."""
    verdicts = ("agrees", "loads", "refused", "both", "differs", "crash")
    lines = ["| format | files | " + " | ".join(verdicts) + " |", "|---|" + "---:|" * (len(verdicts) + 1)]
    for kind in ROOTS.values():
        counts = Counter(x["verdict"] for x in found if x["format"] == kind)
        lines.append(f"| {kind} | {counts.total()} | " + " | ".join(str(counts[v]) for v in verdicts) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
