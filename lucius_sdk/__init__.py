"""What a platform team installs: one function and its payload model make a service."""

from typing import TYPE_CHECKING

from lucius_contract.documents import Artifact
from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Directive
from lucius_sdk.context import StepContext
from lucius_sdk.error_model import NonRetryableError, RetryableError, StepCancelled
from lucius_sdk.service import Service

__all__ = [
    "Artifact",
    "Directive",
    "ErrorCode",
    "NonRetryableError",
    "RetryableError",
    "Service",
    "StepCancelled",
    "StepContext",
    "__version__",
]

__version__: str

if not TYPE_CHECKING:  # or every misspelled name would pass for text

    def __getattr__(name: str) -> str:
        """The version is looked up in the installed package when somebody asks."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import version

        return version("lucius-sdk")
