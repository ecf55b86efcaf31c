"""Registries: where protocols and the configuration of tenants come from."""

from lucius_orchestrator.adapters.registry.problems import (
    FileProblem,
    RegistryError,
    RegistryUnavailable,
)
from lucius_orchestrator.adapters.registry.yaml_registry import YamlRegistry

__all__ = ["FileProblem", "RegistryError", "RegistryUnavailable", "YamlRegistry"]
