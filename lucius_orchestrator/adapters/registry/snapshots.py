"""From all documents of a set to one snapshot, or to all that is wrong with them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lucius_contract.canonical import resolve_arrows
from lucius_orchestrator.adapters.registry.document import Document
from lucius_orchestrator.adapters.registry.problems import FileProblem, Place, RegistryError
from lucius_orchestrator.adapters.registry.protocol_file import read_protocol
from lucius_orchestrator.adapters.registry.sources import (
    DEFAULTS_FILE,
    TENANTS_FILE,
    Files,
    Unreadable,
)
from lucius_orchestrator.adapters.registry.tenant_files import (
    read_defaults,
    read_tenant,
    read_tenants,
)
from lucius_orchestrator.adapters.registry.yaml_document import read_yaml
from lucius_orchestrator.domain.aggregate import StepPolicy
from lucius_orchestrator.ports.registry import (
    GlobalConfig,
    ProtocolDefinition,
    Snapshot,
    TenantConfig,
)


@dataclass(frozen=True, slots=True)
class Documents:
    """One set, by what its documents are about. `single_tenants` are those of one tenant each, by
    its id; `problems` are of what could not be read at all."""

    protocols: Sequence[Document]
    tenants: Document | None = None
    single_tenants: Mapping[str, Document] = field(default_factory=dict)
    defaults: Document | None = None
    problems: Sequence[FileProblem] = ()

    def all(self) -> Iterator[Document]:
        yield from (*self.protocols, *self.single_tenants.values())
        yield from (document for document in (self.tenants, self.defaults) if document is not None)


def read_snapshot(files: Files, default_policy: StepPolicy) -> Snapshot:
    """RegistryError: at least one file is wrong, so none of them counts."""
    documents, problems = _parse(files)
    sorted_out = Documents(
        tenants=documents.pop(TENANTS_FILE, None),
        defaults=documents.pop(DEFAULTS_FILE, None),
        protocols=list(documents.values()),
        problems=problems,
    )
    return snapshot_of(sorted_out, default_policy)


def snapshot_of(documents: Documents, default_policy: StepPolicy) -> Snapshot:
    """RegistryError: at least one document is wrong, so none of them counts."""
    protocols = [
        _InDocument(document, protocol)
        for document in documents.protocols
        if (protocol := read_protocol(document, default_policy))
    ]
    snapshot = Snapshot(
        protocols=_by_id(protocols),
        by_request_type=_by_request_type(protocols),
        tenants=_tenants(documents),
        defaults=read_defaults(documents.defaults) if documents.defaults else GlobalConfig(),
    )
    problems = [problem for document in documents.all() for problem in document.problems]
    if problems or documents.problems:
        raise RegistryError([*problems, *documents.problems])
    return snapshot


class _InDocument(NamedTuple):
    document: Document
    protocol: ProtocolDefinition

    def names(self) -> Iterable[tuple[Place, str]]:
        """All that a request may call this protocol by, and where the document says so."""
        yield ("request_type",), self.protocol.request_type
        for index, alias in enumerate(self.protocol.aliases):
            yield ("aliases", index), alias


def _parse(files: Files) -> tuple[dict[str, Document], list[FileProblem]]:
    documents: dict[str, Document] = {}
    problems: list[FileProblem] = []
    for file, content in files.items():
        if isinstance(content, Unreadable):
            problems.append(FileProblem(file, None, "", content.reason))
            continue
        try:
            documents[file] = read_yaml(file, content)
        except RegistryError as error:
            problems.extend(error.problems)
    return documents, problems


def _by_id(protocols: list[_InDocument]) -> dict[str, ProtocolDefinition]:
    owners: dict[str, _InDocument] = {}
    for found in protocols:
        owner = owners.setdefault(found.protocol.protocol_id, found)
        if owner is not found:
            taken_at = owner.document.where(("protocol_id",))
            reason = f"{found.protocol.protocol_id} is in {taken_at} already"
            found.document.refuse(("protocol_id",), reason)
    return {protocol_id: owner.protocol for protocol_id, owner in owners.items()}


def _by_request_type(protocols: list[_InDocument]) -> dict[str, ProtocolDefinition]:
    owners: dict[str, tuple[_InDocument, Place]] = {}
    for found in protocols:
        for place, name in found.names():
            owner, taken_at = owners.setdefault(resolve_arrows(name), (found, place))
            if owner is found and taken_at in (place, ("request_type",)):
                continue  # an alias that is another spelling of its own request type
            found.document.refuse(place, f"{name} is taken by {owner.document.where(taken_at)}")
    return {name: owner.protocol for name, (owner, _) in owners.items()}


def _tenants(documents: Documents) -> dict[str, TenantConfig]:
    together = documents.tenants
    tenants = read_tenants(together) if together else {}
    for tenant_id, document in documents.single_tenants.items():
        if together and tenant_id in tenants:
            document.refuse((), f"the tenant is in {together.where((tenant_id,))} already")
        tenants[tenant_id] = read_tenant(document, tenant_id)
    return tenants
