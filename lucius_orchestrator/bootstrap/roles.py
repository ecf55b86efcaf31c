"""What a process does of the control plane."""

from enum import StrEnum

from lucius_orchestrator.domain.aggregate import ReplyVia
from lucius_orchestrator.settings import Settings, StorageBackend


class ServeRole(StrEnum):
    ALL = "all"
    API = "api"
    RECONCILER = "reconciler"
    REPLIES = "replies"

    @property
    def serves_api(self) -> bool:
        return self in (ServeRole.ALL, ServeRole.API)

    @property
    def uses_bus(self) -> bool:
        return self is not ServeRole.API

    @property
    def dispatches(self) -> bool:
        """Such a process sweeps, delivers webhooks and applies the topology too."""
        return self in (ServeRole.ALL, ServeRole.RECONCILER)

    @property
    def consumes_replies(self) -> bool:
        return self in (ServeRole.ALL, ServeRole.REPLIES)


class RoleUnavailable(Exception):
    """The role cannot run with these settings; the message says what it needs."""


def check_role(role: ServeRole, settings: Settings) -> None:
    """`RoleUnavailable`."""
    if role in (ServeRole.ALL, ServeRole.API):
        return
    if not settings.shares_bus:
        raise RoleUnavailable(
            f"the role {role} needs a bus that processes share: set LUCIUS_SERVICEBUS_CONNECTION"
            " or LUCIUS_SERVICEBUS_NAMESPACE, or run everything in one process with `lucius up`"
        )
    if settings.storage_backend is StorageBackend.MEMORY:
        raise RoleUnavailable(
            f"the role {role} needs a ledger that processes share: set LUCIUS_STORAGE_BACKEND to"
            " sqlite or postgres"
        )
    is_without_address = settings.callback_base_url is None and settings.reply_via is ReplyVia.HTTP
    if role is ServeRole.RECONCILER and is_without_address:
        raise RoleUnavailable(
            "the role reconciler tells services where to answer: set LUCIUS_CALLBACK_BASE_URL to"
            " the address of the API, or LUCIUS_REPLY_VIA to bus"
        )
