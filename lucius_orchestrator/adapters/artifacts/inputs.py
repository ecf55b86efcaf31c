"""Artifacts as the inputs of jobs."""

from contextlib import suppress

from lucius_artifacts.errors import Gone, Invalid, NotFound, Unavailable
from lucius_artifacts.reading import Reading
from lucius_orchestrator.ports.inputs import ref_invalid

_POINTER = "/input_ref/uri"


class ArtifactInputs:
    """An artifact that cannot be looked for is `Unavailable`, as everywhere."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    async def hold(self, job_id: str, tenant_id: str, uri: str) -> None:
        try:
            await self._reading.hold(job_id, tenant_id, [uri])
        except Invalid as error:
            raise ref_invalid(_POINTER, error.problem) from error
        except NotFound as error:
            raise ref_invalid(_POINTER, f"{error}: upload or publish it first") from error
        except Gone as error:
            raise ref_invalid(_POINTER, f"{error}: name another version, or restore it") from error

    async def release(self, job_id: str) -> None:
        with suppress(Unavailable):  # the next collection does it
            await self._reading.release(job_id)
