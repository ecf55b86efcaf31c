"""The rules that a platform service must keep, as data: all that people read about them is made of
this."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    CORE = "core"
    FULL = "full"


class Need(StrEnum):
    """What a rule can only be judged with; a service that declares not to have it is skipped."""

    HTTP_REPLIES = "replies over HTTP"
    HEARTBEATS = "heartbeats"
    ARTIFACTS = "artifacts"
    TWO_AT_ONCE = "a concurrency of at least 2"
    SECOND_INSTANCE = "a store that two instances can share"
    TWO_STORES = "a store that two instances can share, or one for each"


@dataclass(frozen=True, slots=True)
class Rule:
    """`clause` is the heading under which `docs/reference/service-contract.md` says so; `why` what
    goes wrong in production when it is broken; `causes` what the fault usually is."""

    id: str
    statement: str
    clause: str
    why: str
    causes: str
    level: Level = Level.CORE
    needs: tuple[Need, ...] = ()


RULES: tuple[Rule, ...] = (
    Rule(
        "LC-01",
        "An ACK comes within N seconds of the delivery (5 unless the contract says otherwise) while"
        " the service is below its concurrency, and before the RESULT.",
        "Replies",
        "Without an ACK the orchestrator takes the directive for lost and sends another attempt:"
        " the work is done twice, or the step fails although it was in good hands.",
        "The ACK is sent after the work instead of before it, or waits behind other work.",
    ),
    Rule(
        "LC-02",
        "ACK and RESULT carry the directive's identity: jobId, stepId, tenant_id, attempt_no,"
        " lease_id; a timestamp in UTC; and its correlation_id.",
        "Replies",
        "A reply that does not say which attempt of which job it is for cannot be applied, and is"
        " refused or counted for the wrong one.",
        "The reply is built from parts of the directive, and one was forgotten or renamed, or the"
        " time was written without its offset.",
    ),
    Rule(
        "LC-03",
        "All RESULTs of an attempt are identical, and when nothing failed there is exactly one.",
        "One RESULT",
        "The first RESULT counts. A second one with other content, even another timestamp, is a"
        " RESULT_CONFLICT: nobody knows which of the two outcomes is true.",
        "The RESULT is built anew for each try, or it is sent by two places in the code.",
    ),
    Rule(
        "LC-04",
        "A duplicate of a directive that arrives after completion does not run the work again.",
        "One RESULT",
        "The bus delivers at least once. Work that runs again costs money, and may overwrite what"
        " others are already reading.",
        "Nothing is remembered of finished work, or it is remembered under a key that a duplicate"
        " does not have.",
    ),
    Rule(
        "LC-05",
        "Duplicates that are delivered at the same time cause one run and one RESULT.",
        "One RESULT",
        "Two instances, or two slots of one, that both believe to be the owner write over each"
        " other's results.",
        "The claim is a read followed by a write instead of one compare-and-set.",
    ),
    Rule(
        "LC-06",
        "After attempt n+1 was acknowledged, attempt n is neither run nor answered with a RESULT.",
        "Attempts and leases",
        "The orchestrator has given attempt n up. Its late result could be taken for news, and its"
        " run wastes a slot.",
        "Directives are told apart by job and step, but their attempts are not compared.",
    ),
    Rule(
        "LC-07",
        "A directive whose lease has expired is neither run nor answered with a RESULT.",
        "Attempts and leases",
        "Whoever holds an expired lease is not the owner any more: another instance may be at work"
        " on the same step.",
        "`lease_expires_at` is not looked at on arrival, or not again when the work is done.",
    ),
    Rule(
        "LC-08",
        "An ACK that is answered STALE_ATTEMPT stops the work: no RESULT follows.",
        "Attempts and leases",
        "The orchestrator has said that this attempt does not count. To go on is to work for"
        " nothing, and to write where the next attempt may be writing.",
        "The answer to the ACK is not read, or only its failure is logged.",
        needs=(Need.HTTP_REPLIES,),
    ),
    Rule(
        "LC-09",
        "A new attempt with a new lease runs anew and is answered with its own lease.",
        "Attempts and leases",
        "A retry exists because the last attempt did not count. A service that answers it from"
        " memory, or with the old lease, can never be retried: the step fails for good.",
        "What is remembered of a step does not include its attempt.",
    ),
    Rule(
        "LC-10",
        "SUCCEEDED names artifacts that exist, with the right size and sha256, under the folder of"
        " its own attempt.",
        "Workspace",
        "The next step reads exactly what the RESULT names, and refuses what is not what it was"
        " told.",
        "The digest is computed before the last write, or of something else than what is stored;"
        " or the attempt is missing in the path.",
        needs=(Need.ARTIFACTS,),
    ),
    Rule(
        "LC-11",
        "Within the storage root that it was given, the service writes nothing outside the folder"
        " of its attempt and `output_ref`.",
        "Workspace",
        "What lies elsewhere belongs to other jobs, steps or attempts. No two runs share a folder,"
        " so that an abandoned one can never damage what counts.",
        "Temporary or cache files are put beside the results, or a path is made of parts of the"
        " payload.",
    ),
    Rule(
        "LC-12",
        "An invalid payload is answered FAILED_FINAL, NON_RETRYABLE, PAYLOAD_INVALID, and the work"
        " is not run.",
        "Directives",
        "Trying again cannot mend a payload: as RETRYABLE it uses up every attempt before anybody"
        " is told.",
        "The payload is not validated before the work, or its error is treated as any other.",
    ),
    Rule(
        "LC-13",
        "A malformed directive is dead-lettered with a reason, and the next one is served.",
        "Directives",
        "A message that cannot be read comes again and again until the bus gives it up; completed"
        " instead, it is lost without a trace.",
        "Parsing happens inside the handler whose failures are abandoned or swallowed.",
    ),
    Rule(
        "LC-14",
        "A passing fault of storage leads to FAILED_RETRY, RETRYABLE, or to success after the"
        " service's own retries.",
        "Failures",
        "Storage comes back. A job that failed for good because of one bad minute has to be"
        " redriven by hand.",
        "Every exception of the work is reported as FAILED_FINAL.",
    ),
    Rule(
        "LC-15",
        "A RESULT survives an orchestrator that is down or slow: it is delivered when that is"
        " back.",
        "Failures",
        "The work is done and paid for. A RESULT that is given up leaves the step to its lease, and"
        " then the work is done again.",
        "The number of tries is limited, or the message is settled before the RESULT was answered.",
    ),
    Rule(
        "LC-16",
        "Killed in mid-work: after redelivery there is one RESULT.",
        "Failures",
        "Machines die. What they were working on must be taken over by the next instance, not"
        " lost.",
        "The message is completed before the work is, or the claim of the dead instance is"
        " respected for ever.",
    ),
    Rule(
        "LC-17",
        "Killed between finishing and reporting: the stored RESULT is reported after a restart, and"
        " the work is not run again.",
        "One RESULT",
        "The work may have had effects that must not happen twice, and its result is known.",
        "The RESULT is sent before it is stored, or it is stored only in memory.",
    ),
    Rule(
        "LC-18",
        "SIGTERM: the service takes no new work, finishes or releases what it has, and exits with 0"
        " within its grace time.",
        "Stopping",
        "Every deployment and every scale-in sends SIGTERM. What is dropped then is delayed by a"
        " lock, a lease or for ever.",
        "The signal is not handled, or the receivers are not closed before waiting for the work.",
    ),
    Rule(
        "LC-19",
        "Unknown fields are tolerated.",
        "Directives",
        "The contract grows by adding fields. A service that refuses them stops on the day that the"
        " orchestrator is updated.",
        "The directive is read into a model that forbids what it does not know.",
    ),
    Rule(
        "LC-20",
        "Replies continue the directive's trace (`traceparent` with the same trace id), and echo"
        " its correlation_id.",
        "Replies",
        "A job crosses four services. Without one trace id nobody can say what happened to it.",
        "A new trace is begun in the service, or the header is not set on replies.",
    ),
    Rule(
        "LC-21",
        "`/healthz/live` and `/healthz/ready` answer; ready turns false within 10 s while the bus"
        " or the storage is away, and true when it is back.",
        "Health",
        "Whoever deploys and scales it sees only these. A service that says it is ready and cannot"
        " work gets traffic that it will fail.",
        "Readiness is a constant, or it is checked only at the start.",
    ),
    Rule(
        "LC-22",
        "The service works on no more directives at once than its concurrency, and on that many in"
        " parallel. Under a backlog it acknowledges only what it starts, and leaves the rest to"
        " other instances.",
        "Capacity",
        "More at once than it can bear ends in lost leases; fewer waste the machine, and"
        " autoscaling is computed with the stated number. What is acknowledged or locked before"
        " there is room for it waits for one instance while others are idle, until its ACK is late"
        " or its lock runs out.",
        "Each lane has its own limit, a lock makes handlers take turns, or messages are fetched"
        " ahead.",
    ),
    Rule(
        "LC-23",
        "A directive of a step type that the service does not own is not run.",
        "Directives",
        "A wrong subscription filter must not make OCR out of somebody's billing run.",
        "The step type of a directive is not compared with the service's own.",
    ),
    Rule(
        "LC-24",
        "Work that takes longer than the message lock: the lock is renewed, and there is no second"
        " run.",
        "Capacity",
        "When the lock runs out the bus gives the directive to somebody else while the work goes"
        " on: it runs twice at the same time.",
        "Locks are not renewed, or by a task that the work blocks.",
    ),
    Rule(
        "LC-25",
        "Replies go where the directive says: to its callback URLs with its token, or to the reply"
        " topic of its lane.",
        "Replies",
        "The two ways are read by different parts of the control plane; a reply on the wrong one is"
        " never seen.",
        "The way is a setting of the service instead of a property of each directive, or the lane"
        " is computed instead of read.",
    ),
    Rule(
        "LC-26",
        "Work that takes longer than the heartbeat interval: heartbeats are sent, and"
        " `cancel_requested` in an answer is honoured.",
        "Attempts and leases",
        "Without heartbeats long work loses its lease while it is doing well; a cancel that is not"
        " heard keeps machines busy with what nobody wants.",
        "Heartbeats are sent by the handler's own thread, or their answers are not read.",
        level=Level.FULL,
        needs=(Need.HEARTBEATS,),
    ),
)
_BY_ID = {rule.id: rule for rule in RULES}


class UnknownRule(ValueError):
    """There is no rule of this id."""


def rule(rule_id: str) -> Rule:
    found = _BY_ID.get(rule_id.upper())
    if found is None:
        raise UnknownRule(f"there is no rule {rule_id!r}; there are LC-01 to {RULES[-1].id}")
    return found
