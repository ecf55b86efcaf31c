"""Progress of uploads and downloads: a bar on a terminal, nothing elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from lucius_cli.output import console, one_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from lucius_artifacts.client import Phase, Progress


@contextmanager
def shown_progress(what: str, stream: TextIO) -> "Iterator[Progress]":
    """Bytes, rate and what is left of the time."""
    from lucius_artifacts.client.progress import untold

    if not stream.isatty():
        yield untold
        return
    with _bars(stream) as bars:
        yield _Bar(bars, one_line(what)).show


class _Bar:
    """One that begins anew with each phase."""

    def __init__(self, bars: "Bars", what: str) -> None:
        self._bars = bars
        self._what = what
        self._phase: Phase | None = None
        self._task = bars.add_task("", total=None)

    def show(self, phase: "Phase", done: int, total: int) -> None:
        if phase is not self._phase:
            self._phase = phase
            label = f"{self._what} {phase}"
            self._bars.reset(self._task, description=label, total=total, completed=done)
        else:
            self._bars.update(self._task, completed=done)


def _bars(stream: TextIO) -> "Bars":
    from rich import progress

    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.DownloadColumn(binary_units=True),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
        console=console(stream),
        transient=True,
    )
