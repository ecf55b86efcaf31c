"""The operations on artifacts, as data."""

from lucius_contract.documents import Document
from lucius_contract.errors import ErrorCode
from lucius_orchestrator.api import paths
from lucius_orchestrator.api.artifacts import shapes
from lucius_orchestrator.api.artifacts.examples import OBJECT_KEY
from lucius_orchestrator.api.operation import Code, Guard, Operation, Parameter
from lucius_orchestrator.api.problems import HttpCode
from lucius_orchestrator.api.shapes import Shape
from lucius_orchestrator.security.callers import Verb

E = ErrorCode
BINARY = "application/octet-stream"
_BODY: tuple[Code, ...] = (
    E.ENVELOPE_INVALID,
    E.SCHEMA_VERSION_UNSUPPORTED,
    E.TOO_LARGE,
    HttpCode.REQUEST_TIMEOUT,
)
_READ: tuple[Code, ...] = (E.ENVELOPE_INVALID, E.ARTIFACT_INVALID, E.ARTIFACT_NOT_FOUND)
_PENDING = (202, "Its verification goes on: ask again.")
_THERE = (200, "The newest version has this content already.")


_KEY = Parameter("key", "path", "Of an object.", OBJECT_KEY)
_NUMBER = Parameter("number", "path", "Of a part, from 1.", "1")
_EXPIRES = Parameter("expires", "query", "Until when, in seconds since 1970.", "1769511600")
_LENGTH = Parameter("length", "query", "Bytes that the part must have.", "5")
_MEDIA_TYPE = Parameter("media_type", "query", "As what it is sent.", "application/pdf")
_FILE_NAME = Parameter("file_name", "query", "The name that it is offered under.", "scan.pdf")


def _upload(
    verb: str, id: str, summary: str, body: type[Document] | None, *codes: Code
) -> Operation:
    return Operation(
        "POST",
        f"{paths.UPLOAD}:{verb}",
        id,
        summary,
        shapes.UploadView,
        verb=Verb.UPLOAD,
        codes=(E.ARTIFACT_NOT_FOUND, E.STATE_CONFLICT, *(_BODY if body else ()), *codes),
        body=body,
    )


def _version(
    verb: Verb, name: str, id: str, summary: str, body: type[Document] = shapes.OfTenant
) -> Operation:
    return Operation(
        "POST",
        f"{paths.VERSION}:{name}",
        id,
        summary,
        shapes.VersionView,
        verb=verb,
        codes=(*_BODY, E.ARTIFACT_INVALID, E.ARTIFACT_NOT_FOUND, E.ARTIFACT_GONE, E.STATE_CONFLICT),
        body=body,
    )


def _listing(path: str, id: str, summary: str, shape: type[Shape]) -> Operation:
    return Operation("GET", path, id, summary, shape, verb=Verb.READ_ARTIFACTS, codes=_READ)


BEGIN_UPLOAD = Operation(
    "POST",
    paths.UPLOADS,
    "beginUpload",
    "Begin to bring content.",
    shapes.UploadView,
    status=201,
    verb=Verb.UPLOAD,
    codes=(*_BODY, E.ARTIFACT_INVALID, E.TENANT_SATURATED),
    body=shapes.NewUpload,
    answers_with=("Location",),
)
READ_UPLOAD = Operation(
    "GET",
    paths.UPLOAD,
    "readUpload",
    "An upload, with the parts that have arrived.",
    shapes.UploadProgress,
    verb=Verb.READ_UPLOAD,
    codes=(E.ARTIFACT_NOT_FOUND,),
)
SIGN_PARTS = _upload(
    "sign",
    "signParts",
    "Addresses to which parts can be put, as often as they are asked for.",
    shapes.PartNumbers,
    E.ARTIFACT_INVALID,
)._replace(shape=shapes.SignedParts)
DEDUPE_UPLOAD = _upload(
    "dedupe",
    "dedupeUpload",
    "Commit without bringing anything, with a proof that the content is at hand. One try.",
    shapes.Proof,
)
COMPLETE_UPLOAD = _upload(
    "complete", "completeUpload", "All parts are there: verify them and commit. Repeatable.", None
)._replace(others=(_PENDING,))
ABORT_UPLOAD = _upload("abort", "abortUpload", "Give an upload up.", None)
PUT_PART = Operation(
    "PUT",
    paths.PART,
    "putPart",
    "Bring one part, to the address that was signed for it. Other storage has other addresses.",
    None,
    status=204,
    guard=Guard.SIGNED_URL,
    codes=(
        E.ARTIFACT_INVALID,
        E.ARTIFACT_NOT_FOUND,
        E.ARTIFACT_GONE,
        HttpCode.REQUEST_TIMEOUT,
    ),
    bytes=BINARY,
    parameters=(_KEY, _NUMBER, _EXPIRES, _LENGTH),
)
READ_OBJECT = Operation(
    "GET",
    paths.OBJECT,
    "readObject",
    "The bytes of an object, or one range of them, from an address that was signed for it.",
    None,
    guard=Guard.SIGNED_URL,
    codes=(E.ARTIFACT_NOT_FOUND, HttpCode.RANGE_NOT_SATISFIABLE),
    headers=("Range",),
    others=((206, "The range of bytes that was asked for."),),
    parameters=(_KEY, _EXPIRES, _MEDIA_TYPE, _FILE_NAME),
)
READ_CONTENT = Operation(
    "GET",
    paths.CONTENT,
    "readContent",
    "An address from which content can be read for a while.",
    shapes.ContentView,
    verb=Verb.READ_ARTIFACTS,
    codes=(*_READ, E.ARTIFACT_GONE),
)
LIST_ARTIFACTS = _listing(
    paths.ARTIFACTS, "listArtifacts", "The artifacts of a tenant, by name.", shapes.ArtifactPage
)._replace(codes=(E.ENVELOPE_INVALID,))
LIST_VERSIONS = _listing(
    paths.VERSIONS, "listVersions", "Versions of an artifact, newest first.", shapes.VersionPage
)
PUBLISH_VERSION = Operation(
    "POST",
    paths.VERSIONS,
    "publishVersion",
    "Publish the next version of an artifact; a policy may keep it in quarantine.",
    shapes.VersionView,
    status=201,
    verb=Verb.PUBLISH,
    codes=(*_BODY, E.ARTIFACT_INVALID, E.ARTIFACT_NOT_FOUND, E.ARTIFACT_GONE, E.STATE_CONFLICT),
    body=shapes.NewVersion,
    answers_with=("Location",),
    others=(_THERE,),
)
READ_VERSION = _listing(
    paths.VERSION, "readVersion", "A version of an artifact.", shapes.VersionView
)
PUBLISH_DRAFT = _version(
    Verb.PUBLISH, "publish", "publishDraft", "Ask the policy again about a version in quarantine."
)
TOMBSTONE_VERSION = _version(
    Verb.TOMBSTONE,
    "tombstone",
    "tombstoneVersion",
    "Nobody new may read the version; jobs that hold it may.",
    shapes.Tombstoning,
)
RESTORE_VERSION = _version(
    Verb.RESTORE, "restore", "restoreVersion", "Publish a tombstoned version again."
)
RUN_COLLECTION = Operation(
    "POST",
    paths.RUNS,
    "runCollection",
    "Collect what nobody needs now, or say what would be collected.",
    shapes.RunView,
    verb=Verb.COLLECT_GARBAGE,
    codes=(*_BODY, E.STATE_CONFLICT),
    body=shapes.NewRun,
)

OPERATIONS: tuple[Operation, ...] = (
    BEGIN_UPLOAD,
    READ_UPLOAD,
    SIGN_PARTS,
    DEDUPE_UPLOAD,
    COMPLETE_UPLOAD,
    ABORT_UPLOAD,
    PUT_PART,
    READ_OBJECT,
    READ_CONTENT,
    LIST_ARTIFACTS,
    LIST_VERSIONS,
    PUBLISH_VERSION,
    READ_VERSION,
    PUBLISH_DRAFT,
    TOMBSTONE_VERSION,
    RESTORE_VERSION,
    RUN_COLLECTION,
)
