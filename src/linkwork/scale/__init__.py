"""Rollouts beyond one machine: the same call, its states split over the workers of a Dask cluster."""

from __future__ import annotations

from linkwork.scale.cluster import rollout

__all__ = ["rollout"]
