"""The tree of independent joints, with the rotors' inertia reflected into armature.

    H~ = sum over rotors of G_r^T (S^T I S) G_r,   G_r the gear ratios:   N^2 I for a gear

chignoli2023_clusters, section II-C. Gyroscopic and coupled effects of rotors are lost; `c_aba` and `c_rnea` have them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from linkwork.algorithms.common.embedding import embeddings
from linkwork.backends.numpy_ import NUMPY
from linkwork.checks import FLAG, checked
from linkwork.constraints.coupling import Coupling
from linkwork.constraints.custom import Custom
from linkwork.errors import UnsupportedError
from linkwork.model.actuator import Actuator
from linkwork.model.body import BodyInertia
from linkwork.model.model import MODEL, Frame, Model
from linkwork.model.motion import Motion
from linkwork.model.tendon import Tendon
from linkwork.structure.clusters import ClusterTree, clusters

T = TypeVar("T", Actuator, Tendon)


@checked(model=MODEL, reflected=FLAG, lump=FLAG)
def approximate(model: Model, *, reflected: bool = True, lump: bool = True) -> Model:
    """The model without its rotors and the couplings that drive them: a plain tree, for any method.

    `reflected` adds the diagonal of the rotors' reflected inertia to the armature of the joints that they turn with.
    `lump` adds the rotors' bodies to the links that carry them, as if they did not spin; the paper omits them.
    Constraints that are in no cluster stay. Of differentials (`Custom`) the rotors must be the dependent joints
    (`model.with_independent`), and their ratios are those of the neutral position. UnsupportedError if a dependent
    joint carries links, or belongs to a linkage.

    Examples:
        >>> lw.approximate(geared_chain(2)).nv
        2
    """
    tree, t = clusters(model), model.topology
    gone = rotors(tree)
    kept = [i for i in range(len(model.links)) if i not in gone]
    place = {i: n for n, i in enumerate(kept)}
    H = np.diag(reflected_inertia(model)) if reflected else np.zeros(len(tree.velocities))
    extra = dict(zip((int(v) for v in tree.velocities), H, strict=True))
    links = []
    for i in kept:
        link, inertia, weightless = model.links[i], model.links[i].inertia, model.links[i].weightless
        for r in (r for r in gone if t.parent[r] == i and lump and i):
            inertia = inertia + model.links[r].inertia.moved(model.links[r].placement)
            weightless = weightless + model.links[r].weightless.moved(model.links[r].placement)
        armature = link.armature + np.array([extra[k] for k in range(t.v_slices[i].start, t.v_slices[i].stop)])
        links.append(
            replace(link, parent=place[link.parent], inertia=inertia, armature=armature, weightless=weightless)
        )
    frames = {n: Frame(place[f.link], f.placement) for n, f in model.frames.items() if f.link in place}
    return replace(
        model,
        name=f"{model.name} (approximate)",
        links=tuple(links),
        frames=frames,
        independent=(),
        constraints=tuple(model.constraints[n] for n in tree.outer),
        actuators=_reflected(model, tree, model.actuators),
        tendons=_reflected(model, tree, model.tendons),
    )


def _reflected(model: Model, tree: ClusterTree, geared: tuple[T, ...]) -> tuple[T, ...]:
    """Actuators and tendons of rotors as those of the joints that these turn with: gears G^T g."""
    if not geared:
        return ()
    t, out = model.topology, list[T]()
    G, _ = embeddings(Motion(model, model.neutral()[:, None], np.zeros((model.nv, 1)), NUMPY), tree)
    place = {int(v): n for n, v in enumerate(tree.velocities)}
    for a in geared:
        g = np.zeros(model.nv)
        for name, gears in a.joints.items():
            g[t.v_slices[model.joint(name)]] += gears
        own, joints = G.T @ g, dict[str, tuple[float, ...]]()
        for i in t.links:
            span = range(t.v_slices[i].start, t.v_slices[i].stop)
            if any(k in place and own[place[k]] for k in span):
                joints[model.links[i].joint_name] = tuple(float(own[place[k]]) for k in span)
        out.append(replace(a, joints=joints))
    return tuple(out)


def reflected_inertia(model: Model) -> np.ndarray:
    """H~ over the independent velocities, with the ratios in neutral position; not diagonal with belts."""
    tree, t = clusters(model), model.topology
    G, _ = embeddings(Motion(model, model.neutral()[:, None], np.zeros((model.nv, 1)), NUMPY), tree)
    H = np.zeros((G.shape[1], G.shape[1]))
    for r in rotors(tree):
        at = t.v_slices[r]
        S = np.asarray(model.links[r].joint.subspace(model.links[r].joint.neutral()[:, None], NUMPY))
        inertia = S.T @ spatial(model.links[r].inertia) @ S + np.diag(model.links[r].armature)
        H += G[at].T @ inertia @ G[at]
    return H


def rotors(tree: ClusterTree) -> list[int]:
    """The bodies of dependent joints, which must have no children."""
    model, t, free = tree.model, tree.model.topology, set(tree.velocities)
    gone = [i for i in t.links if any(k not in free for k in range(t.v_slices[i].start, t.v_slices[i].stop))]
    geared = {
        i
        for c in tree.clusters
        for i in c.bodies
        if all(isinstance(model.constraints[n], Coupling | Custom) for n in c.constraints)
    }
    for i in gone:
        if t.children[i] or i not in geared:
            raise UnsupportedError(
                f"joint '{model.links[i].joint_name}' depends on others and is more than a rotor on a gear: without it "
                "no tree is left. Use the exact methods (c_aba, c_rnea), or other joints: model.with_independent(...)"
            )
    return gone


def spatial(body: BodyInertia) -> np.ndarray:
    """The 6 x 6 inertia about the link's origin."""
    h = body.first_moment
    H = np.array([[0, h[2], -h[1]], [-h[2], 0, h[0]], [h[1], -h[0], 0]])
    return np.block([[body.mass * np.eye(3), H], [H.T, body.about_origin]])
