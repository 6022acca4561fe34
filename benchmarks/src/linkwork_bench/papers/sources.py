"""Where the robots of the papers can be had, for those who see that a case was skipped."""

from __future__ import annotations

EXAMPLES = "PyPI package example-robot-data"
DESCRIPTIONS = "PyPI package robot_descriptions"
MENAGERIE = "https://github.com/google-deepmind/mujoco_menagerie"
CLUSTERS = "https://github.com/ROAM-Lab-ND/generalized_rbda"

SOURCES = {
    "iiwa": "PyPI package pybullet_data (kuka_iiwa/model.urdf; links are called lbr_iiwa_link_1 ...)",
    "atlas_v4": f"{DESCRIPTIONS} (atlas_v4_description)",
    "shadow_hand": f"{MENAGERIE} (shadow_hand/right_hand.xml)",
    "digit": "https://github.com/roahmlab/RAPTOR (Robots/digit-v3/digit-v3.xml)",
    "cassie.xml": f"{MENAGERIE} (agility_cassie/cassie.xml)",
    "cassie": f"{EXAMPLES} (cassie_v2.sdf)",
    "mini_cheetah": CLUSTERS,
    "mit_humanoid": CLUSTERS,
    "jvrc1_humanoid": CLUSTERS,
    "tello_humanoid": CLUSTERS,
    **dict.fromkeys(("talos", "go1", "solo", "anymal", "icub", "ur5", "allegro", "simple_humanoid"), EXAMPLES),
}
"""By the beginning of a robot's name; the longest that fits counts."""


def absent_robot(problem: Exception) -> str:
    """The robot that was not found, if that is the problem; else empty."""
    text = str(problem)
    unknown = text.startswith("no robot") or "neither a file nor a known robot" in text
    quoted = text.split("'")
    return quoted[1] if unknown and len(quoted) > 2 else ""


def where_to_get(name: str) -> str:
    """Where a robot can be had; empty if that is not known."""
    known = [key for key in SOURCES if name.startswith(key)]
    if not known:
        return ""
    source = SOURCES[max(known, key=len)]
    how = "install it" if source.startswith("PyPI") else "put the file into a folder that LINKWORK_ROBOTS names"
    return f"Public source: {source}: {how}."
