"""Joint forces of a model's actuators, as a function of their controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from linkwork.backends import Array, Ops
from linkwork.checks import checked
from linkwork.errors import InputError
from linkwork.functions.function import Function
from linkwork.functions.options import OPTIONS
from linkwork.functions.parameters import BY_CONTROL, PARAMETERS, Inputs
from linkwork.functions.recipes import factory
from linkwork.functions.results import ActuationResult
from linkwork.model import Model
from linkwork.model.activation import activation_rate
from linkwork.model.joint_forces import actuator_force
from linkwork.model.model import MODEL


@checked(model=MODEL, parameters=PARAMETERS, **OPTIONS)
@factory
def actuation(
    model: Model,
    *,
    backend: str = "kernel",
    dtype: str = "float64",
    threads: int | None = None,
    parameters: Sequence[str] = (),
) -> Function[ActuationResult]:
    """`act(q, v, u) -> (tau, act_rate)`: joint forces of the model's actuators for controls `u` (nu,).

        l = sum_j g_j q_j,   f = (gain . [1 l l']) u + bias . [1 l l'],   tau_j = sum g_j f

    with u within control ranges, f within force ranges, and tau within the effort limits of joints. `model.actuators`
    has them in order, `model.with_actuators` adds some. Those with a state have activations: `act` (na,), an input that
    is zero by default, whose rate is `act_rate` (na,); others make na zero. `parameters` may name "gain" and "bias"
    (nu, 3), as inputs. Quaternions in `q` are [x y z w].

    Examples:
        >>> model = chain(2).with_actuators(lw.PositionServo("link2_joint", kp=5.0))
        >>> lw.actuation(model)(np.zeros(2), np.zeros(2), [0.3]).tau
        array([0. , 1.5])
        >>> slow = chain(2).with_actuators(lw.Motor("link2_joint", state="filter", time_constant=0.1))
        >>> lw.actuation(slow)(np.zeros(2), np.zeros(2), [0.3], act=[0.1])
        ActuationResult(tau=array([0. , 0.1]), act_rate=array([2.]))
    """
    check_actuators(model)

    def body(xp: Ops, x: Mapping[str, Array]) -> Mapping[str, Array]:
        return {"tau": actuator_force(model, x["q"], x["v"], xp, x), "act_rate": activation_rate(model, xp, x)}

    inputs = Inputs(model, parameters, BY_CONTROL, activations(model), q=model.nq, v=model.nv, u=model.nu)
    return Function(
        "actuation",
        model,
        inputs.sizes,
        body,
        backend=backend,
        dtype=dtype,
        threads=threads,
        defaults=inputs.defaults,
        shapes=inputs.shapes,
        identity=inputs.identity,
        result=ActuationResult,
    )


def activations(model: Model) -> dict[str, np.ndarray]:
    """The input `act` with its default, where some actuator has a state."""
    return {"act": np.zeros(model.na)} if model.na else {}


def check_actuators(model: Model) -> None:
    """Raise unless the model has actuators."""
    if not model.actuators:
        raise InputError(
            f"'{model.name}' has no actuators, so there are no controls u: add them with model.with_actuators("
            'lw.Motor("joint"), ...), or give joint forces tau'
        )
