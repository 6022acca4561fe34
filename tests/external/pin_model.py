"""Our random models in Pinocchio, built by hand so that the tests do not lean on linkwork.interop."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from linkwork.model import Model, Placement

KINDS = ("revolute", "prismatic", "helical", "cylindrical", "spherical", "planar", "free")


def se3(p: Placement) -> pin.SE3:
    return pin.SE3(np.array(p.R), np.array(p.p))


def joint_model(j):
    if j.kind == "cylindrical":
        both = pin.JointModelComposite()
        both.addJoint(pin.JointModelPrismaticUnaligned(np.array(j.axis)))
        both.addJoint(pin.JointModelRevoluteUnaligned(np.array(j.axis)))
        return both
    if j.kind == "helical":
        return pin.JointModelHelicalUnaligned(np.array(j.axis), j.pitch)
    if j.kind in ("revolute", "prismatic"):
        kind = pin.JointModelRevoluteUnaligned if j.kind == "revolute" else pin.JointModelPrismaticUnaligned
        return kind(np.array(j.axis))
    others = {"spherical": pin.JointModelSpherical, "planar": pin.JointModelPlanar, "free": pin.JointModelFreeFlyer}
    return others[j.kind]()


def to_pinocchio(model: Model) -> pin.Model:
    """The same joints in the same order, so q and v need no conversion."""
    out = pin.Model()
    out.gravity.linear = np.array(model.gravity)
    rotors = []
    for link in model.links[1:]:
        i = out.addJoint(link.parent, joint_model(link.joint), se3(link.placement), link.joint_name)
        body, I = link.inertia, link.inertia.about_origin
        # by parameters, because the constructor refuses real robots whose inertias are off in the last digits
        parameters = [body.mass, *(body.mass * body.com), I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]
        out.appendBodyToJoint(i, pin.Inertia.FromDynamicParameters(np.array(parameters)), pin.SE3.Identity())
        rotors += list(link.armature)
    out.armature = np.array(rotors)
    return out


def closure(model: Model, pmodel: pin.Model, a: str, b: str, kind: str) -> pin.RigidConstraintModel:
    fa, fb = model.frame(a), model.frame(b)
    contact = pin.ContactType.CONTACT_6D if kind == "fixed" else pin.ContactType.CONTACT_3D
    return pin.RigidConstraintModel(
        contact, pmodel, fa.link, se3(fa.placement), fb.link, se3(fb.placement), pin.ReferenceFrame.LOCAL
    )


def constraint_dynamics(pmodel, constraints, q, v, tau):
    """Accelerations of Pinocchio, on fresh data, iterated to its floor."""
    data, datas = pmodel.createData(), [c.createData() for c in constraints]
    pin.initConstraintDynamics(pmodel, data, constraints, datas)
    settings = pin.ProximalSettings(1e-15, 1e-10, 20)
    return np.array(pin.constraintDynamics(pmodel, data, q, v, tau, constraints, datas, settings)), data


def jacobian(pmodel, constraints, q):
    data, datas = pmodel.createData(), [c.createData() for c in constraints]
    pin.computeJointJacobians(pmodel, data, q)
    for c, d in zip(constraints, datas, strict=True):
        c.calc(pmodel, data, d)  # without it the Jacobian is that of stale placements
    return np.array(pin.getConstraintsJacobian(pmodel, data, constraints, datas))
