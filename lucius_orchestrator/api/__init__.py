"""The HTTP face of the control plane: thin routes over the engine, one noun per module.

`create_app` puts them together. What is asked for most, submitting and answering directives, is
plain ASGI; the rest are FastAPI routes.
"""

from lucius_orchestrator.api.app import create_app, create_callback_app, create_health_app
from lucius_orchestrator.api.health import Check
from lucius_orchestrator.api.parts import ApiLimits, ApiParts, CallbackParts, HealthParts

__all__ = [
    "ApiLimits",
    "ApiParts",
    "CallbackParts",
    "Check",
    "HealthParts",
    "create_app",
    "create_callback_app",
    "create_health_app",
]
