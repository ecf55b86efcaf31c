"""What a process does of the control plane."""

from enum import StrEnum

from lucius_orchestrator.domain.aggregate import Engine, ReplyVia
from lucius_orchestrator.settings import Settings, StorageBackend


class ServeRole(StrEnum):
    """RECONCILER and REPLIES drive the jobs of the ledger engine, INVOKER and WORKER those that
    Temporal drives. All of them can run beside each other on one ledger."""

    ALL = "all"
    API = "api"
    RECONCILER = "reconciler"
    REPLIES = "replies"
    INVOKER = "invoker"
    WORKER = "worker"

    @property
    def serves_api(self) -> bool:
        return self in (ServeRole.ALL, ServeRole.API)

    @property
    def uses_bus(self) -> bool:
        return self not in (ServeRole.API, ServeRole.WORKER)

    @property
    def dispatches(self) -> bool:
        """Such a process sweeps the jobs of the ledger engine too."""
        return self in (ServeRole.ALL, ServeRole.RECONCILER)

    def runs_dispatcher(self, settings: Settings) -> bool:
        """Such a process publishes directives and grants turns: attempts that Temporal drives wait
        in the same queues as directives of the ledger engine."""
        return self.dispatches or self.invokes(settings)

    @property
    def consumes_replies(self) -> bool:
        return self in (ServeRole.ALL, ServeRole.REPLIES, ServeRole.INVOKER)

    @property
    def keeps_house(self) -> bool:
        """Such a process delivers webhooks and applies the topology."""
        return self in (ServeRole.ALL, ServeRole.RECONCILER, ServeRole.INVOKER)

    def starts_workflows(self, settings: Settings) -> bool:
        return self.serves_api and settings.knows_temporal

    def invokes(self, settings: Settings) -> bool:
        """Such a process writes the jobs that Temporal drives, and signals their workflows."""
        return self is ServeRole.INVOKER or self._is_whole(settings)

    def works(self, settings: Settings) -> bool:
        return self is ServeRole.WORKER or self._is_whole(settings)

    def uses_temporal(self, settings: Settings) -> bool:
        return self.starts_workflows(settings) or self.invokes(settings) or self.works(settings)

    def _is_whole(self, settings: Settings) -> bool:
        return self is ServeRole.ALL and settings.knows_temporal


class RoleUnavailable(Exception):
    """The role cannot run with these settings; the message says what it needs."""


def check_role(role: ServeRole, settings: Settings) -> None:
    """`RoleUnavailable`."""
    if role is ServeRole.ALL:
        return
    if role.uses_bus:
        _require_bus(role, settings)
    if role.uses_bus or (role is ServeRole.API and settings.engine is Engine.TEMPORAL):
        _require_ledger(role, settings)
    if role is ServeRole.RECONCILER:
        _require_reply_address(settings)
    _require_invoker(role, settings)


def _require_bus(role: ServeRole, settings: Settings) -> None:
    if not settings.shares_bus:
        raise RoleUnavailable(
            f"the role {role} needs a bus that processes share: set LUCIUS_SERVICEBUS_CONNECTION"
            " or LUCIUS_SERVICEBUS_NAMESPACE, or run everything in one process with `lucius up`"
        )


def _require_ledger(role: ServeRole, settings: Settings) -> None:
    if settings.storage_backend is StorageBackend.MEMORY:
        raise RoleUnavailable(
            f"the role {role} needs a ledger that processes share: set LUCIUS_STORAGE_BACKEND to"
            " sqlite, postgres or azure_tables"
        )


def _require_reply_address(settings: Settings) -> None:
    if settings.callback_base_url is None and settings.reply_via is ReplyVia.HTTP:
        raise RoleUnavailable(
            "the role reconciler tells services where to answer: set LUCIUS_CALLBACK_BASE_URL to"
            " the address of the API, or LUCIUS_REPLY_VIA to bus"
        )


def _require_invoker(role: ServeRole, settings: Settings) -> None:
    if settings.invoker_url is not None:
        return
    if role is ServeRole.WORKER:
        raise RoleUnavailable(
            "the role worker asks the invoker for all that it does: set LUCIUS_INVOKER_URL to the"
            " address of `lucius serve invoker`"
        )
    if role is ServeRole.API and settings.engine is Engine.TEMPORAL:
        raise RoleUnavailable(
            "the role api hands cancel, pause and resume on to the invoker where Temporal drives"
            " the jobs: set LUCIUS_INVOKER_URL to the address of `lucius serve invoker`"
        )
