"""Measure whether the tests notice single-line breaks of product code.

For each area the script records which tests run which line, breaks one line at a time in a copy of
the tree, and runs the tests that cover this line. A break after which they all pass has survived:
a mistake of this kind would reach users. The working tree is never changed. Needs Linux.

    .venv/bin/python tools/mutation_test.py --area outbox --breaks 20 --out /tmp/outbox.jsonl

Limits. What runs in a fixture that several tests share counts for the first of them. A process that
is killed by SIGKILL leaves no record of its lines. A survivor may be equivalent to the original:
read it before you write a test. Of many covering tests only the fastest run: `--tests`, `--budget`.
A flaky test looks like one that notices: `--confirm`.
"""

import argparse
import ast
import ctypes
import hashlib
import itertools
import json
import os
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache/mutation"
TIMED_OUT, STOPPED = 124, 143  # exit codes of `supervise`
SURVIVED = (0, 5)  # exit codes of pytest: all tests pass, or the break leaves none
MEMORY = 6 << 30  # bytes for each process: a broken loop may never end
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Area:
    """`sources` are globs; those that begin with `!` exclude. `tests` are globs of files and
    folders. Both are separated by spaces. `keyword` is pytest's `-k`, `budget` the seconds of tests
    for each break."""

    name: str
    sources: str
    tests: str
    keyword: str = ""
    budget: float = 60

    @property
    def arguments(self) -> list[str]:
        return ["-k", self.keyword] if self.keyword else []

    def source_files(self) -> list[str]:
        found: set[Path] = set()
        for glob in self.sources.split():
            if glob[0] == "!":
                found.difference_update(ROOT.glob(glob[1:]))
            else:
                found.update(ROOT.glob(glob))
        if not found:
            raise SystemExit(f"area {self.name}: no file matches {self.sources}")
        return sorted(str(path.relative_to(ROOT)) for path in found)

    def test_files(self) -> list[str]:
        found: list[Path] = []
        for glob in self.tests.split():
            paths = sorted(ROOT.glob(glob))
            if not paths:
                raise SystemExit(f"area {self.name}: no file matches {glob}")
            for path in paths:
                found += sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
        return [str(path.relative_to(ROOT)) for path in found]


_NO_SERVERS = "not postgres and not azure and not redis"
_LEDGER = "lucius_orchestrator/adapters/ledger"
AREAS = (
    Area("engine", "lucius_orchestrator/engine/*.py", "tests/engine", _NO_SERVERS),
    Area("dispatcher", "lucius_orchestrator/outbox/*.py", "tests/engine", _NO_SERVERS),
    Area("sweepers", "lucius_orchestrator/sweepers/*.py", "tests/engine", _NO_SERVERS),
    Area(
        "ledgers",
        f"{_LEDGER}/*.py {_LEDGER}/tables/*.py {_LEDGER}/sqlite/*.py",
        "tests/ledger tests/webhooks",
        _NO_SERVERS,
    ),
    Area("webhooks", "lucius_orchestrator/webhooks/*.py", "tests/webhooks", _NO_SERVERS),
    Area(
        "sdk-runtime",
        "lucius_sdk/runtime/*.py lucius_sdk/replies/*.py lucius_sdk/service.py",
        "tests/sdk/runtime tests/sdk/replies tests/sdk/service tests/sdk/operations"
        " tests/sdk/process/test_process.py",
    ),
    Area(
        "dedup-stores",
        "lucius_sdk/idempotency_store/**/*.py !lucius_sdk/idempotency_store/azure*.py"
        " !lucius_sdk/idempotency_store/redis.py",
        "tests/sdk/idempotency_store",
        _NO_SERVERS,
    ),
    Area(
        "harness",
        "contract_tests/scenarios/*.py contract_tests/bench.py contract_tests/rules.py",
        "tests/conform/test_broken_services*.py tests/conform/test_judging.py"
        " tests/conform/test_rules.py",
        budget=300,  # each test starts services; the one on a sound service takes 2 minutes
    ),
    Area(
        "outbox", "lucius_outbox/**/*.py !lucius_outbox/postgres/*.py", "tests/outbox", _NO_SERVERS
    ),
    Area("emulator", "servicebus_emulator/**/*.py", "tests/emulator", "not chaos"),
    Area(
        "artifacts",
        "lucius_artifacts/**/*.py !lucius_artifacts/catalogue/postgres/*.py"
        " !lucius_artifacts/objects/azure_blob/*.py !lucius_artifacts/workspaces/azure*.py",
        "tests/artifacts",
        _NO_SERVERS,
    ),
)


# Breaks: what can be changed in one line of a file.


@dataclass(frozen=True, slots=True)
class Break:
    """Replaces the bytes from `start` to `end` of a file by `new`."""

    file: str
    line: int
    kind: str
    before: str
    after: str
    start: int
    end: int
    new: str
    statement: tuple[int, int]
    """First and last line of the statement, or of its head if it has a body."""
    at_import: bool
    """Outside of functions, so that it runs before any test."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def key(self) -> tuple[object, ...]:
        return (self.file, self.line, self.kind, self.before, self.after)

    def applied(self) -> bytes:
        data = (ROOT / self.file).read_bytes()
        return data[: self.start] + self.new.encode() + data[self.end :]

    def compiles(self) -> bool:
        try:
            compile(self.applied(), self.file, "exec", dont_inherit=True)
        except SyntaxError:
            return False
        return True


Edit = tuple[str, ast.AST, int, int, str]
"""Kind, node, the bytes from … to …, what replaces them."""
_COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: (r"\bis\b", "is not"),
    ast.IsNot: (r"\bis\s+not\b", "is"),
    ast.In: (r"\bin\b", "not in"),
    ast.NotIn: (r"\bnot\s+in\b", "in"),
}
_SIGNS = {ast.Add: (r"\+", "-"), ast.Sub: ("-", "+")}
_LOGGING = {"debug", "info", "warning", "error", "exception", "critical", "log"}
_DECLARATIONS = {"dataclass", "field", "TypeVar", "ParamSpec", "NewType", "assert_never", "cast"}
_WITHOUT_EFFECT = {"description", "help", "title", "examples", "repr", "slots", "stacklevel"}
_NOT_FORCED = ("TYPE_CHECKING", "sys.platform", "sys.version_info", "__name__")


class Finder:
    """Collects the breaks of one file."""

    def __init__(self, file: str) -> None:
        self.found: list[Break] = []
        self._file = file
        self._data = (ROOT / file).read_bytes()
        self._starts = [0, *(match.end() for match in re.finditer(rb"\n", self._data))]
        self._walk(ast.parse(self._data), (1, 1), None)

    def _walk(self, node: ast.AST, statement: tuple[int, int], function: Any) -> None:
        if isinstance(node, ast.stmt):
            statement = _head(node)
        for edit in (*self._of_statement(node, function), *self._of_expression(node)):
            self._add(edit, statement, function is None)
        body = node.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
        for child in _parts(node):
            self._walk(child, statement, node if child in body else function)

    def _of_statement(self, node: ast.AST, function: Any) -> Iterator[Edit]:  # noqa: C901 - a table
        match node:
            case ast.If() | ast.IfExp() if not _is_about_the_platform(node.test):
                yield from self._forced(node.test, "True", "False")
            case ast.While():
                yield from self._forced(node.test, "False")
            case ast.comprehension() | ast.match_case():
                guards = node.ifs if isinstance(node, ast.comprehension) else [node.guard]
                for guard in filter(None, guards):
                    yield from self._forced(guard, "True", "False")
            case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(ast.Call() as call)):
                if not _is_logging(call) and _name(call.func) not in _DECLARATIONS:
                    yield self._replaced("call removed", node, "pass")
            case ast.Return(value=ast.expr() as value) if not _is_empty(value):
                if function is None or not _is_none(function.returns):
                    yield self._replaced("return None", value, "None")
            case ast.Raise() if "NotImplementedError" not in ast.unparse(node):
                yield self._replaced("raise removed", node, "pass")
            case ast.Break():
                yield self._replaced("break to continue", node, "continue")
            case ast.Continue():
                yield self._replaced("continue to break", node, "break")
            case ast.AugAssign(op=ast.Add() | ast.Sub()) if not _is_sequence(node.value):
                yield from self._swapped("+ and -", node.target, node.value, *_SIGNS[type(node.op)])

    def _of_expression(self, node: ast.AST) -> Iterator[Edit]:  # noqa: C901 - a table
        match node:
            case ast.Compare():
                operands = itertools.pairwise([node.left, *node.comparators])
                for (left, right), op in zip(operands, node.ops, strict=True):
                    yield from self._swapped("comparison", left, right, *_COMPARISONS[type(op)])
            case ast.BoolOp():
                swap = (r"\band\b", "or") if isinstance(node.op, ast.And) else (r"\bor\b", "and")
                for left, right in itertools.pairwise(node.values):
                    yield from self._swapped("and and or", left, right, *swap)
            case ast.UnaryOp(op=ast.Not()):
                start, end = self._span(node)
                word = re.compile(rb"not *").match(self._data, start, end)
                yield "not removed", node, start, word.end() if word else start, ""
            case ast.Constant(value=bool()):
                yield self._replaced("True and False", node, str(not node.value))
            case ast.Constant(value=int() | float() as value):
                yield self._replaced("number", node, repr(value + 1))
                if value:
                    yield self._replaced("number", node, repr(value * 10))
            case ast.BinOp(op=ast.Add() | ast.Sub(), left=left, right=right):
                if not _is_sequence(left) and not _is_sequence(right):
                    yield from self._swapped("+ and -", left, right, *_SIGNS[type(node.op)])
            case ast.Call(func=ast.Name(id="min" | "max" as name)):
                yield self._replaced("min and max", node.func, "max" if name == "min" else "min")
            case ast.Call() if _name(node.func) not in _DECLARATIONS and not _is_logging(node):
                yield from (self._dropped(node, each) for each in _arguments(node) if each.arg)

    def _dropped(self, call: ast.Call, keyword: ast.keyword) -> Edit:
        start, end = self._span(keyword)
        comma = re.compile(rb"\s*,[ \t]*").match(self._data, end)
        before = [self._span(each) for each in (*call.args, *call.keywords)]
        before = [span for span in before if span[0] < start]
        if comma:
            end = comma.end()
        elif before:
            start = self._data.rindex(b",", max(span[1] for span in before), start)
        return "keyword argument dropped", keyword, start, end, ""

    def _forced(self, test: ast.expr, *values: str) -> Iterator[Edit]:
        if not isinstance(test, ast.Constant):
            for value in values:
                yield self._replaced(f"condition forced {value}", test, value)

    def _replaced(self, kind: str, node: ast.AST, new: str) -> Edit:
        return (kind, node, *self._span(node), new)

    def _swapped(
        self, kind: str, left: ast.expr, right: ast.expr, pattern: str, new: str
    ) -> Iterator[Edit]:
        start, end = self._span(left)[1], self._span(right)[0]
        operator = re.search(pattern.encode(), self._data[start:end])
        if operator and b"#" not in self._data[start:end]:
            yield f"{kind} swapped", left, start + operator.start(), start + operator.end(), new

    def _add(self, edit: Edit, statement: tuple[int, int], at_import: bool) -> None:
        kind, node, start, end, new = edit
        line = max(self._data.count(b"\n", 0, start) + 1, node.lineno)  # type: ignore[attr-defined]
        head, tail = self._starts[line - 1], self._data.find(b"\n", end)
        before = _condensed(self._data[head : self._data.find(b"\n", max(head, end))])
        after = self._data[min(head, start) : start] + new.encode() + self._data[end:tail]
        self.found.append(
            Break(
                self._file,
                line,
                kind,
                before,
                _condensed(after),
                start,
                end,
                new,
                statement,
                at_import,
            )
        )

    def _span(self, node: Any) -> tuple[int, int]:
        first, last = self._starts[node.lineno - 1], self._starts[node.end_lineno - 1]
        return first + node.col_offset, last + node.end_col_offset


def _parts(node: ast.AST) -> Iterable[ast.AST]:  # noqa: C901, PLR0911 - a table
    """The children in which to look for breaks."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            names = {_name(each) for each in node.decorator_list} | {node.name}
            if names & {"overload", "abstractmethod", "__repr__"}:
                return ()
            defaults = [each for each in (*node.args.defaults, *node.args.kw_defaults) if each]
            return (*node.decorator_list, *defaults, *node.body)
        case ast.ClassDef():
            is_protocol = "Protocol" in {_name(each) for each in node.bases}
            return () if is_protocol else (*node.decorator_list, *node.body)
        case ast.AnnAssign():
            return (node.value,) if node.value else ()
        case ast.Assign() if {_name(each) for each in node.targets} & {"__all__", "__slots__"}:
            return ()
        case ast.JoinedStr() | ast.Assert():
            return ()  # positions inside of f-strings are wrong before Python 3.12
        case ast.Subscript() if _name(node.value) == "Literal":
            return ()
        case ast.If() if _is_about_the_platform(node.test):
            return node.orelse
        case ast.Call():
            if _is_logging(node) or _name(node.func) in _DECLARATIONS:
                return ()
            return (node.func, *node.args, *(each.value for each in _arguments(node)))
    return ast.iter_child_nodes(node)


def _head(node: ast.stmt) -> tuple[int, int]:
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
    return node.lineno, max(node.lineno, last)


def _arguments(call: ast.Call) -> list[ast.keyword]:
    unwanted = {"strict"} if _name(call.func) == "zip" else _WITHOUT_EFFECT
    return [keyword for keyword in call.keywords if keyword.arg not in unwanted]


def _name(node: ast.AST) -> str:
    """The last part of a dotted name, without what is in brackets."""
    while isinstance(node, (ast.Subscript, ast.Call)):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_logging(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LOGGING:
        return False
    return _name(call.func.value).strip("_") in ("log", "logger", "logging")


def _is_about_the_platform(test: ast.expr) -> bool:
    return any(word in ast.unparse(test) for word in _NOT_FORCED)


def _is_empty(value: ast.expr) -> bool:
    """None, or mostly taken like it."""
    return isinstance(value, ast.Constant) and not value.value


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _is_sequence(node: ast.expr) -> bool:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    return is_text or isinstance(node, (ast.JoinedStr, ast.List, ast.ListComp, ast.Tuple))


def _condensed(text: bytes) -> str:
    return re.sub(r"\s+", " ", text.decode()).strip()


def chosen_breaks(area: Area, number: int, seed: int) -> list[Break]:
    """Take every n-th line that can be broken, so that each file has its share."""
    rng = random.Random(f"{seed} {area.name}")  # noqa: S311 - a sample, no secret
    at: dict[tuple[str, int], list[Break]] = defaultdict(list)
    for file in area.source_files():
        for found in Finder(file).found:
            at[file, found.line].append(found)
    places = sorted(at)
    step = max(len(places) / number, 1.0)
    first = rng.random() * step
    wanted = [
        places[int(each)]
        for each in (first + i * step for i in range(number))
        if each < len(places)
    ]
    return [one for place in wanted if (one := _any_of(at[place], rng)) is not None]


def _any_of(breaks: list[Break], rng: random.Random) -> Break | None:
    """Each kind is as likely as the others."""
    rng.shuffle(breaks)
    kinds = sorted({each.kind for each in breaks})
    rng.shuffle(kinds)
    breaks.sort(key=lambda each: kinds.index(each.kind))
    return next((each for each in breaks if each.compiles()), None)


# In the copy: the process that runs pytest, and the one above it.


class Recorder:
    """A pytest plugin: names the running test to coverage.py, also in processes that it starts."""

    def __init__(self, coverage: Any) -> None:
        self.tests: dict[str, tuple[float, bool]] = {}
        self._coverage = coverage

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        os.environ["MUTATION_TEST"] = nodeid
        self._coverage.switch_context(nodeid)

    def pytest_runtest_logfinish(self) -> None:
        self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: Any) -> None:
        seconds, passed = self.tests.get(report.nodeid, (0.0, True))
        self.tests[report.nodeid] = (seconds + report.duration, passed and report.passed)


class Selection:
    """A pytest plugin: keeps the named tests, in this order; writes which one runs or failed."""

    def __init__(self, ids: Sequence[str], out: Path) -> None:
        self._ids = ids
        self._out = out

    def pytest_collection_finish(self, session: Any) -> None:
        by_id = {item.nodeid: item for item in session.items}
        session.items[:] = [by_id[each] for each in self._ids if each in by_id]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._out.write_text(json.dumps({"at": nodeid, "failed": False}))

    def pytest_collectreport(self, report: Any) -> None:
        self.pytest_runtest_logreport(report)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._out.write_text(json.dumps({"at": report.nodeid, "failed": True}))


def record(folder: Path, job: Any) -> int:
    """Run test files, and write which test ran which line of the sources."""
    import coverage
    import pytest

    data_file, settings = folder / "lines/data", folder / "coverage.ini"
    settings.write_text(
        "[run]\nparallel = true\nsigterm = true\ncontext = ${MUTATION_TEST-}\n"
        "disable_warnings = no-data-collected, module-not-measured\n"
        f"data_file = {data_file}\ninclude =\n    " + "\n    ".join(job["sources"])
    )
    shared: dict[str, Any] = {"config_file": False, "data_file": str(data_file)}
    measured = coverage.Coverage(data_suffix=True, include=job["sources"], **shared)
    measured.start()
    os.environ["COVERAGE_PROCESS_START"] = str(settings)  # read by processes that tests start
    recorder = Recorder(measured)
    code = pytest.main(job["arguments"], plugins=[recorder])
    measured.stop()
    measured.save()
    whole = coverage.Coverage(**shared)
    whole.combine([str(data_file.parent)])
    data = whole.get_data()
    lines = {file: data.contexts_by_lineno(file) for file in data.measured_files()}
    (folder / "out").write_text(json.dumps({"tests": recorder.tests, "lines": lines}))
    return int(code)


def run(folder: Path, job: Any) -> int:
    """Run the selected tests until one fails."""
    import pytest

    selection = Selection(job["ids"], folder / "out")
    return int(pytest.main(job["arguments"], plugins=[selection]))


def supervise(limit: float, command: list[str]) -> int:
    """Run a command, and end with it all that it started, in whatever session: when it ends, when
    its time is over, on SIGTERM, or when the parent ended."""
    become_subreaper = 36
    ctypes.CDLL(None).prctl(become_subreaper, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(STOPPED))
    parent = os.getppid()
    deadline = time.monotonic() + limit
    try:
        child = os.posix_spawn(command[0], command, os.environ)
        while os.getppid() == parent:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            if time.monotonic() > deadline:
                return TIMED_OUT
            if not pid:
                time.sleep(0.02)
        return STOPPED
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _kill_children()


def _kill_children() -> None:
    """The children of one that was killed become ours: repeat until none is left."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with suppress(ChildProcessError):
        while True:
            for pid in children.read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)


# Copies of the tree.


class Copy:
    """The files of the working tree, with an interpreter of their own that imports them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._tree = folder / "tree"
        modules = "tools/node/node_modules"
        listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S603
        for name in names.decode().split("\0"):
            if name not in ("", ".venv", modules) and os.path.lexists(ROOT / name):
                (self._tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self._tree / name, follow_symlinks=False)
        (self._tree / modules).symlink_to(ROOT / modules)
        self._make_environment()

    def _make_environment(self) -> None:
        """A virtual environment that has the packages of the real one, but this tree before them.
        PYTHONPATH would not do: tests start processes with an environment of their own."""
        real, own = (ROOT / ".venv").resolve(), self._tree / ".venv"
        packages = next(real.glob("lib/python*/site-packages"))
        (own / "bin").mkdir(parents=True)
        shutil.copy2(real / "pyvenv.cfg", own / "pyvenv.cfg")
        shebang = f"#!{real}".encode()
        for program in (real / "bin").iterdir():
            with program.open("rb") as file:
                is_script = file.read(len(shebang)) == shebang
            copy = own / "bin" / program.name
            if is_script:
                copy.write_bytes(program.read_bytes().replace(bytes(real), bytes(own), 1))
                shutil.copymode(program, copy)
            else:
                copy.symlink_to(program.resolve())
        site = own / packages.relative_to(real)
        site.mkdir(parents=True)
        (site / "tree.pth").write_text(
            f"{self._tree}\nimport site; site.addsitedir({str(packages)!r})\n"
        )

    def verify(self, file: str) -> None:
        """Raise unless a process with an empty environment imports the copy."""
        package = file.partition("/")[0]
        code = f"import importlib.util as u; print(u.find_spec({package!r}).origin)"
        command = [str(self._tree / ".venv/bin/python"), "-c", code]
        done = subprocess.run(  # noqa: S603 - our own interpreter
            command, cwd="/", env={}, capture_output=True, text=True, check=True
        )
        if not Path(done.stdout.strip()).is_relative_to(self._tree):
            raise SystemExit(f"{package} would be imported from {done.stdout.strip()}")

    @contextmanager
    def broken(self, file: str, content: bytes) -> Iterator[None]:
        path = self._tree / file
        original = path.read_bytes(), path.stat()
        path.write_bytes(content)
        # Two versions of one size in one second would share their compiled file.
        later = original[1].st_mtime + 10 * next(self._numbers)
        os.utime(path, (later, later))
        try:
            yield
        finally:
            path.write_bytes(original[0])
            os.utime(path, ns=(original[1].st_atime_ns, original[1].st_mtime_ns))

    def perform(self, kind: str, job: dict[str, Any], limit: float) -> tuple[int, Any]:
        """Run `record` or `run` in a process; return its exit code and what it wrote."""
        # Short names: the path of a socket has at most 107 characters.
        with tempfile.TemporaryDirectory(
            dir=self._folder, prefix="t", ignore_cleanup_errors=True
        ) as name:
            folder = Path(name)
            for each in ("lines", "tmp"):
                (folder / each).mkdir()
            options = ["-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'base'}"]
            job["arguments"] = [*options, *job["arguments"]]
            job["sources"] = [str(self._tree / file) for file in job["sources"]]
            job["folder"] = name
            (folder / "job").write_text(json.dumps(job))
            script = [str(self._tree / ".venv/bin/python"), "-P", __file__]
            command = [*script, "--supervise", str(limit), *script, f"--{kind}", name]
            environment = self._environment(folder / "tmp")
            code = PROCESSES.run(command, self._tree, environment, self._folder / "log")
            out = folder / "out"
            return code, json.loads(out.read_bytes()) if out.exists() else {}

    def _environment(self, temporary: Path) -> dict[str, str]:
        unwanted = ("PYTHON", "COVERAGE", "LUCIUS_", "OTEL_", "VIRTUAL_ENV", "PYTEST")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
        path = f"{self._tree / '.venv/bin'}{os.pathsep}{os.environ['PATH']}"
        # With CI=true Hypothesis has the same examples at every run.
        return {**kept, "PATH": path, "TMPDIR": str(temporary), "CI": "true"}

    def log_tail(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-3000:]

    def relative(self, file: str) -> str:
        return str(Path(file).relative_to(self._tree))


class Processes:
    """The supervisors that are running, so that an interrupt can stop them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, command: list[str], folder: Path, environment: dict[str, str], log: Path) -> int:
        with log.open("wb") as output, self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            process = subprocess.Popen(  # noqa: S603 - our own script
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches it by way of `stop` alone
            )
            self._running.add(process)
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        finally:
            with self._lock:
                self._running.discard(process)
        if self._stopped:
            raise KeyboardInterrupt
        return code

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.terminate()


PROCESSES = Processes()


class Workers:
    """As many copies as run at once."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self._copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        self.copies = [Copy(folder / str(each)) for each in range(number)]
        for copy in self.copies:
            self._copies.put(copy)

    def map(self, work: Callable[[Copy, T], object], items: Iterable[T]) -> None:
        def one(item: T) -> None:
            copy = self._copies.get()
            try:
                work(copy, item)
            finally:
                self._copies.put(copy)

        pool = ThreadPoolExecutor(self.number)
        try:
            for future in [pool.submit(one, item) for item in items]:
                future.result()
        except BaseException:
            PROCESSES.stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


# Which tests run which line.


class Map:
    """What one area's tests do unbroken. Kept in `.cache/mutation` by the content of the sources
    and of each test file, so that after a new test only its file is measured."""

    def __init__(self, area: Area, fresh: bool) -> None:
        alike = [each for each in AREAS if (each.tests, each.keyword) == (area.tests, area.keyword)]
        self._area = area
        self._sources = sorted({file for each in alike for file in each.source_files()})
        self._path = CACHE / f"{alike[0].name}.json"
        self._lock = threading.Lock()
        self._state: dict[str, Any] = {"key": self._key(), "files": {}}
        if self._path.exists() and not fresh:
            kept = json.loads(self._path.read_bytes())
            if kept["key"] == self._state["key"]:
                self._state = kept
        files: dict[str, Any] = self._state["files"]
        self._digests = {file: _digest(file) for file in area.test_files()}
        for file in [each for each in files if self._digests.get(each) != files[each]["digest"]]:
            del files[file]

    def _key(self) -> list[str]:
        return [self._area.keyword, *(file + _digest(file) for file in self._sources)]

    def measure(self, workers: Workers, limit: float) -> None:
        missing = [file for file in self._digests if file not in self._state["files"]]
        missing.sort(key=lambda file: -(ROOT / file).stat().st_size)
        shares = [missing[each :: workers.number] for each in range(workers.number)]

        def measure(copy: Copy, files: list[str]) -> None:
            arguments = [*files, *self._area.arguments]
            job = {"sources": self._sources, "arguments": arguments}
            code, found = copy.perform("record", job, limit)
            if not found:
                raise SystemExit(f"the unbroken run ended with {code}:\n{copy.log_tail()}")
            with self._lock:
                self._keep(copy, files, found)

        began = time.monotonic()
        workers.map(measure, [files for files in shares if files])
        if missing:
            CACHE.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(self._state))
            tests, took = self.tests(), time.monotonic() - began
            slow = sorted(tests.items(), key=lambda each: -each[1])[:3]
            print(f"{self._area.name}: {len(tests)} tests unbroken in {took:.0f} s; the slowest:")
            print(*(f"    {seconds:.1f} s {test}\n" for test, seconds in slow), sep="", end="")
        for test in self.failed():
            print(f"    left out, since it fails or is skipped unbroken: {test}")

    def _keep(self, copy: Copy, files: list[str], found: Any) -> None:
        kept: dict[str, Any] = self._state["files"]
        for file in files:
            kept[file] = {"digest": self._digests[file], "tests": {}, "lines": {}}
        for test, result in found["tests"].items():
            kept[_file_of(test)]["tests"][test] = result
        for source, lines in found["lines"].items():
            for line, tests in lines.items():
                for test in tests:
                    file = _file_of(test) if test in found["tests"] else files[0]
                    at = kept[file]["lines"].setdefault(copy.relative(source), {})
                    at.setdefault(line, []).append(test)

    def tests(self) -> dict[str, float]:
        """Those that pass, with the seconds that they take."""
        results = self._results()
        return {test: seconds for test, (seconds, passed) in results.items() if passed}

    def failed(self) -> list[str]:
        return [test for test, (_, passed) in self._results().items() if not passed]

    def _results(self) -> dict[str, tuple[float, bool]]:
        files = self._state["files"].values()
        return {test: result for kept in files for test, result in kept["tests"].items()}

    def covering(self, one: Break) -> set[str]:
        """The tests that run the line; all, if it runs before them."""
        found = self._at(one.file, [one.line])
        found = found or self._at(one.file, range(one.statement[0], one.statement[1] + 1))
        return set(self.tests()) if one.at_import or "" in found else found & set(self.tests())

    def of_file(self, file: str) -> set[str]:
        return self._at(file, None)

    def _at(self, file: str, numbers: Iterable[int] | None) -> set[str]:
        found: set[str] = set()
        for kept in self._state["files"].values():
            lines = kept["lines"].get(file, {})
            for number in lines if numbers is None else numbers:
                found.update(lines.get(str(number), ()))
        return found


def _digest(file: str) -> str:
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def selected_tests(
    seconds: dict[str, float], first: set[str], most: int, budget: float
) -> list[str]:
    """Take the fastest of each file in turn, those in `first` before the others, up to a number
    and a time; return them the fastest first."""
    turns: dict[str, Iterator[int]] = defaultdict(itertools.count)
    order = sorted(seconds, key=lambda test: seconds[test])
    ranks = {test: (test not in first, next(turns[_file_of(test)])) for test in order}
    taken: list[str] = []
    for test in sorted(order, key=lambda test: ranks[test]):
        budget -= seconds[test]
        if taken and (len(taken) == most or budget < 0):
            break
        taken.append(test)
    return sorted(taken, key=lambda test: seconds[test])


# Trials.


@dataclass(frozen=True, slots=True)
class Outcome:
    outcome: str
    by: str
    ran: int


class Trials:
    """Breaks one area's lines, and writes each outcome to the file of results."""

    def __init__(self, area: Area, known: Map, options: argparse.Namespace) -> None:
        self._area = area
        self._map = known
        self._options = options
        self._lock = threading.Lock()
        self._left = 0

    def check(self, copy: Copy) -> None:
        """Raise unless the copy passes unbroken and fails when a file cannot be imported: else no
        outcome would mean anything."""
        files = {file: self._map.of_file(file) & set(self._map.tests()) - {""}
                 for file in self._area.source_files()}  # fmt: skip
        file = max(files, key=lambda each: len(files[each]))
        copy.verify(file)
        seconds = self._map.tests()
        test = min(files[file], key=lambda each: seconds[each])
        if self._run(copy, [test]).outcome != "survived":
            raise SystemExit(f"{test} fails in an unbroken copy:\n{copy.log_tail()}")
        with copy.broken(file, b"raise RuntimeError('broken')\n"):
            if self._run(copy, [test]).outcome != "noticed":
                raise SystemExit(f"{test} does not import {file} from the copy")

    def run(self, workers: Workers, breaks: list[Break]) -> None:
        self._left = len(breaks)
        workers.map(self._try, breaks)

    def _try(self, copy: Copy, one: Break) -> None:
        began = time.monotonic()
        seconds = self._map.tests()
        covering = self._map.covering(one)
        near = self._map.of_file(one.file) if one.at_import else covering
        options = self._options
        budget = options.budget or self._area.budget
        tests = selected_tests({t: seconds[t] for t in covering}, near, options.tests, budget)
        with copy.broken(one.file, one.applied()):
            outcome = self._run(copy, tests) if tests else Outcome("not covered", "", 0)
            if options.confirm and outcome.by in tests:
                outcome = self._confirmed(copy, tests, outcome)
        took = time.monotonic() - began
        self._write(one, outcome, len(covering), took)

    def _confirmed(self, copy: Copy, tests: list[str], outcome: Outcome) -> Outcome:
        """A test that fails once and passes when it is repeated has not noticed the break."""
        if self._run(copy, [outcome.by]).outcome == "noticed":
            return outcome
        others = [test for test in tests if test != outcome.by]
        return self._run(copy, others) if others else Outcome("survived", "", 1)

    def _run(self, copy: Copy, tests: list[str]) -> Outcome:
        expected = sum(self._map.tests()[test] for test in tests)
        files = list(dict.fromkeys(map(_file_of, tests)))
        arguments = ["-x", *files, *self._area.arguments]
        job = {"ids": tests, "arguments": arguments, "sources": []}
        limit = self._options.slack + 4 * expected
        code, found = copy.perform("run", job, limit)
        if code in SURVIVED:
            return Outcome("survived", "", len(tests))
        by = found.get("at", "the start of pytest")
        if code == TIMED_OUT:
            by = f"a time-out of {limit:.0f} s in {by}"
        elif not found.get("failed"):
            by = f"exit code {code} in {by}"
        return Outcome("noticed", by, len(tests))

    def _write(self, one: Break, outcome: Outcome, covering: int, took: float) -> None:
        line = {
            "area": self._area.name,
            "file": one.file,
            "line": one.line,
            "kind": one.kind,
            "before": one.before,
            "after": one.after,
            "outcome": outcome.outcome,
            "by": outcome.by,
            "tests_run": outcome.ran,
            "tests_covering": covering,
            "seconds": round(took, 1),
        }
        with self._lock:
            self._left -= 1
            with self._options.out.open("a") as out:
                out.write(json.dumps(line) + "\n")
            by = f" by {outcome.by}" if outcome.by else ""
            print(
                f"{one.place} {outcome.outcome}{by} ({took:.1f} s, {self._left} left)", flush=True
            )


def results(out: Path) -> dict[tuple[object, ...], Any]:
    """The last outcome of each break."""
    if not out.exists():
        return {}
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    return {tuple(line[each] for each in ("file", "line", "kind", "before", "after")): line
            for line in lines}  # fmt: skip


def summary(lines: Sequence[Any]) -> str:
    rows = [f"{'area':14} breaks  noticed  survived  score"]
    for area in dict.fromkeys(line["area"] for line in lines):
        outcomes = [line["outcome"] for line in lines if line["area"] == area]
        noticed = outcomes.count("noticed")
        score = f"{noticed / len(outcomes):.0%}"
        missed = len(outcomes) - noticed
        rows.append(f"{area:14} {len(outcomes):6} {noticed:8} {missed:9} {score:>6}")
    for line in lines:
        if line["outcome"] != "noticed":
            ran = f"{line['tests_run']} of {line['tests_covering']} covering tests ran"
            rows.append(f"\n{line['file']}:{line['line']} ({line['area']}, {line['kind']}; {ran})")
            rows.append(f"  - {line['before']}\n  + {line['after']}")
    return "\n".join(rows)


def wanted_breaks(area: Area, options: argparse.Namespace) -> list[Break]:
    if not options.only:
        return chosen_breaks(area, options.breaks, options.seed)
    file, _, line = options.only.rpartition(":")
    if file not in area.source_files():
        return []
    here = [each for each in Finder(file).found if each.line == int(line) and each.compiles()]
    known = results(options.out)
    return [each for each in here if each.key in known] or here


def run_areas(areas: Sequence[Area], options: argparse.Namespace, workers: Workers) -> None:
    for area in areas:
        known = results(options.out)
        breaks = wanted_breaks(area, options)
        if not options.only:
            breaks = [each for each in breaks if each.key not in known]
        if not breaks:
            continue
        print(f"{area.name}: {len(breaks)} breaks", flush=True)
        tests = Map(area, options.fresh)
        tests.measure(workers, options.unbroken_limit)
        trials = Trials(area, tests, options)
        trials.check(workers.copies[0])
        trials.run(workers, breaks)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    names = [area.name for area in AREAS]
    add("--area", action="append", choices=names, help="may be repeated; all by default")
    add("--breaks", type=int, default=20, help="how many per area (%(default)s)")
    add("--seed", type=int, default=1, help="chooses which (%(default)s)")
    add("--only", metavar="FILE:LINE", help="run the breaks of this line, again if need be")
    add("--list", action="store_true", help="print the breaks and run nothing")
    add("--out", type=Path, default=CACHE / "results.jsonl", help="JSON lines; what is in it is not"
        " run again (.cache/mutation/results.jsonl)")  # fmt: skip
    add("--jobs", type=int, default=1, help="copies at once (%(default)s)")
    add("--tests", type=int, default=200, help="at most so many per break (%(default)s)")
    add("--budget", type=float, help="seconds of tests per break (60, or what the area says)")
    add("--slack", type=float, default=30, help="seconds that a run may take above four times its"
        " unbroken duration (%(default)s)")  # fmt: skip
    add("--unbroken-limit", type=float, default=1800, help="seconds per area (%(default)s)")
    add("--confirm", action="store_true", help="repeat each failure, to tell flaky tests apart")
    add("--fresh", action="store_true", help="measure the unbroken tests again")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parsed(arguments)
    areas = [area for area in AREAS if not options.area or area.name in options.area]
    chosen = {area.name: wanted_breaks(area, options) for area in areas}
    if options.only:
        areas = [area for area in areas if chosen[area.name]][:1]
        if not areas:
            raise SystemExit(f"no area has a break at {options.only}")
    if options.list:
        for area in areas:
            for one in chosen[area.name]:
                print(f"{one.place} ({area.name}, {one.kind})\n  - {one.before}\n  + {one.after}")
        return 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="mt", ignore_cleanup_errors=True) as folder:
            run_areas(areas, options, Workers(Path(folder), options.jobs))
    except KeyboardInterrupt:
        print("interrupted; run it again to go on", file=sys.stderr)
        return 130
    known = results(options.out)
    keys = [each.key for area in areas for each in chosen[area.name]]
    print("\n" + summary([known[key] for key in keys]))
    return 0


def dispatch(arguments: list[str]) -> int:
    """The script is also the program of the processes that it starts."""
    match arguments:
        case ["--supervise", limit, *command]:
            return supervise(float(limit), command)
        case [("--record" | "--run") as kind, folder]:
            job = json.loads((Path(folder) / "job").read_bytes())
            return (record if kind == "--record" else run)(Path(folder), job)
        case _:
            return main(arguments)


if __name__ == "__main__":
    sys.exit(dispatch(sys.argv[1:]))
