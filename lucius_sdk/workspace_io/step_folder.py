"""The folder of one run: `<workspace_ref>/<step type>/<attempt_no>/`, and `~k/` below it for the
k-th run of the attempt. No two runs share one, so an abandoned run overwrites nothing."""

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.names import check_name, segment_problem
from lucius_sdk.workspace_io.port import Sink, Storage
from lucius_sdk.workspace_io.uris import child_uri


class StepFolder:
    def __init__(
        self, storage: Storage, workspace_ref_uri: str, step_type: str, attempt_no: int, epoch: int
    ) -> None:
        own = f"{_folder_of(step_type)}/{attempt_no}"
        self._storage = storage
        self.uri = child_uri(workspace_ref_uri, own if epoch == 1 else f"{own}/~{epoch}") + "/"

    def uri_of(self, name: str) -> str:
        return child_uri(self.uri, check_name(name))

    def create(self, name: str, media_type: str) -> Sink:
        return self._storage.create(self.uri_of(name), media_type)


def _folder_of(step_type: str) -> str:
    folder = step_type.lower()
    problem = segment_problem(folder)
    if problem is not None:
        raise NonRetryableError(ErrorCode.INTERNAL, f"the step type {step_type!r} {problem}")
    return folder
