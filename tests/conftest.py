"""Hypothesis: the same examples at every CI run, fresh ones on a developer's machine."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile(
    "laptop", deadline=None, suppress_health_check=[HealthCheck.differing_executors]
)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "laptop")
