"""How patient the bus is."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class ServiceBusSettings:
    """`shortest_wait` is how long a look lasts for somebody who does not want to wait, and how long
    it is waited for more messages after the first; `longest_look` is how long one lasts at most.
    A settlement waits for a look to end, but not for longer than `settle_within`: then the look is
    given up, which costs another.

    An attempt to connect, to send or to settle ends after `attempt_timeout`. When a connection
    cannot be made, the next attempt is made after `first_pause`, then twice that, and so on up to
    `longest_pause`. A topic that asks to slow down is left alone for `quiet`: the ten seconds that
    Service Bus asks for.

    `withdraw` is how long the bus may still send a receiver what was asked for when nobody receives
    or settles over it: then that is taken back, and what arrived for somebody who has gone is given
    back. So no message stays locked for a service whose slots are all taken. `linger` is how long
    its connection lasts.
    `keep_alive` is how often a sender that is not used shows that it is there; None
    lets the connection end. `is_partitioned` says that topics are: then a batch has one partition
    key. Where that is not said but so, it is found out by the first batch that is refused.

    `confirms_settlements` says that a settlement ends when the bus has confirmed it. For those who
    can bear a message that comes again, and a lock whose loss they are not told of, a settlement
    that is only sent costs less than half.
    """

    shortest_wait: timedelta = timedelta(milliseconds=50)
    longest_look: timedelta = timedelta(milliseconds=250)
    settle_within: timedelta = timedelta(milliseconds=20)
    attempt_timeout: timedelta = timedelta(seconds=10)
    first_pause: timedelta = timedelta(milliseconds=100)
    longest_pause: timedelta = timedelta(seconds=2)
    quiet: timedelta = timedelta(seconds=10)
    withdraw: timedelta = timedelta(seconds=1)
    linger: timedelta = timedelta(seconds=2)
    keep_alive: timedelta | None = timedelta(seconds=30)
    is_partitioned: bool = False
    confirms_settlements: bool = True

    def __post_init__(self) -> None:
        if not timedelta(0) < self.shortest_wait <= self.longest_look:
            raise ValueError("shortest_wait must be above zero and at most longest_look")
        if self.attempt_timeout <= self.longest_look:
            raise ValueError("attempt_timeout must be above longest_look")
        if not timedelta(0) <= self.first_pause <= self.longest_pause:
            raise ValueError("first_pause must be at least zero and at most longest_pause")
