"""Where the parts are put together."""

from lucius_orchestrator.bootstrap.parts import (
    Entropy,
    Part,
    calm_the_collector,
    real_world,
    running,
)

__all__ = ["Entropy", "Part", "calm_the_collector", "real_world", "running"]
