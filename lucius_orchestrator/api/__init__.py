"""The HTTP face of the control plane: thin routes over the engine, one noun per module.

`create_app` puts them together. What is asked for most, submitting and answering directives, is
plain ASGI; the rest are FastAPI routes.
"""

from lucius_orchestrator.api.app import create_app
from lucius_orchestrator.api.health import Check
from lucius_orchestrator.api.parts import ApiLimits, ApiParts

__all__ = ["ApiLimits", "ApiParts", "Check", "create_app"]
