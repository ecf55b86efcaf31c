"""From the bytes of all files to one snapshot, or to all that is wrong with them."""

from collections.abc import Iterable
from typing import NamedTuple

from lucius_contract.canonical import resolve_arrows
from lucius_orchestrator.adapters.registry.problems import FileProblem, Place, RegistryError
from lucius_orchestrator.adapters.registry.protocol_file import read_protocol
from lucius_orchestrator.adapters.registry.sources import (
    DEFAULTS_FILE,
    TENANTS_FILE,
    Files,
    Unreadable,
)
from lucius_orchestrator.adapters.registry.tenant_files import read_defaults, read_tenants
from lucius_orchestrator.adapters.registry.yaml_document import YamlDocument, read_yaml
from lucius_orchestrator.domain.aggregate import StepPolicy
from lucius_orchestrator.ports.registry import (
    GlobalConfig,
    ProtocolDefinition,
    Snapshot,
    TenantConfig,
)


def read_snapshot(files: Files, default_policy: StepPolicy) -> Snapshot:
    """RegistryError: at least one file is wrong, so none of them counts."""
    documents, problems = _parse(files)
    defaults, tenants, protocols = GlobalConfig(), dict[str, TenantConfig](), list[_InFile]()
    for file, document in documents.items():
        if file == DEFAULTS_FILE:
            defaults = read_defaults(document)
        elif file == TENANTS_FILE:
            tenants = read_tenants(document)
        elif protocol := read_protocol(document, default_policy):
            protocols.append(_InFile(document, protocol))
    by_id = _by_id(protocols)
    by_request_type = _by_request_type(protocols)
    problems += [problem for document in documents.values() for problem in document.problems]
    if problems:
        raise RegistryError(problems)
    return Snapshot(by_id, by_request_type, tenants, defaults)


class _InFile(NamedTuple):
    document: YamlDocument
    protocol: ProtocolDefinition

    def names(self) -> Iterable[tuple[Place, str]]:
        """All that a request may call this protocol by, and where the file says so."""
        yield ("request_type",), self.protocol.request_type
        for index, alias in enumerate(self.protocol.aliases):
            yield ("aliases", index), alias


def _parse(files: Files) -> tuple[dict[str, YamlDocument], list[FileProblem]]:
    documents: dict[str, YamlDocument] = {}
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


def _by_id(protocols: list[_InFile]) -> dict[str, ProtocolDefinition]:
    owners: dict[str, _InFile] = {}
    for found in protocols:
        owner = owners.setdefault(found.protocol.protocol_id, found)
        if owner is not found:
            reason = f"{found.protocol.protocol_id} is in {_at(owner, ('protocol_id',))} already"
            found.document.refuse(("protocol_id",), reason)
    return {protocol_id: owner.protocol for protocol_id, owner in owners.items()}


def _by_request_type(protocols: list[_InFile]) -> dict[str, ProtocolDefinition]:
    owners: dict[str, tuple[_InFile, Place]] = {}
    for found in protocols:
        for place, name in found.names():
            owner, taken_at = owners.setdefault(resolve_arrows(name), (found, place))
            if owner is found and taken_at in (place, ("request_type",)):
                continue  # an alias that is another spelling of its own request type
            found.document.refuse(place, f"{name} is taken by {_at(owner, taken_at)}")
    return {name: owner.protocol for name, (owner, _) in owners.items()}


def _at(owner: _InFile, place: Place) -> str:
    return f"{owner.document.file}:{owner.document.line_of(place)}"
