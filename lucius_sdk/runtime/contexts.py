"""What a handler is given, made from a directive."""

from typing import Any

from lucius_contract.documents import Artifact
from lucius_contract.messages import Directive
from lucius_sdk.clock import Clock
from lucius_sdk.context import StepContext, WorkState
from lucius_sdk.logs import step_logger
from lucius_sdk.workspace_io import (
    Fence,
    Input,
    PriorArtifacts,
    StepFolder,
    Storages,
    Workspace,
    publish,
)


def make_context(
    storages: Storages,
    directive: Directive,
    payload: Any,
    epoch: int,
    state: WorkState,
    clock: Clock,
) -> StepContext[Any]:
    """`epoch` counts the runs of the attempt: each has a folder and a fence of its own."""
    step_type, attempt_no = directive.step_type, directive.attempt_no
    root = directive.workspace_ref.uri
    tenant_id, job_id = directive.tenant_id, directive.job_id
    reach = storages.of_job(tenant_id, job_id, directive.artifact_token)
    folder = StepFolder(reach.workspace, root, step_type, attempt_no, epoch)
    fence = Fence(tenant_id, job_id, directive.step_id, attempt_no, epoch)

    def publisher(content: Artifact | bytes, media_type: str | None) -> str:
        target, catalogue = directive.output_ref, reach.catalogue
        return publish(reach, target, content, fence, media_type, state.check, catalogue)

    return StepContext(
        directive=directive,
        payload=payload,
        input=Input(reach, directive.input_ref.uri, state.check),
        prior=PriorArtifacts(reach, directive.prior_artifacts, state.check),
        workspace=Workspace(folder, state.check),
        log=step_logger(directive),
        state=state,
        publisher=publisher,
        now=clock.now,
    )
