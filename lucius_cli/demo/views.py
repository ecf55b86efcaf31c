"""What a person sees of the demo: steps as they go, answers with their sources, files."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from lucius_cli.output import console, one_line, say, state_style, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

JsonObject = dict[str, Any]

_REFRESHES = 8
_CONTEXT = 6


class Progress(Protocol):
    """Shows a job, again each time it has changed; `note` is a remark between."""

    def show(self, job: JsonObject) -> None: ...
    def note(self, text: str) -> None: ...


def progress() -> AbstractContextManager[Progress]:
    return _live() if sys.stderr.isatty() else _lines()


@contextmanager
def _lines() -> Iterator[Progress]:
    yield _Lines()


class _Lines:
    """A line for each change of a step."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int]] = {}

    def show(self, job: JsonObject) -> None:
        for step in job["steps"]:
            now = (step["state"], step["attempt_no"])
            if self._seen.get(step["step_type"], ("PENDING", 0)) != now:
                self._seen[step["step_type"]] = now
                say("  ".join(_cells(step)).rstrip())

    def note(self, text: str) -> None:
        say(text)


@contextmanager
def _live() -> Iterator[Progress]:
    from rich.live import Live

    screen = console(sys.stderr)
    table = _Table(screen)
    with Live(console=screen, get_renderable=table.render, refresh_per_second=_REFRESHES):
        yield table


class _Table:
    """Drawn again several times a second, so that its times run; notes stand above it."""

    def __init__(self, screen: "Console") -> None:
        self._screen = screen
        self._job: JsonObject = {"steps": []}

    def show(self, job: JsonObject) -> None:
        self._job = job

    def note(self, text: str) -> None:
        self._screen.print(visible(text), markup=False)

    def render(self) -> "RenderableType":
        from rich.text import Text

        lines = []
        for step in self._job["steps"]:
            name, state, rest = _cells(step)
            lines.append(Text.assemble(name, "  ", (state, state_style(state.strip())), "  ", rest))
        return Text("\n").join(lines)


def _cells(step: JsonObject) -> tuple[str, str, str]:
    attempt = f"attempt {step['attempt_no']}" if step["attempt_no"] > 1 else ""
    parts = (_seconds(step), attempt, _remark(step))
    return (
        f"  {step['step_type']:<10}",
        f"{step['state']:<12}",
        "  ".join(part for part in parts if part),
    )


def _remark(step: JsonObject) -> str:
    if step["error"]:
        return one_line(f"{step['error']['code']}: {step['error']['message']}")
    return one_line((step["progress"] or {}).get("note") or "")


def _seconds(step: JsonObject) -> str:
    """Since it was given to its service."""
    if not step["attempts"]:
        return ""
    begun = datetime.fromisoformat(step["attempts"][0]["dispatched_at"])
    ended = step["completed_at"]
    until = datetime.fromisoformat(ended) if ended else datetime.now(UTC)
    return f"{(until - begun).total_seconds():5.1f} s"


def path_of(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


def print_answers(result: JsonObject) -> None:
    """Each with the place in the document that it comes from."""
    width = max(len(answer["name"]) for answer in result["answers"])
    for answer in result["answers"]:
        lines = chain.from_iterable(_wrapped(line, width + 4) for line in _answer_lines(answer))
        for number, line in enumerate(lines):
            print(f"  {'' if number else answer['name']:<{width}}  {line}")


def _wrapped(line: str, indent: int) -> list[str]:
    """A terminal's lines; elsewhere lines are as long as they are."""
    if not sys.stdout.isatty():
        return [line]
    return textwrap.wrap(line, max(shutil.get_terminal_size().columns - indent, 40))


def _answer_lines(answer: JsonObject) -> Iterator[str]:
    if not answer["found"]:
        yield one_line(f"not found: {answer['reason']}")
    elif answer["output"] == "json":
        yield one_line(json.dumps(answer["answer"], ensure_ascii=False))
        for pointer, field in (answer["fields"] or {}).items():
            yield f"{pointer.removeprefix('/')}: {_place(field['source'], field['score'], [])}"
    else:
        yield one_line(answer["answer"])
        if answer["source"]:
            yield _place(answer["source"], answer["score"], answer["passages"])


def _place(source: JsonObject, score: float, passages: Iterable[JsonObject]) -> str:
    where = f"score {score:.2f}, characters {source['start']}-{source['end']}"
    return f"{where}: {_quoted(source, passages)}"


def _quoted(source: JsonObject, passages: Iterable[JsonObject]) -> str:
    """The words in brackets, between those that stand around them in the passage."""
    before, after = "", ""
    for passage in passages:
        if passage["start"] <= source["start"] and source["end"] <= passage["end"]:
            before = passage["text"][: source["start"] - passage["start"]]
            after = passage["text"][source["end"] - passage["start"] :]
            break
    words = before.split()[-_CONTEXT:], source["text"].split(), after.split()[:_CONTEXT]
    return one_line(" ".join([*words[0], "[" + " ".join(words[1]) + "]", *words[2]]))


def print_files(job: JsonObject) -> None:
    for step in job["steps"]:
        for artifact in step["artifacts"]:
            print(f"  {_shown(path_of(artifact['uri']))}  ({artifact['size']:,} bytes)")
    print(f"  {job['final_output']}  (what the job has published)")


def _shown(path: Path) -> str:
    """From here, if that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)
