"""Where things are."""

ORCHESTRATE = "/v1/orchestrate"
COMMANDS = "/v1/commands"
JOBS = "/v1/jobs"
JOB = "/v1/jobs/{jobId}"
STEPS = f"{JOB}/steps"
EVENTS = f"{JOB}/events"
STREAM = f"{JOB}/stream"
DEAD_LETTERS = "/v1/dead-letters"
PROTOCOLS = "/v1/protocols"
PROTOCOL = "/v1/protocols/{protocolId}"
SERVICES = "/v1/services"
ACK = "/v1/callbacks/ack"
RESULT = "/v1/callbacks/result"
HEARTBEAT = "/v1/callbacks/heartbeat"
CALLBACKS = frozenset({ACK, RESULT, HEARTBEAT})
ARTIFACTS = "/v1/artifacts"
UPLOADS = f"{ARTIFACTS}/uploads"
UPLOAD = f"{UPLOADS}/{{uploadId}}"
OBJECT = f"{ARTIFACTS}/objects/{{key}}"
PART = f"{OBJECT}/parts/{{number}}"
CONTENT = f"{ARTIFACTS}/content"
RUNS = f"{ARTIFACTS}/runs"
VERSIONS = f"{ARTIFACTS}/{{name}}/versions"
VERSION = f"{VERSIONS}/{{version}}"
LIVE = "/healthz/live"
READY = "/healthz/ready"
METRICS = "/metrics"
OPENAPI = "/openapi.json"


def job_path(job_id: str) -> str:
    return f"{JOBS}/{job_id}"


def job_links(job_id: str) -> dict[str, str]:
    path = job_path(job_id)
    names = ("steps", "events", "stream")
    return {"self": path, **{name: f"{path}/{name}" for name in names}}


def upload_path(upload_id: str) -> str:
    return f"{UPLOADS}/{upload_id}"


def upload_links(upload_id: str) -> dict[str, str]:
    path = upload_path(upload_id)
    verbs = ("sign", "dedupe", "complete", "abort")
    return {"self": path, **{verb: f"{path}:{verb}" for verb in verbs}}


def version_path(name: str, version: int) -> str:
    return f"{ARTIFACTS}/{name}/versions/{version}"
