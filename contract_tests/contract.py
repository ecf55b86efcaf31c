"""`contract.yaml`: what a service says of itself. Nothing else of it is known to the harness."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from contract_tests.files import read_file
from lucius_orchestrator.domain.aggregate import ReplyVia

HTTP_REF = "http"
Seconds = Annotated[float, Field(gt=0, le=3600)]
Name = Annotated[str, Field(min_length=1, max_length=128)]


class ContractUnusable(Exception):
    """The file cannot be read, or does not say what is needed; the text says what to do."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class SampleFile(_Part):
    """A document that the harness serves to the service."""

    name: Name = "input"
    """What the last part of its address is."""
    file: Path | None = None
    """Relative to the folder of `contract.yaml`."""
    text: str | None = None
    """Instead of a file."""
    media_type: str = "application/octet-stream"
    """As which it is served."""

    @model_validator(mode="after")
    def _has_content(self) -> "SampleFile":
        if (self.file is None) == (self.text is None):
            raise ValueError("give either `file` or `text`")
        return self


class Sample(_Part):
    """A payload, and what the step reads with it."""

    payload: dict[str, Any] = {}
    """The parameters of the step."""
    input: SampleFile | None = None
    """Served as `input_ref`."""
    prior_artifacts: dict[str, list[SampleFile]] = {}
    """Served as what the steps before have written, by step type."""


class Contract(_Part):
    """Placeholders in `command`, `environment` and `dedup_store`: `{folder}` is the folder of this
    file, `{state}` a folder that outlives the process, `{health_port}` the port for health,
    `{python}` the interpreter that runs the harness."""

    contract: Literal[1]
    """The version of this format."""
    service: Name
    """The name of its subscriptions."""
    step_type: Name
    """The kind of work that it does."""
    command: Annotated[list[str], Field(min_length=1)]
    """Starts the service; it runs in the foreground until SIGTERM."""
    working_directory: Path = Path()
    """Where the command is run, relative to the folder of this file."""
    environment: dict[str, str] = {}
    """Beside what the harness sets."""
    concurrency: Annotated[int, Field(ge=1, le=256)] = 4
    """How many directives it works on at once; it is started with this as LUCIUS_CONCURRENCY."""
    health: str = "http://127.0.0.1:{health_port}"
    """Where `/healthz/live` and `/healthz/ready` are."""
    startup_seconds: Seconds = 30
    """From its start until it is ready."""
    grace_seconds: Seconds = 30
    """From SIGTERM to its end."""
    ack_seconds: Seconds = 5
    """From the delivery of a directive to its ACK."""
    reply_via: Annotated[list[ReplyVia], Field(min_length=1)] = [ReplyVia.HTTP, ReplyVia.BUS]
    """The ways to reply that it has; the first is used where a rule does not care."""
    ref_schemes: Annotated[list[str], Field(min_length=1)] = [HTTP_REF]
    """What refs it reads. The harness serves them over plain http on the loopback address."""
    heartbeats: bool = True
    """Whether it sends HEARTBEATs while it works, at the interval that the directive names."""
    dedup_store: str = "sqlite://{state}/dedup.db"
    """Where what it remembers survives a restart; given as LUCIUS_DEDUP_STORE."""
    shares_store: bool = True
    """Whether several instances may use that store at the same time."""
    artifacts: bool = True
    """Whether a success names what it has written."""
    valid: Sample
    """A directive that it succeeds with."""
    invalid: Sample
    """A payload that it must refuse."""
    slow: Sample | None = None
    """A directive that keeps it at work for as long as the harness holds what it reads; the valid
    sample, unless that one is finished without reading to the end."""

    @model_validator(mode="after")
    def _can_be_judged(self) -> "Contract":
        if HTTP_REF not in self.ref_schemes:
            raise ValueError(
                "ref_schemes must have http: work is seen and held as reads of refs, which the"
                " harness serves over http"
            )
        for name, sample in (("valid", self.valid), ("slow", self.slow)):
            if sample is not None and sample.input is None and not sample.prior_artifacts:
                raise ValueError(f"the sample {name} needs an input or prior_artifacts to read")
        return self

    @property
    def has_own_store(self) -> bool:
        """Whether another instance can be given another store."""
        return "{state}" in self.dedup_store

    @property
    def held_sample(self) -> Sample:
        return self.slow or self.valid


class LoadedContract(_Part):
    """A contract, and where it was found."""

    path: Path
    contract: Contract

    @property
    def folder(self) -> Path:
        return self.path.parent

    def content_of(self, sample: SampleFile) -> bytes:
        if sample.text is not None:
            return sample.text.encode()
        assert sample.file is not None, "one of the two is given"
        return (self.folder / sample.file).read_bytes()


def load_contract(path: Path) -> LoadedContract:
    """`ContractUnusable`."""
    path = path.resolve()
    if path.is_dir():
        path = path / "contract.yaml"
    contract = read_file(path, Contract, ContractUnusable, "contract: 1")
    loaded = LoadedContract(path=path, contract=contract)
    _check_files(loaded)
    return loaded


def _check_files(loaded: LoadedContract) -> None:
    contract = loaded.contract
    for sample in filter(None, (contract.valid, contract.invalid, contract.slow)):
        files = [sample.input, *(f for each in sample.prior_artifacts.values() for f in each)]
        for one in filter(None, files):
            if one.file is not None and not (loaded.folder / one.file).is_file():
                raise ContractUnusable(f"{loaded.path}: there is no file {one.file}")
    if not (loaded.folder / contract.working_directory).is_dir():
        raise ContractUnusable(
            f"{loaded.path}: there is no folder {contract.working_directory} to work in"
        )
