"""What one job may read, write and publish on one storage.

A location is where a uri really leads: the container or bucket and the segments of a name, or the
parts of a path whose symlinks are resolved. The workspace comes first: below `<root>/<system>/` a
job reads and writes its own tenant's folder and nothing else, whatever roots are configured.
Elsewhere it reads below input roots and publishes below output roots. Who asks for the work is not
trusted: the tenant is that of the directive, and all else is what the service was configured with.
"""

from typing import NamedTuple, Self
from urllib.parse import unquote

from lucius_contract.errors import ErrorCode
from lucius_contract.refs import tenant_folder
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.uris import shown

DEFAULT_SYSTEM = "lucius"

Location = tuple[str, ...]


class Tenant(NamedTuple):
    """Whose folder `<root>/<system>/<folder>/` is."""

    system: str
    folder: str

    @classmethod
    def of(cls, system: str, tenant_id: str) -> Self:
        return cls(system, unquote(tenant_folder(tenant_id)))


class Access(NamedTuple):
    """`root` is that of the workspace, None where the workspace is on another storage. Without a
    tenant the whole root may be read, written and published to: that is for tests and tools."""

    root: Location | None
    inputs: tuple[Location, ...] = ()
    outputs: tuple[Location, ...] = ()
    tenant: Tenant | None = None

    def check_read(self, location: Location, uri: str) -> None:
        """INPUT_FORBIDDEN unless it is the tenant's own, or below an input root."""
        if self._is_own(location):
            return
        if self._is_in_workspace(location):
            raise forbidden(
                ErrorCode.INPUT_FORBIDDEN, uri, "lies in the workspace, in no folder of this tenant"
            )
        if not _is_below_any(location, self.inputs):
            raise outside_input_roots(uri)

    def check_publish(self, location: Location, uri: str) -> None:
        """OUTPUT_FORBIDDEN unless it is below an output root and not in the workspace."""
        if self._is_in_workspace(location):
            raise forbidden(
                ErrorCode.OUTPUT_FORBIDDEN, uri, "lies in the workspace, where nothing is published"
            )
        is_in_root = self.tenant is None and self._is_own(location)
        if not is_in_root and not _is_below_any(location, self.outputs):
            raise outside_output_roots(uri)

    def check_write(self, location: Location, uri: str) -> None:
        """OUTPUT_FORBIDDEN unless it is in the tenant's own folder of the workspace."""
        if not self._is_own(location):
            raise forbidden(
                ErrorCode.OUTPUT_FORBIDDEN,
                uri,
                "leads out of the tenant's folder of the workspace: LUCIUS_WORKSPACE_ROOT and"
                " LUCIUS_SYSTEM must be those of the orchestrator",
            )

    def _is_own(self, location: Location) -> bool:
        if self.root is None:
            return False
        return is_below(location, self.root + (self.tenant or ()))

    def _is_in_workspace(self, location: Location) -> bool:
        """Also by a name that a storage may take for the same one: some ignore letter case, or
        drop dots and spaces at the end of a segment."""
        if self.root is None or self.tenant is None:
            return False
        workspace = (*self.root, self.tenant.system)
        return _folded(location[: len(workspace)]) == _folded(workspace)


def outside_input_roots(uri: str) -> NonRetryableError:
    return forbidden(
        ErrorCode.INPUT_FORBIDDEN,
        uri,
        "leads out of the places that this service may read: its operator sets LUCIUS_INPUT_ROOTS",
    )


def outside_output_roots(uri: str) -> NonRetryableError:
    return forbidden(
        ErrorCode.OUTPUT_FORBIDDEN,
        uri,
        "leads out of the places that this service may publish to: its operator sets"
        " LUCIUS_OUTPUT_ROOTS",
    )


def is_below(location: Location, folder: Location) -> bool:
    return len(location) > len(folder) and location[: len(folder)] == folder


def _is_below_any(location: Location, folders: tuple[Location, ...]) -> bool:
    return any(is_below(location, folder) for folder in folders)


def _folded(location: Location) -> Location:
    return tuple(segment.casefold().rstrip(". ") for segment in location)


def forbidden(code: ErrorCode, uri: str, problem: str) -> NonRetryableError:
    return NonRetryableError(code, f"the uri {shown(uri)!r} {problem}")
