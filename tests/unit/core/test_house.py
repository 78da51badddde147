"""How the core is built: each field is written in one file, imports form few layers, and drivers read effects."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from daws.core import node

CORE = Path(node.__file__).parent
DEPTH_MAX = 6
"""So many imports lead from any module of the core to the lowest at most."""
MUTATORS = frozenset(
    (
        *("add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "insert", "pop", "popitem"),
        *("popleft", "remove", "reverse", "setdefault", "sort", "update"),
    )
)
OF_EVERYBODY = frozenset(("out",))
"""Effects are appended by every handler."""


@cache
def trees() -> dict[str, ast.Module]:
    return {path.stem: ast.parse(path.read_text()) for path in sorted(CORE.glob("*.py")) if path.stem != "__init__"}


@cache
def declared() -> dict[str, frozenset[object]]:
    """By module: the fields of the classes that it defines."""
    found = {}
    for name, tree in trees().items():
        fields: set[object] = set()
        for one in [one for one in ast.walk(tree) if isinstance(one, ast.ClassDef)]:
            for line in one.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    fields.add(line.target.id)
                elif isinstance(line, ast.Assign):
                    fields.update(target.id for target in line.targets if isinstance(target, ast.Name))
                    fields.update(part.value for part in ast.walk(line.value) if isinstance(part, ast.Constant))
        found[name] = frozenset(fields)
    return found


def written(tree: ast.Module) -> Iterator[str]:
    """Fields that are assigned, deleted or changed in place; those of `self` are left out."""
    for one in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(one, ast.Assign):
            targets = one.targets
        elif isinstance(one, ast.AugAssign | ast.AnnAssign):
            targets = [one.target]
        elif isinstance(one, ast.Delete):
            targets = one.targets
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in MUTATORS:
            targets = [ast.Subscript(one.func.value, ast.Constant(0))]
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                field = part
                while isinstance(field, ast.Subscript):
                    field = field.value
                is_own = isinstance(field, ast.Attribute) and ast.unparse(field.value) == "self"
                if isinstance(field, ast.Attribute) and not is_own and not _creates_part(one, part):
                    yield field.attr


def _creates_part(statement: ast.AST, target: ast.expr) -> bool:
    """`core.outbox = Outbox(…)`: a part is created when it is first needed, by the module that defines it."""
    if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Attribute):
        return False
    value = statement.value
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in _classes_near(value)


def _classes_near(value: ast.Call) -> set[str]:
    """The classes of the module in which this call stands."""
    for tree in trees().values():
        if any(one is value for one in ast.walk(tree)):
            return {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
    return set()


def strangers() -> dict[str, set[str]]:
    """By module: fields of other modules' classes that it writes."""
    known = frozenset().union(*declared().values())
    found: dict[str, set[str]] = {}
    for name, tree in trees().items():
        for field in written(tree):
            if field in known and field not in declared()[name] and field not in OF_EVERYBODY:
                found.setdefault(name, set()).add(field)
    return found


def imports(tree: ast.Module) -> set[str]:
    """The modules of the core that are imported when this one is; those for types alone are not."""
    found: set[str] = set()
    todo: list[ast.AST] = [tree]
    while todo:
        for one in ast.iter_child_nodes(todo.pop()):
            if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING":
                continue
            if isinstance(one, ast.ImportFrom) and one.module == "daws.core":
                found.update(alias.name for alias in one.names)
            elif isinstance(one, ast.ImportFrom) and (one.module or "").startswith("daws.core."):
                found.add((one.module or "").removeprefix("daws.core."))
            todo.append(one)
    return found


@cache
def depths() -> dict[str, int]:
    """By module: how many imports lead from it to the lowest module below it. A circle is an error."""
    left = {name: imports(tree) for name, tree in trees().items()}
    found: dict[str, int] = {}
    while left:
        lowest = [name for name, below in left.items() if below <= found.keys()]
        assert lowest, f"imports go round in a circle among {sorted(left)}"
        found |= {name: max([1 + found[one] for one in left[name]], default=0) for name in lowest}
        left = {name: below for name, below in left.items() if name not in lowest}
    return found


def test_fields_are_written_in_the_file_that_declares_them():
    assert not strangers()


def test_imports_have_no_circle_and_few_layers():
    assert max(depths().values()) <= DEPTH_MAX, depths()
