"""Several kinds of credentials side by side, or none at all."""

from collections.abc import Sequence
from typing import Protocol

from lucius_orchestrator.security.bearer import bearer_token, unauthenticated
from lucius_orchestrator.security.callers import Authenticator, Caller, Role


class KindOfCredential(Authenticator, Protocol):
    def recognises(self, token: str) -> bool:
        """Whether the token has the looks of this kind. Says nothing about its being valid."""
        ...


class AnyAuthenticator:
    """The first that recognises the bearer's token judges it, and it alone."""

    def __init__(self, kinds: Sequence[KindOfCredential]) -> None:
        self._kinds = tuple(kinds)

    async def authenticate(self, authorization: str | None) -> Caller:
        token = bearer_token(authorization)
        for kind in self._kinds:
            if kind.recognises(token):
                return await kind.authenticate(authorization)
        raise unauthenticated("credentials of this kind are not accepted here")


_ANONYMOUS = Caller("anonymous", None, frozenset(Role))


class NoAuthentication:
    """Everybody may do everything: for a control plane that only its own machine can reach."""

    async def authenticate(self, authorization: str | None) -> Caller:  # noqa: ARG002
        return _ANONYMOUS
