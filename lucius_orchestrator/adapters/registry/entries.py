"""What the entries of a store mean: by their keys, which part of a set each of them is.

The key of a protocol ends in its id, and that of a tenant in the tenant's id, exactly as requests
spell it. A store may not take every character in a key; a tenant that cannot have a key of its own
stands in the document of all tenants.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lucius_orchestrator.adapters.registry.document import Document
from lucius_orchestrator.adapters.registry.json_document import read_json
from lucius_orchestrator.adapters.registry.problems import FileProblem, RegistryError
from lucius_orchestrator.adapters.registry.snapshots import Documents, snapshot_of
from lucius_orchestrator.adapters.registry.yaml_document import read_yaml
from lucius_orchestrator.domain.aggregate import StepPolicy
from lucius_orchestrator.ports.registry import Snapshot

_NOT_FOLLOWED = {
    "application/vnd.microsoft.appconfig.keyvaultref+json": "a Key Vault reference",
    "application/vnd.microsoft.appconfig.ff+json": "a feature flag",
}
_SNAPSHOT_REFERENCE = "mime-profiles/snapshot-ref"


class Entry(NamedTuple):
    key: str
    value: str | None
    content_type: str | None


class Keys(NamedTuple):
    """`sentinel` says when to read the others, and holds nothing itself."""

    prefix: str
    sentinel: str

    @property
    def protocols(self) -> str:
        return f"{self.prefix}protocols:"

    @property
    def tenants(self) -> str:
        return f"{self.prefix}tenants"

    @property
    def defaults(self) -> str:
        return f"{self.prefix}defaults"

    def knows(self, key: str) -> bool:
        exactly = (self.tenants, self.defaults)
        return key in exactly or key.startswith((self.protocols, f"{self.tenants}:"))

    def is_sentinel(self, key: str) -> bool:
        return key in (self.sentinel, f"{self.prefix}sentinel")


def read_entries(entries: Iterable[Entry], keys: Keys, default_policy: StepPolicy) -> Snapshot:
    """RegistryError: at least one entry is wrong, so none of them counts."""
    documents, problems = _parse(entries, keys)
    protocols = _below(keys.protocols, documents)
    for protocol_id, document in protocols.items():
        _check_name(document, protocol_id, keys)
    sorted_out = Documents(
        protocols=list(protocols.values()),
        tenants=documents.get(keys.tenants),
        single_tenants=_below(f"{keys.tenants}:", documents),
        defaults=documents.get(keys.defaults),
        problems=problems,
    )
    if not problems and not sorted_out.protocols:
        reason = "there is none: put the protocols there first"
        raise RegistryError([FileProblem(f"{keys.protocols}*", None, "", reason)])
    return snapshot_of(sorted_out, default_policy)


def _parse(entries: Iterable[Entry], keys: Keys) -> tuple[dict[str, Document], list[FileProblem]]:
    documents: dict[str, Document] = {}
    problems: list[FileProblem] = []
    for entry in sorted(entries):
        if keys.is_sentinel(entry.key):
            continue
        reason = _reason_against(entry, keys)
        if reason is not None:
            problems.append(FileProblem(entry.key, None, "", reason))
            continue
        try:
            documents[entry.key] = _document(entry)
        except RegistryError as error:
            problems.extend(error.problems)
    return documents, problems


def _reason_against(entry: Entry, keys: Keys) -> str | None:
    if not keys.knows(entry.key):
        known = f"{keys.protocols}ID, {keys.tenants}:ID, {keys.tenants}, {keys.defaults}"
        return f"no such entry is known; known are {known} and {keys.sentinel}"
    what = _NOT_FOLLOWED.get(_media_type(entry))
    if _SNAPSHOT_REFERENCE in (entry.content_type or ""):
        what = "a snapshot reference"
    return f"is {what}, which is not followed; put the content itself here" if what else None


def _document(entry: Entry) -> Document:
    text = entry.value or ""
    if _is_json(entry):
        return read_json(entry.key, text)
    try:
        return read_yaml(entry.key, text.encode(errors="surrogatepass")).without_lines()
    except RegistryError as error:
        raise RegistryError(map(_with_line_in_reason, error.problems)) from error


def _with_line_in_reason(problem: FileProblem) -> FileProblem:
    return problem._replace(line=None, reason=f"{problem.reason} (line {problem.line})")


def _is_json(entry: Entry) -> bool:
    kind, _, subtype = _media_type(entry).partition("/")
    return kind == "application" and "json" in subtype.split("+")


def _media_type(entry: Entry) -> str:
    return (entry.content_type or "").partition(";")[0].strip().lower()


def _below(prefix: str, documents: Mapping[str, Document]) -> dict[str, Document]:
    return {
        key.removeprefix(prefix): document
        for key, document in documents.items()
        if key.startswith(prefix)
    }


def _check_name(document: Document, protocol_id: str, keys: Keys) -> None:
    """An override by label would otherwise put another protocol in the place of this one."""
    said = document.value.get("protocol_id") if isinstance(document.value, dict) else None
    if isinstance(said, str) and said != protocol_id:
        reason = f"{said} lies below another name; its place is {keys.protocols}{said}"
        document.refuse(("protocol_id",), reason)
