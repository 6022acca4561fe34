"""Log-Cholesky parameters of inertias: any ten numbers are a body that can exist.

The pseudo-inertia of a body, second moments S = tr(I)/2 - I of its mass, first moments h and mass m, is positive
definite exactly for bodies with mass everywhere (all triangle inequalities hold). Its factor gives ten free numbers:

    P = [S h; h^T m] = U U^T,    U = e^a [e^d1 s12 s13 t1; 0 e^d2 s23 t2; 0 0 e^d3 t3; 0 0 0 1]

    x = [a  d1 d2 d3  s12 s23 s13  t1 t2 t3]

Rucker and Wensing, "Smooth parameterization of rigid-body inertia", RA-L 2022. t is the centre of mass, e^2a the mass.
"""

from __future__ import annotations

import numpy as np

from linkwork.checks import ARRAY, checked
from linkwork.errors import InputError
from linkwork.model.body import TRIANGLE

ABOVE = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
"""The entries of U above its diagonal, in the order of parameters."""


@checked(inertia=ARRAY)
def log_cholesky(inertia: object) -> np.ndarray:
    """The log-Cholesky parameters (..., 10) of inertias (..., 10), as `model.parameters()` has them.

    Any ten numbers are those of a body that can exist, so that learning, sampling and identification need no bounds:
    `lw.from_log_cholesky` is smooth. InputError for an `inertia` of no body with volume: points, plates, links without
    mass.

    Examples:
        >>> inertia = chain(3).parameters().inertia
        >>> x = lw.log_cholesky(inertia)
        >>> np.allclose(lw.from_log_cholesky(x), inertia)
        True
    """
    x = _tens(inertia)
    I = np.zeros((*x.shape[:-1], 3, 3))
    for (i, j), n in zip(TRIANGLE, range(4, 10), strict=True):
        I[..., i, j] = I[..., j, i] = x[..., n]
    P = np.zeros((*x.shape[:-1], 4, 4))
    P[..., :3, :3] = np.trace(I, axis1=-2, axis2=-1)[..., None, None] / 2 * np.eye(3) - I
    P[..., :3, 3] = P[..., 3, :3] = x[..., 1:4]
    P[..., 3, 3] = x[..., 0]
    try:
        U = np.linalg.cholesky(P[..., ::-1, ::-1])[..., ::-1, ::-1]
    except np.linalg.LinAlgError:
        bad = [k for k, one in enumerate(P.reshape(-1, 4, 4)) if np.linalg.eigvalsh(one)[0] <= 0]
        raise InputError(
            f"inertia: {len(bad)} of {P[..., 0, 0].size} have no log-Cholesky parameters (first: entry "
            f"{bad[0] if bad else 0}): a body needs mass and volume, and its inertia the triangle inequality"
        ) from None
    scale = U[..., 3, 3]
    diagonal = [np.log(U[..., k, k] / scale) for k in range(3)]
    return np.stack([np.log(scale), *diagonal, *(U[..., i, j] / scale for i, j in ABOVE)], axis=-1)


@checked(parameters=ARRAY)
def from_log_cholesky(parameters: object) -> np.ndarray:
    """The inertias (..., 10), [m  hx hy hz  Ixx Ixy Iyy Ixz Iyz Izz], of any log-Cholesky parameters.

    `parameters` are ten numbers for each body, (..., 10), as `lw.log_cholesky` gives them.

    Examples:
        >>> lw.BodyInertia.from_parameters(lw.from_log_cholesky(np.zeros(10))).mass
        1.0
    """
    x = _tens(parameters)
    U = np.zeros((*x.shape[:-1], 4, 4))
    for k in range(3):
        U[..., k, k] = np.exp(x[..., 1 + k])
    for (i, j), n in zip(ABOVE, range(4, 10), strict=True):
        U[..., i, j] = x[..., n]
    U[..., 3, 3] = 1.0
    P = np.exp(2 * x[..., :1, None]) * (U @ np.swapaxes(U, -1, -2))
    S = P[..., :3, :3]
    I = np.trace(S, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - S
    return np.stack([P[..., 3, 3], *(P[..., k, 3] for k in range(3)), *(I[..., i, j] for i, j in TRIANGLE)], axis=-1)


def _tens(value: object) -> np.ndarray:
    x = np.asarray(value, dtype=float)
    if x.ndim == 0 or x.shape[-1] != 10:
        raise InputError(f"ten numbers for each body, (..., 10), not an array of shape {x.shape}")
    return x
