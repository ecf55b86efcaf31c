"""From a request to its answer, without input and output."""

from collections.abc import Callable

from servicebus_emulator.administration.atom import Entry
from servicebus_emulator.administration.call import Call, one
from servicebus_emulator.administration.entities import Entities
from servicebus_emulator.administration.exchange import Refusal, Request, Response, error_response
from servicebus_emulator.administration.places import Kind, Place, locate
from servicebus_emulator.administration.subscriptions import Rules, Subscriptions
from servicebus_emulator.administration.switches import Switches, health
from servicebus_emulator.administration.text import escaped, write_time
from servicebus_emulator.administration.web_pages import is_of_web_page
from servicebus_emulator.broker import Broker, BrokerError, EntityExists, EntityNotFound
from servicebus_emulator.faults import Faults
from servicebus_emulator.sas import Keys, Right, Unauthorized

_STATUS: dict[type[BrokerError], int] = {EntityNotFound: 404, EntityExists: 409}
Handler = Callable[[Call], Response]


class Administration:
    """`flush` is called before each answer to a request that may have changed something."""

    def __init__(
        self,
        broker: Broker,
        keys: Keys,
        clock: Callable[[], int],
        faults: Faults,
        flush: Callable[[], None],
    ) -> None:
        self._keys = keys
        self._clock = clock
        self._flush = flush
        self._started_at = clock()
        self._handlers = self._routes(
            Entities(broker), Subscriptions(broker), Rules(broker), Switches(faults)
        )

    def handle(self, request: Request) -> Response:
        now = self._clock()
        try:
            response = self._done(request, now)
        except (Refusal, Unauthorized, BrokerError) as error:
            return _refused(request, error, now)
        if request.method != "GET":
            self._flush()
        return response

    def _done(self, request: Request, now: int) -> Response:
        place = locate(request.segments)
        if not self._keys:
            _refuse_web_pages(request)
        elif place.kind is not Kind.HEALTH:
            token = request.headers.get("authorization", "")
            self._keys.check(token, request.resource, now, Right.MANAGE)
        return self._handler(place, request.method)(Call(request, place.names, now))

    def _handler(self, place: Place, method: str) -> Handler:
        handlers = self._handlers[place.kind]
        if method not in handlers:
            raise Refusal(405, f"{method} is not for this path, but {', '.join(handlers)}")
        return handlers[method]

    def _routes(
        self, entities: Entities, subscriptions: Subscriptions, rules: Rules, switches: Switches
    ) -> dict[Kind, dict[str, Handler]]:
        atom: dict[Kind, dict[str, Handler]] = {
            kind: {"GET": found.get, "PUT": found.put, "DELETE": found.delete}
            for kind, found in (
                (Kind.ENTITY, entities),
                (Kind.SUBSCRIPTION, subscriptions),
                (Kind.RULE, rules),
            )
        }
        return {
            **atom,
            Kind.ENTITIES: {"GET": entities.list},
            Kind.SUBSCRIPTIONS: {"GET": subscriptions.list},
            Kind.RULES: {"GET": rules.list},
            Kind.NAMESPACE: {"GET": self._namespace},
            Kind.HEALTH: {"GET": health},
            Kind.FAULTS: {"GET": switches.list, "POST": switches.add, "DELETE": switches.clear},
        }

    def _namespace(self, call: Call) -> Response:
        name = call.request.headers.get("host", "emulator").partition(":")[0].partition(".")[0]
        started = write_time(self._started_at)
        content = (
            f"<Alias/><CreatedTime>{started}</CreatedTime><MessagingSKU>Standard</MessagingSKU>"
            f"<MessagingUnits>0</MessagingUnits><ModifiedTime>{started}</ModifiedTime>"
            f"<Name>{escaped(name)}</Name><NamespaceType>Messaging</NamespaceType>"
        )
        times = (self._started_at, self._started_at)
        return one(Entry(name, call.address, "NamespaceInfo", content, *times))


def _refuse_web_pages(request: Request) -> None:
    """Without keys whoever reaches the port may do everything."""
    if is_of_web_page(request.headers):
        raise Refusal(403, "without keys only programs on this machine are answered, not web pages")


def _refused(request: Request, error: Refusal | Unauthorized | BrokerError, now: int) -> Response:
    """Statuses below 500 say that nothing was done, and that it is the request's fault."""
    match error:
        case Refusal():
            status = error.status
        case Unauthorized():
            status = 401
        case BrokerError():
            status = next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 400)
    where = f"SystemTracker:{request.path}, Timestamp:{write_time(now)}"
    return error_response(status, f"SubCode={status}00. {error}. {where}")
