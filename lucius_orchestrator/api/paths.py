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
ACK = "/v1/callbacks/ack"
RESULT = "/v1/callbacks/result"
HEARTBEAT = "/v1/callbacks/heartbeat"
CALLBACKS = frozenset({ACK, RESULT, HEARTBEAT})
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
