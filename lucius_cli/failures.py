"""Failures that a person can do something about: a message and an exit code, no traceback.

CommandFailed
├── Unsuitable             the command cannot be used like this: exit code 2
├── Refused                the server said no: 1
└── EnvironmentFailed      something that the command needs is not there: 3
    └── Unreachable        no connection to the server, or it broke
"""

from collections.abc import Iterator
from enum import IntEnum

from lucius_contract.errors import ContractError


class ExitCode(IntEnum):
    FINE = 0
    FAILED = 1
    USAGE = 2
    ENVIRONMENT = 3
    INTERRUPTED = 130


class CommandFailed(Exception):
    exit_code = ExitCode.FAILED


class Unsuitable(CommandFailed):
    exit_code = ExitCode.USAGE


class Refused(CommandFailed):
    exit_code = ExitCode.FAILED


class EnvironmentFailed(CommandFailed):
    exit_code = ExitCode.ENVIRONMENT


class Unreachable(EnvironmentFailed):
    pass


_EXTRA_OF = {
    "aiohttp": "orchestrator",
    "azure": "azure",
    "cookiecutter": "skeleton",
    "fastapi": "orchestrator",
    "h11": "orchestrator",
    "httptools": "orchestrator",
    "jsonschema": "orchestrator",
    "jwt": "orchestrator",
    "merge3": "skeleton",
    "opentelemetry": "orchestrator",
    "prometheus_client": "orchestrator",
    "psycopg": "postgres",
    "psycopg_pool": "postgres",
    "referencing": "orchestrator",
    "starlette": "orchestrator",
    "temporalio": "temporal",
    "uvicorn": "orchestrator",
    "uvloop": "orchestrator",
    "yaml": "orchestrator",
}


def explained(error: Exception) -> CommandFailed | None:
    """The error as something to act on; None when it is a defect and its traceback is needed."""
    if isinstance(error, CommandFailed):
        return error
    if isinstance(error, ContractError):
        return Refused(str(error))
    if isinstance(error, ModuleNotFoundError):
        return _missing_extra(error)
    return None


def _missing_extra(error: ModuleNotFoundError) -> EnvironmentFailed | None:
    module = (error.name or "").partition(".")[0]
    extra = _EXTRA_OF.get(module)
    if extra is None:
        return None
    return EnvironmentFailed(
        f"this command needs {module}, which is not installed: pip install 'lucius-sdk[{extra}]'"
    )


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The error, or, of a group, the errors that it holds."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
