"""The breaks: what can be changed in one line of a file, and a sample of it."""

import ast
import copy
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.mutation.areas import ROOT, Area

_OPERATORS = (ast.Lt, ast.Gt, ast.Eq, ast.Is, ast.In, ast.And, ast.Add)
_OPPOSITES = (ast.LtE, ast.GtE, ast.NotEq, ast.IsNot, ast.NotIn, ast.Or, ast.Sub)
_SWAPPED: dict[type[ast.AST], type[ast.AST]] = dict(
    zip(_OPERATORS + _OPPOSITES, _OPPOSITES + _OPERATORS, strict=True)
)
_SEQUENCES = (ast.JoinedStr, ast.List, ast.ListComp, ast.Tuple)
# What no test can notice, or need notice.
_CALLS = re.compile(
    r"(\w+\.)*(dataclass|field|TypeVar|ParamSpec|NewType|cast|assert_never"
    r"|_?log(ger|ging)?\.(debug|info|warning|error|exception|critical|log))"
)
_KEYWORDS = {"description", "help", "title", "examples", "stacklevel", "strict"}
_CONDITIONS = ("TYPE_CHECKING", "sys.platform", "sys.version_info", "__main__")


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
    function: tuple[int, int]
    """First and last line of the innermost function."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place} ({self.kind})\n  - {self.before}\n  + {self.after}"

    def applied(self) -> bytes:
        data = (ROOT / self.file).read_bytes()
        return data[: self.start] + self.new.encode() + data[self.end :]


def chosen_breaks(area: Area, number: int, seed: int) -> list[Break]:
    """Take every n-th line that can be broken, so that each file has its share; of its kinds of
    breaks each is as likely as the others."""
    rng = random.Random(f"{seed} {area.name}")
    at: dict[tuple[str, int], dict[str, list[Break]]] = defaultdict(lambda: defaultdict(list))
    for file in area.source_files():
        for one in breaks_of(file):
            at[file, one.line][one.kind].append(one)
    places = sorted(at)
    step = max(len(places) / number, 1.0)
    wanted = [places[int((i + rng.random()) * step)] for i in range(min(number, len(places)))]
    return [rng.choice(rng.choice(list(at[place].values()))) for place in wanted]


def breaks_of(file: str) -> list[Break]:
    data = (ROOT / file).read_bytes()
    tree = ast.parse(data)
    starts = [0, *(match.end() for match in re.finditer(rb"\n", data))]
    functions = [
        (each.lineno, each.end_lineno or 0)
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    found = []
    for kind, node, new in (change for each in _nodes(tree) for change in _changes(each)):
        # The tree counts columns in bytes.
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        head, tail = data[starts[node.lineno - 1] : start], data[end : starts[node.end_lineno]]
        before = _one_line(head + data[start:end] + tail)
        after = _one_line(head + new.encode() + tail)
        around = [(first, last) for first, last in functions if first <= node.lineno <= last]
        function = max(around, default=(node.lineno, node.lineno))
        found.append(Break(file, node.lineno, kind, before, after, start, end, new, function))
    return found


def _one_line(text: bytes) -> str:
    return " ".join(text.decode().split())


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    if not _is_ignored(node):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _nodes(child)


def _is_ignored(node: ast.AST) -> bool:
    match node:
        case ast.If(test=test):
            return any(each in ast.unparse(test) for each in _CONDITIONS)
        case ast.Call(func=function):
            return _CALLS.fullmatch(ast.unparse(function)) is not None
        case ast.keyword(arg=name):
            return name in _KEYWORDS
    # Positions inside of f-strings are wrong before Python 3.12.
    return isinstance(node, ast.Assert | ast.JoinedStr)


def _changes(node: ast.AST) -> Iterator[tuple[str, Any, str]]:  # noqa: C901, PLR0912 - a table
    """Yield the kind of each change, the node that it replaces, and by what."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.match_case(guard=ast.expr() as test):
            yield "condition forced True", test, "True"
            yield "condition forced False", test, "False"
        case ast.While(test=test) if not isinstance(test, ast.Constant):
            yield "condition forced False", test, "False"
        case ast.comprehension(ifs=tests):
            for test in tests:
                yield "condition forced True", test, "True"
                yield "condition forced False", test, "False"
        case ast.Expr(value=ast.Call() | ast.Await()) if not _is_ignored(node.value):
            yield "call removed", node, "pass"
        case ast.Return(value=ast.expr() as value):
            if not isinstance(value, ast.Constant) or value.value:
                yield "return None", value, "None"
        case ast.Raise() if "NotImplementedError" not in ast.unparse(node):
            yield "raise removed", node, "pass"
        case ast.Compare(ops=ops):
            for number, op in enumerate(ops):
                swapped = [*ops[:number], _SWAPPED[type(op)](), *ops[number + 1 :]]
                yield "comparison swapped", node, _unparsed(node, ops=swapped)
        case ast.BoolOp(op=op):
            yield "and and or swapped", node, _unparsed(node, op=_SWAPPED[type(op)]())
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if isinstance(op, ast.Add | ast.Sub):
            if not any(map(_is_sequence, ast.iter_child_nodes(node))):
                yield "+ and - swapped", node, _unparsed(node, op=_SWAPPED[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not removed", node, f"({ast.unparse(operand)})"
        case ast.Constant(value=bool() as value):
            yield "True and False swapped", node, str(not value)
        case ast.Constant(value=int() | float() as value):
            yield "number", node, repr(value + 1)
            yield "number", node, repr(value * 10 or -1)
        case ast.Call(func=ast.Name(id="min" | "max" as name)):
            yield "min and max swapped", node.func, "max" if name == "min" else "min"
        case ast.keyword(arg=str()):
            yield "keyword argument dropped", node, "**{}"


def _is_sequence(node: ast.AST) -> bool:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return is_text or isinstance(node, _SEQUENCES)


def _unparsed(node: ast.AST, **fields: object) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return ast.unparse(changed)
