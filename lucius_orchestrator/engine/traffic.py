"""What this process knows of the directives that are with services, and of the services themselves.

Every commit of the engine passes through `committed`; a dispatcher adds what it claims. From both
follow the window of each service (see `domain.window`) and the signs of life that tell an absent
service from a slow one. Processes tell each other through reports in the ledger
(`engine.traffic_reports`): a reply may be taken by another process than the one that dispatches.

Nothing here is needed for correctness: after a crash it is built again from the ledger, and until
then the window may be exceeded.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple

from lucius_contract.states import StepState
from lucius_contract.transitions import StepTrigger
from lucius_orchestrator.domain import window as windows
from lucius_orchestrator.domain.aggregate import Aggregate, Engine, Job, Step, Turn
from lucius_orchestrator.domain.decision import Decision, StepChanges
from lucius_orchestrator.domain.events import (
    AckReceived,
    AckTimedOut,
    AttemptOpened,
    Event,
    HeartbeatReceived,
    ReplyReceived,
)
from lucius_orchestrator.domain.window import Limits, Probes, Signals
from lucius_orchestrator.domain.workflow import wants_attempt
from lucius_orchestrator.engine.service_load import (
    INSTANCE_LIFE,
    Instance,
    Presence,
    Seen,
    ServiceLoad,
    ServiceTraffic,
    latest,
    merged_seen,
)

_NO_TIME = timedelta()

CLAIMED, UNACKNOWLEDGED, LAPSED, WORKING = range(4)
"""Where a directive is: claimed by a dispatcher, or admitted and not published yet; published;
published, its ACK timeout over and its attempt still open to a late ACK; acknowledged."""

_WAITS = tuple(timedelta(seconds=seconds) for seconds in (60, 35, 60, 60))
"""For how long nothing may be heard of a directive in one of these states before its job is read
again. A directive that is not acknowledged is given up by then, if the ACK timeout is the usual."""

_DISPATCHING = StepState.DISPATCHING
_STATES_CAPACITY = (AckReceived, HeartbeatReceived)

Key = tuple[str, str]
"""A job and one of its steps: of its attempts only the current one is with a service."""


class Move(NamedTuple):
    """A directive of which another process may keep account has moved. `state` is where it is now;
    None: with the service no more. Of jobs that Temporal drives the process that has granted a turn
    or admitted an attempt keeps account, whichever publishes it."""

    digest: str
    state: int | None
    at: datetime


@dataclass(slots=True)
class _Entry:
    service: ServiceLoad
    state: int
    lane: int
    sent_at: datetime
    since: datetime
    """When it was last heard of."""
    began_at: datetime | None = None
    probed: int | None = None
    """Of a probe: the capacity that was known when it was claimed."""
    digest: str | None = None


class Traffic:
    """`limits` bound the window of each service; `lane_limit` is how many directives of a service
    may be unacknowledged in one lane."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        limits: Limits | None = None,
        lane_limit: int | None = None,
    ) -> None:
        self._clock = clock
        self._limits = limits or Limits()
        self._lane_limit = lane_limit or self._limits.most
        self._services: dict[str, ServiceLoad] = {}
        self._entries: dict[Key, _Entry] = {}
        self.moves: list[Move] = []
        """Of directives that another process dispatched; whoever reports takes them."""
        self.is_shared = False
        """Whether other processes are there, to which moves matter."""
        self.dispatchers, self.rank = 1, 0
        self.on_room: Callable[[], None] | None = None
        """Called when a service with a backlog has room again."""

    # What happens.

    def claimed(self, job_id: str, step_id: str, service: str, lane: int) -> None:
        """A directive is about to be published. Called again before it is: it counts once."""
        now = self._clock()
        found, key = self._service(service), (job_id, step_id)
        earlier = self._entries.get(key)
        if earlier is not None and earlier.state == CLAIMED:
            earlier.since = now
            return
        if earlier is not None:
            self._let_go(key)
        probed = None
        if found.probes.last_at is not None and self._room(found, now) <= 0:
            probed = found.capacity()
        self._entries[key] = _Entry(found, CLAIMED, lane, now, now, None, probed)
        found.counts[CLAIMED] += 1
        found.lanes[lane] += 1
        found.idle_since = None
        if found.known_room is not None:
            found.known_room -= 1

    def turn_claimed(self, job_id: str, step_id: str, service: str, lane: int) -> None:
        """A turn is about to be granted. While an earlier attempt is with the service after all,
        that counts instead."""
        entry = self._entries.get((job_id, step_id))
        if entry is None or entry.state in (CLAIMED, LAPSED):
            self.claimed(job_id, step_id, service, lane)

    def unpublished(self, job_id: str, step_id: str) -> None:
        """The dispatcher is done with a directive; if it was not published, it is not with the
        service."""
        entry = self._entries.get((job_id, step_id))
        if entry is not None and entry.state == CLAIMED:
            self._let_go((job_id, step_id))

    def committed(self, event: Event, decision: Decision, aggregate: Aggregate) -> None:
        """Take account of a commit; `aggregate` is the job after it."""
        job, replied = aggregate.job, None
        if isinstance(event, ReplyReceived):
            replied = event.step_id
        for index, changes in decision.steps.items():
            step, at = aggregate.steps[index], changes["updated_at"]
            if step.step_id == replied:
                self._heard(event, step.service, at)
            elif "turn" in changes and (turn := changes["turn"]) is not None:
                self._turned((job.job_id, step.step_id), step, turn, at)
            state = changes.get("state")
            if state is None or (state is _DISPATCHING and _is_new(changes, event)):
                continue
            self._moved(job, step, state, at, event)

    def restore(self, aggregate: Aggregate) -> None:
        """Take account of a job as the ledger has it: after a start, or when in doubt."""
        job_id, step = aggregate.job.job_id, aggregate.active
        attempt = step.attempt(step.attempt_no)
        state = _state_of(aggregate.job, step)
        for other in aggregate.steps:
            if other is not step:
                self._let_go((job_id, other.step_id))
        if state is None:
            self._let_go((job_id, step.step_id))
            return
        sent_at = step.updated_at
        if attempt is not None and state != CLAIMED:
            sent_at = attempt.sent_at or attempt.dispatched_at
        key = (job_id, step.step_id)
        self._place(key, step, state, sent_at)
        self._entries[key].since = self._clock()

    # What a dispatcher asks.

    def room(self, service: str) -> int:
        """Return how many more directives of the service this process may publish now."""
        found = self._service(service)
        room = found.known_room
        if room is None or found.idle_since is not None:
            room = self._room(found, self._clock())
        return max(room, 0)

    def admits(self, job_id: str, step_id: str, service: str) -> bool:
        """Return whether the next attempt of a step may be opened now: there is room, and nothing
        waits before it. What its last attempt holds is given back then."""
        entry, found = self._entries.get((job_id, step_id)), self._service(service)
        given_back = int(entry is not None and entry.state == LAPSED)
        has_room = self._room(found, self._clock(), given_back) > 0
        return has_room and not (found.is_awaited or self.has_backlog(service))

    def may_probe(self, service: str) -> bool:
        """Return whether it is time to try a service that has no room with one directive."""
        found, now = self._service(service), self._clock()
        if self.rank or self._room(found, now) > 0:
            return False
        if found.probes.last_at is None:
            found.probes = Probes(now)
        return windows.may_probe(found.probes, self._signals(found, now), now)

    def has_probed(self, service: str) -> None:
        """Begin the pause before the next probe."""
        found = self._service(service)
        found.probes = found.probes._replace(last_at=self._clock())

    def has_lane_room(self, service: str, lane: int) -> bool:
        return self._service(service).lanes[lane] < self._lane_limit

    def has_backlog(self, service: str) -> bool:
        """Return whether directives of the service wait for their turn."""
        found = self._service(service)
        return found.has_backlog or found.remote.has_backlog

    def set_backlog(self, service: str, *, waits: bool) -> None:
        """Say whether directives of the service wait in the ledger."""
        self._service(service).has_backlog = waits

    def await_room(self, service: str) -> None:
        """Have `on_room` called once, when the service has room."""
        self._service(service).is_awaited = True

    def with_backlog(self) -> list[str]:
        return [name for name, found in self._services.items() if found.has_backlog]

    # What sweepers and people ask.

    def is_absent(self, service: str, since: datetime) -> bool:
        """Return whether nothing at all was heard from the service since the moment."""
        found = self._service(service)
        heard = latest(found.heard_at, found.remote.heard_at)
        return heard is None or heard < since

    def is_unanswered(self, step: Step) -> bool:
        """Return whether nothing at all was heard from the service since the directive of the
        current attempt was sent."""
        attempt = step.attempt(step.attempt_no)
        sent_at = attempt.sent_at if attempt else None
        return sent_at is not None and self.is_absent(step.service, sent_at)

    def services(self, named: Iterable[str] = ()) -> list[ServiceTraffic]:
        """Return those that were seen and those that are named, by name."""
        now = self._clock()
        names = sorted({*named, *self._services})
        return [self._seen_by_all(self._service(name), now) for name in names]

    def rate(self, service: str) -> float:
        """Return how many directives the service finishes in a second."""
        return self._signals(self._service(service), self._clock()).rate

    # What is exchanged with other processes.

    def seen(self, *, dispatches: bool) -> dict[str, Seen]:
        """Return what this process has seen by itself."""
        now = self._clock()
        return {
            found.name: Seen(
                found.heard_at,
                found.unacknowledged,
                found.counts[WORKING],
                found.rate(now.timestamp()),
                found.window.size if dispatches else None,
                found.is_absent,
                found.has_backlog,
                found.instances,
            )
            for found in self._services.values()
        }

    def learn(self, others: Iterable[Mapping[str, Seen]], dispatchers: int, rank: int) -> None:
        """Replace what the other processes have seen."""
        self.dispatchers, self.rank = dispatchers, rank
        merged: dict[str, Seen] = {}
        for seen in others:
            for name, one in seen.items():
                merged[name] = merged_seen(merged.get(name, Seen()), one)
        for name in {*merged, *self._services}:
            found = self._service(name)
            found.remote, found.known_room = merged.get(name, Seen()), None
            if found.is_absent and found.was_heard_since():
                self._is_back(found)

    def apply(self, moves: Iterable[Move]) -> None:
        """Take account of what other processes committed of this one's directives."""
        by_digest = {self._digest(key, entry): key for key, entry in self._entries.items()}
        for digest, state, at in moves:
            key = by_digest.get(digest)
            entry = self._entries.get(key) if key is not None else None
            if key is None or entry is None:
                continue
            if state == UNACKNOWLEDGED and entry.state == CLAIMED:
                entry.sent_at = at
                self._set(entry, UNACKNOWLEDGED, at)
            elif state == WORKING and entry.state != WORKING:
                self._picked_up(entry, at)
                self._set(entry, WORKING, at)
            elif state == LAPSED and entry.state == UNACKNOWLEDGED:
                self._missed(entry, at, absent=self.is_absent(entry.service.name, entry.sent_at))
                self._set(entry, LAPSED, at)
            elif state is None and not (entry.state == CLAIMED and at < entry.sent_at):
                # Else it is about an attempt before the one that was claimed since.
                has_worked = entry.state in (UNACKNOWLEDGED, WORKING)
                self._end(key, entry, at, has_worked=has_worked)

    def in_doubt(self, limit: int) -> list[str]:
        """Return jobs that should be read again, since nothing was heard of them for long."""
        now, found = self._clock(), list[str]()
        for (job_id, _), entry in self._entries.items():
            if now - entry.since > _WAITS[entry.state] and len(found) < limit:
                entry.since = now
                found.append(job_id)
        return found

    def forget(self, job_id: str) -> None:
        """The job is not there any more."""
        for key in [key for key in self._entries if key[0] == job_id]:
            self._let_go(key)

    def tick(self) -> None:
        """Do what only time brings."""
        now = self._clock()
        for found in self._services.values():
            found.known_room = None
            lapsed = [
                name
                for name, instance in found.instances.items()
                if now - instance.heard_at > INSTANCE_LIFE
            ]
            for name in lapsed:
                del found.instances[name]
            self._look_for_a_stall(found, now)

    # Inside.

    def _service(self, name: str) -> ServiceLoad:
        found = self._services.get(name)
        if found is None:
            found = self._services[name] = ServiceLoad(name, windows.new_window(self._limits))
        return found

    def _room(self, found: ServiceLoad, now: datetime, given_back: int = 0) -> int:
        if given_back:
            return self._computed_room(found, now, given_back)
        if found.known_room is None or found.idle_since is not None:
            found.known_room = self._computed_room(found, now)
        return found.known_room

    def _computed_room(self, found: ServiceLoad, now: datetime, given_back: int = 0) -> int:
        idle = found.idle_since
        if idle is not None and now - idle > found.ack_timeout:
            found.window = windows.rested(found.window, self._limits, found.capacity())
            found.shown_capacity, found.idle_since = None, None
        own = int(found.window.size) - found.unacknowledged + given_back
        if own <= 0:
            return 0
        capacity = found.capacity()
        if capacity is None:
            return own
        signals = self._signals(found, now)
        signals = signals._replace(unacknowledged=signals.unacknowledged - given_back)
        room = windows.room(found.window, signals)
        return min(own, windows.share(room, self.dispatchers, self.rank))

    def _signals(self, found: ServiceLoad, now: datetime) -> Signals:
        remote = found.remote
        return Signals(
            found.unacknowledged + remote.unacknowledged,
            found.counts[WORKING] + remote.working,
            found.capacity(),
            found.rate(now.timestamp()) + remote.rate,
            found.ack_timeout,
            found.slot_seconds(),
        )

    def _heard(self, event: Event, service: str, now: datetime) -> None:
        found = self._service(service)
        found.heard_at = now
        found.known_room = None
        if isinstance(event, _STATES_CAPACITY) and event.capacity is not None:
            instance_id, slots = event.capacity
            known = found.instances.get(instance_id)
            if known is None or known.slots < slots:
                more = slots - (known.slots if known else 0)
                found.window = windows.widened(found.window, self._limits, more)
            found.instances[instance_id] = Instance(slots, now)
        if found.is_absent:
            self._is_back(found)

    def _is_back(self, found: ServiceLoad) -> None:
        found.is_absent = False
        found.window = windows.new_window(self._limits)
        self._has_room(found)

    def _turned(self, key: Key, step: Step, turn: Turn, at: datetime) -> None:
        """The next attempt waits for its turn, or has it."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.service.ack_timeout = step.policy.ack_timeout
        if turn is Turn.GRANTED:
            return
        if entry is None:
            self._tell_others(key, None, at)
        elif entry.state == LAPSED:
            self._let_go(key)

    def _moved(self, job: Job, step: Step, state: StepState, at: datetime, event: Event) -> None:
        key = (job.job_id, step.step_id)
        entry = self._entries.get(key)
        if entry is None:
            self._moved_elsewhere(key, job, step, state, at, event)
        elif state is StepState.AWAITING_ACK:
            self._place(key, step, UNACKNOWLEDGED, at)
        elif isinstance(event, AttemptOpened) and entry.state == CLAIMED:
            entry.since = at
            if step.attempt_no > 1:  # of the attempt before it another process may keep account
                self._tell_others(key, None, at)
        elif state is StepState.IN_PROGRESS:
            if entry.state != WORKING:
                self._picked_up(entry, at)
            self._set(entry, WORKING, at)
        elif isinstance(event, AckTimedOut):
            self._missed(entry, at, absent=event.absent)
            if state is StepState.FAILED_RETRY:
                self._set(entry, LAPSED, at)
            else:
                self._end(key, entry, at, has_worked=False)
        else:
            self._end(key, entry, at, has_worked=isinstance(event, ReplyReceived))

    def _moved_elsewhere(
        self, key: Key, job: Job, step: Step, state: StepState, at: datetime, event: Event
    ) -> None:
        """A directive has moved of which this process keeps no account so far."""
        is_driven = job.engine is Engine.TEMPORAL
        if state is StepState.AWAITING_ACK:
            if is_driven and self.is_shared:
                self._tell_others(key, UNACKNOWLEDGED, at)
            else:
                self._place(key, step, UNACKNOWLEDGED, at)
        elif state is StepState.IN_PROGRESS and step.turn is not None:
            self._place(key, step, WORKING, at)  # a late ACK, while the next attempt waits
        elif state is StepState.IN_PROGRESS:
            self._tell_others(key, WORKING, at)
        elif state is StepState.FAILED_RETRY and isinstance(event, AckTimedOut):
            self._tell_others(key, LAPSED, at)
        elif state is not StepState.DISPATCHING or not (is_driven or step.attempt_no == 1):
            self._tell_others(key, None, at)

    def _place(self, key: Key, step: Step, state: int, at: datetime) -> None:
        entry = self._entries.get(key)
        if entry is None:
            found = self._service(step.service)
            entry = self._entries[key] = _Entry(found, state, step.route.lane, at, at)
            found.counts[state] += 1
            found.lanes[entry.lane] += state != WORKING
        entry.sent_at = at
        entry.service.ack_timeout = step.policy.ack_timeout
        self._set(entry, state, at)

    def _set(self, entry: _Entry, state: int, at: datetime) -> None:
        found = entry.service
        if state == UNACKNOWLEDGED and not found.counts[UNACKNOWLEDGED]:
            found.waits_since = at
        if state != entry.state:
            found.counts[entry.state] -= 1
            found.counts[state] += 1
            found.lanes[entry.lane] += (entry.state == WORKING) - (state == WORKING)
            if state == WORKING:
                entry.began_at = at
            entry.state = state
        found.idle_since = found.known_room = None
        entry.since = at

    def _picked_up(self, entry: _Entry, at: datetime) -> None:
        found = entry.service
        found.picked_up_at = at
        waited = max(at - entry.sent_at, _NO_TIME)
        found.window = windows.picked_up(
            found.window,
            self._limits,
            waited=waited,
            ack_timeout=found.ack_timeout,
            unacknowledged=found.unacknowledged,
            now=at,
        )
        if found.shown_capacity is not None and found.counts[WORKING] >= found.shown_capacity:
            found.shown_capacity = found.counts[WORKING] + 1
        if entry.probed is not None:
            self._has_probed(found, entry.probed, waited)
            entry.probed = None
        self._has_room(found)

    def _has_probed(self, found: ServiceLoad, known: int, waited: timedelta) -> None:
        """A probe that another instance took opens the way; one that took a slot that had just
        become free says nothing."""
        if (found.capacity() or 0) > known:
            found.probes = Probes()
        elif waited > found.ack_timeout * windows.GOOD:
            found.probes = _failed(found.probes)

    def _missed(self, entry: _Entry, at: datetime, *, absent: bool) -> None:
        found = entry.service
        found.known_room = None
        if absent:
            found.is_absent = True
            found.window = windows.absent(self._limits, at)
        else:
            found.window = windows.missed(found.window, self._limits, sent_at=entry.sent_at, now=at)
        if entry.probed is not None:
            found.probes, entry.probed = _failed(found.probes), None

    def _end(self, key: Key, entry: _Entry, at: datetime, *, has_worked: bool) -> None:
        if has_worked:
            if entry.state == WORKING:
                entry.service.picked_up_at = at
            else:
                self._picked_up(entry, at)
            seconds = (at - (entry.began_at or at)).total_seconds()
            entry.service.count_finished(at.timestamp(), seconds)
        self._let_go(key)

    def _let_go(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        found = entry.service
        found.counts[entry.state] -= 1
        if entry.state != WORKING:
            found.lanes[entry.lane] -= 1
        if not any(found.counts):
            found.idle_since = self._clock()
        found.known_room = None
        self._has_room(found)

    def _has_room(self, found: ServiceLoad) -> None:
        if self.on_room is not None and (found.has_backlog or found.is_awaited):
            found.is_awaited = False
            self.on_room()

    def _look_for_a_stall(self, found: ServiceLoad, now: datetime) -> None:
        """Learn the capacity of a service that states none: it works, and picks up nothing more."""
        if not (found.counts[UNACKNOWLEDGED] and found.counts[WORKING]):
            return
        since = latest(found.waits_since, found.picked_up_at)
        if since is not None and now - since > found.ack_timeout * windows.GOOD:
            found.shown_capacity = found.counts[WORKING]

    def _tell_others(self, key: Key, state: int | None, at: datetime) -> None:
        if self.is_shared:
            self.moves.append(Move(digest_of(key), state, at))

    def _digest(self, key: Key, entry: _Entry) -> str:
        if entry.digest is None:
            entry.digest = digest_of(key)
        return entry.digest

    def _seen_by_all(self, found: ServiceLoad, now: datetime) -> ServiceTraffic:
        signals, remote = self._signals(found, now), found.remote
        heard_at = latest(found.heard_at, remote.heard_at)
        is_absent = (found.is_absent or remote.absent) and not found.was_heard_since()
        presence = Presence.UNKNOWN if heard_at is None else Presence.PRESENT
        return ServiceTraffic(
            found.name,
            Presence.ABSENT if is_absent else presence,
            heard_at,
            signals.unacknowledged,
            signals.working,
            found.window.size if remote.window is None else remote.window,
            signals.capacity,
            len({*found.instances, *remote.instances}),
            signals.rate,
            found.has_backlog or remote.has_backlog,
        )


def _is_new(changes: StepChanges, event: Event) -> bool:
    """Return whether nothing of the step was with a service before, and no turn was granted."""
    return changes.get("attempt_no") == 1 and not isinstance(event, AttemptOpened)


def digest_of(key: Key) -> str:
    return blake2b("/".join(key).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _state_of(job: Job, step: Step) -> int | None:
    """Return where the directive of a step is, as far as the ledger knows."""
    if step.state is StepState.AWAITING_ACK:
        return UNACKNOWLEDGED
    if step.state is StepState.IN_PROGRESS:
        return WORKING
    if step.state is StepState.DISPATCHING:  # a workflow publishes it without asking again
        return CLAIMED if job.engine is Engine.TEMPORAL else None
    if step.turn is not None:
        is_granted = step.turn is Turn.GRANTED and wants_attempt(job, step)
        return CLAIMED if is_granted else None
    attempt = step.attempt(step.attempt_no)
    if step.state is StepState.FAILED_RETRY and attempt is not None:
        return LAPSED if attempt.ended_by is StepTrigger.ACK_TIMEOUT else None
    return None


def _failed(probes: Probes) -> Probes:
    return probes._replace(failures=probes.failures + 1)
