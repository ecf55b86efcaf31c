"""What an operator sees of a process, put together."""

import os
from datetime import timedelta

from lucius_artifacts.ports.catalogue import Catalogue
from lucius_orchestrator.bootstrap.parts import Part
from lucius_orchestrator.engine.services import Services
from lucius_orchestrator.engine.telemetry import Telemetry
from lucius_orchestrator.observability.gauges import GaugeRefresher
from lucius_orchestrator.observability.http import App, MeasuredHttp
from lucius_orchestrator.observability.metrics import PrometheusMetrics
from lucius_orchestrator.observability.tracing import TracedHttp, configure_tracing
from lucius_orchestrator.ports.ledger import Ledger


class Observation:
    """One per process."""

    def __init__(self) -> None:
        self.metrics = PrometheusMetrics()
        self._tracing = configure_tracing(os.environ)
        self.telemetry: Telemetry = self._tracing.telemetry(self.metrics)

    def gauges(self, ledger: Ledger) -> Part:
        return GaugeRefresher(self.metrics, ledger)

    def service_gauges(self, services: Services) -> Part:
        """Reading them counts what waits, which the limit of submissions relies on."""
        return GaugeRefresher(self.metrics.service_gauges, services)

    def artifact_gauges(self, catalogue: Catalogue) -> Part:
        """Reading them looks at every blob: not so often."""
        return GaugeRefresher(self.metrics.artifact_gauges, catalogue, timedelta(minutes=1))

    def observed(self, app: App) -> App:
        return MeasuredHttp(TracedHttp(app, self._tracing), self.metrics)

    async def close(self) -> None:
        await self._tracing.shutdown()
