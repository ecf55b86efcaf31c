"""The node `$cbs`: a peer shows the tokens that let it make links."""

from servicebus_emulator.amqp import Int
from servicebus_emulator.links.authorization import Authorization
from servicebus_emulator.links.requests import Request, Response, Responses
from servicebus_emulator.sas import Unauthorized


class CbsNode:
    def __init__(self, authorization: Authorization) -> None:
        self.responders: list[Responses] = []
        self._authorization = authorization

    def handle(self, request: Request) -> Response:
        if request.properties.get("operation") != "put-token":
            return _response(400, "the only operation is put-token")
        name, token = request.properties.get("name"), request.body
        if not isinstance(name, str) or not isinstance(token, str):
            return _response(400, "put-token needs the property name and a token as its body")
        try:
            self._authorization.put(name, token)
        except Unauthorized as error:
            return _response(401, str(error))
        return _response(200, "OK")


def _response(status: int, description: str) -> Response:
    return Response({"status-code": Int(status), "status-description": description})
