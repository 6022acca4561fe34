// Pinocchio's terms of kinematics and dynamics in native loops, on the inputs of the peers' harness, whose headers
// and command line this program shares:
//
//   pin_terms INPUTS ROBOT [--only NAME] [--budget S] [--cpu K]    prints "time,..." lines, as pin_bench does
//   PIN_TERMS_VALUES=FILE pin_terms INPUTS ROBOT --only NAME       writes what it computes for each checked state
//
// Frames are the ends of the case with the most contacts with the world. Everything is computed from q (and v) anew in
// every call. Matrices that Pinocchio fills by half are "upper"; "full" has both triangles, as users need it.
#include "pin_common.hpp"

#include <pinocchio/algorithm/center-of-mass.hpp>
#include <pinocchio/algorithm/centroidal.hpp>
#include <pinocchio/algorithm/compute-all-terms.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/energy.hpp>
#include <pinocchio/algorithm/frames.hpp>
#include <pinocchio/algorithm/regressor.hpp>

using namespace pbpin;

namespace
{
  using Matrix6x = Data::Matrix6x;

  // the case with the most contacts, none of which is a loop
  const pb::Case * contacts(const pb::Inputs & in)
  {
    const pb::Case * best = nullptr;
    for (const auto & c : in.cases)
      if (!c.loops() && (!best || c.cons.size() > best->cons.size()))
        best = &c;
    return best;
  }

  struct Terms
  {
    Ctx x;
    Model m;
    std::vector<pin::FrameIndex> frames;
    std::FILE * values = nullptr;

    explicit Terms(const pb::Options & o)
    : x(o)
    , m(x.model)
    {
      const pb::Case * c = contacts(x.in);
      for (size_t k = 0; c && k < c->cons.size(); ++k)
      {
        const auto & e = c->cons[k];
        frames.push_back(m.addFrame(pin::Frame(
          "end" + std::to_string(k), pin::JointIndex(e.joint1), 0, se3(e.p1), pin::OP_FRAME)));
      }
      if (const char * file = std::getenv("PIN_TERMS_VALUES"))
        values = std::fopen(file, "wb");
    }

    // f(i) computes; out(i) is a matrix of what was computed, row by row
    template<class F, class Out>
    void run(const std::string & name, F && f, Out && out)
    {
      if (!x.rep.o.only.empty() && x.rep.o.only != name)
        return;
      if (values)
      {
        for (int i : x.checked)
        {
          f(i);
          const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> y = out();
          std::fwrite(y.data(), sizeof(double), size_t(y.size()), values);
        }
        return;
      }
      x.rep.time(name, x.in.name, "none", x.in.nv, 0, pb::measure(f, x.in.nstates, x.rep.o));
    }
  };

  MatrixXd symmetric(const MatrixXd & upper)
  {
    return upper.selfadjointView<Eigen::Upper>();
  }
} // namespace

int main(int argc, char ** argv)
{
  Terms t(pb::parse(argc, argv));
  const Model & m = t.m;
  Data d(m);
  const auto & q = t.x.q;
  const auto & v = t.x.v;
  auto S = [](int i) { return size_t(i); };
  const int n = m.nv, F = int(t.frames.size());

  // the placements of frames: the whole tree, as there is no call for a few frames
  t.run(
    "placements",
    [&](int i) {
      pin::forwardKinematics(m, d, q[S(i)]);
      double s = 0;
      for (auto f : t.frames)
        s += pin::updateFramePlacement(m, d, f).translation()[0];
      return s;
    },
    [&] {
      MatrixXd y(F, 12);
      for (int k = 0; k < F; ++k)
      {
        const SE3 & M = d.oMf[t.frames[S(k)]];
        y.row(k) << M.translation().transpose(), M.rotation().row(0), M.rotation().row(1), M.rotation().row(2);
      }
      return y;
    });
  const std::pair<const char *, pin::ReferenceFrame> references[] = {
    {"local", pin::LOCAL}, {"world", pin::WORLD}, {"world_aligned", pin::LOCAL_WORLD_ALIGNED}};
  for (const auto & [name, reference] : references)
  {
    MatrixXd V(F, 6);
    t.run(
      std::string("velocities-") + name,
      [&, reference = reference](int i) {
        pin::forwardKinematics(m, d, q[S(i)], v[S(i)]);
        for (int k = 0; k < F; ++k)
        {
          pin::updateFramePlacement(m, d, t.frames[S(k)]);
          V.row(k) = pin::getFrameVelocity(m, d, t.frames[S(k)], reference).toVector();
        }
        return V(0, 0);
      },
      [&] { return V; });
    std::vector<Matrix6x> J(S(F), Matrix6x::Zero(6, n));
    const auto stacked = [&] {
      MatrixXd y(6 * F, n);
      for (int k = 0; k < F; ++k)
        y.middleRows(6 * k, 6) = J[S(k)];
      return y;
    };
    // all joints' columns at once, then those of each frame
    t.run(
      std::string("J-") + name + "-get",
      [&, reference = reference](int i) {
        pin::computeJointJacobians(m, d, q[S(i)]);
        for (int k = 0; k < F; ++k)
        {
          pin::updateFramePlacement(m, d, t.frames[S(k)]);
          pin::getFrameJacobian(m, d, t.frames[S(k)], reference, J[S(k)]);
        }
        return J[0](0, 0);
      },
      stacked);
    // or each frame's chain by itself
    t.run(
      std::string("J-") + name + "-compute",
      [&, reference = reference](int i) {
        for (int k = 0; k < F; ++k)
          pin::computeFrameJacobian(m, d, q[S(i)], t.frames[S(k)], reference, J[S(k)]);
        return J[0](0, 0);
      },
      stacked);
  }
  t.run(
    "com", [&](int i) { return pin::centerOfMass(m, d, q[S(i)], false)[0]; },
    [&] { return MatrixXd(d.com[0]); });
  t.run(
    "com_J", [&](int i) { return pin::jacobianCenterOfMass(m, d, q[S(i)], false)(0, 0); },
    [&] { return MatrixXd(d.Jcom); });
  t.run(
    "h", [&](int i) { return pin::computeCentroidalMomentum(m, d, q[S(i)], v[S(i)]).toVector()[0]; },
    [&] { return MatrixXd(d.hg.toVector()); });
  t.run(
    "A", [&](int i) { return pin::computeCentroidalMap(m, d, q[S(i)])(0, 0); },
    [&] { return MatrixXd(d.Ag); });
  t.run(
    "C", [&](int i) { return pin::computeCoriolisMatrix(m, d, q[S(i)], v[S(i)])(0, 0); },
    [&] { return MatrixXd(d.C); });
  t.run(
    "g", [&](int i) { return pin::computeGeneralizedGravity(m, d, q[S(i)])[0]; },
    [&] { return MatrixXd(d.g); });
  t.run(
    "c", [&](int i) { return pin::nonLinearEffects(m, d, q[S(i)], v[S(i)])[0]; },
    [&] { return MatrixXd(d.nle); });
  t.run(
    "regressor", [&](int i) { return pin::computeJointTorqueRegressor(m, d, q[S(i)], v[S(i)], v[S(i)])(0, 0); },
    [&] { return MatrixXd(d.jointTorqueRegressor); });
  for (const bool world : {false, true})
  {
    const auto convention = world ? pin::Convention::WORLD : pin::Convention::LOCAL;
    const std::string tail = world ? "-world" : "-local";
    t.run(
      "M-upper" + tail, [&](int i) { return pin::crba(m, d, q[S(i)], convention)(0, 0); },
      [&] { return symmetric(d.M); });
    t.run(
      "M-full" + tail,
      [&](int i) {
        pin::crba(m, d, q[S(i)], convention);
        d.M.triangularView<Eigen::StrictlyLower>() = d.M.transpose().triangularView<Eigen::StrictlyLower>();
        return d.M(n - 1, 0);
      },
      [&] { return MatrixXd(d.M); });
  }
  t.run(
    "Minv-upper", [&](int i) { return pin::computeMinverse(m, d, q[S(i)])(0, 0); },
    [&] { return symmetric(d.Minv); });
  t.run(
    "Minv-full",
    [&](int i) {
      pin::computeMinverse(m, d, q[S(i)]);
      d.Minv.triangularView<Eigen::StrictlyLower>() = d.Minv.transpose().triangularView<Eigen::StrictlyLower>();
      return d.Minv(n - 1, 0);
    },
    [&] { return MatrixXd(d.Minv); });
  t.run(
    "kinetic_energy", [&](int i) { return pin::computeKineticEnergy(m, d, q[S(i)], v[S(i)]); },
    [&] { return MatrixXd::Constant(1, 1, d.kinetic_energy); });
  t.run(
    "potential_energy", [&](int i) { return pin::computePotentialEnergy(m, d, q[S(i)]); },
    [&] { return MatrixXd::Constant(1, 1, d.potential_energy); });
  // M (upper), c, g, centre of mass with Jacobian, momentum with matrix, energies; and frames' Jacobians from its columns
  std::vector<Matrix6x> J(S(F), Matrix6x::Zero(6, n));
  t.run(
    "all",
    [&](int i) {
      pin::computeAllTerms(m, d, q[S(i)], v[S(i)]);
      for (int k = 0; k < F; ++k)
      {
        pin::updateFramePlacement(m, d, t.frames[S(k)]);
        pin::getFrameJacobian(m, d, t.frames[S(k)], pin::LOCAL, J[S(k)]);
      }
      return d.M(0, 0);
    },
    [&] { return symmetric(d.M); });
}
