"""How the modules of the package lean on each other: one way, without cycles, each small."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from prefixkit import paths

PACKAGE = paths.ROOT / "prefixkit"
MOST_LINES = 350
# From the bottom up: a module may use its own layer and those before it.
LAYERS = (
    {"errors", "paths"},
    {"params", "records", "provenance", "lru", "chat_text", "model", "scrub"},
    {"metrics", "probe", "server", "prompts", "workload", "doctor", "peak"},
    {"experiments", "stats", "figures", "claims", "words", "export"},
    {"article", "notebook", "render", "interleave"},
    {"run", "publish"},
    {"commands", "__main__"},
)


def modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(paths.ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def imports(module: str) -> frozenset[str]:
    """Return the modules of the package that one names anywhere, within functions too; not those for types alone."""
    known, found = modules(), set()
    tree = ast.parse(known[module].read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: imports are absolute"
            inner_names = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(name if name in known else str(node.module) for name in inner_names)
    return frozenset(found & known.keys() - {module})


def layer(module: str) -> int:
    area = module.split(".")[1]
    found = [i for i, areas in enumerate(LAYERS) if area in areas]
    assert len(found) == 1, f"prefixkit.{area} stands in no layer or in two: give it a place here"
    return found[0]


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    TopologicalSorter({module: imports(module) for module in modules()}).prepare()


def test_dependencies_point_one_way() -> None:
    inner = [m for m in modules() if m not in ("prefixkit", "prefixkit.bootstrap")]
    upward = [f"{m} -> {other}" for m in inner for other in imports(m) - {"prefixkit"} if layer(other) > layer(m)]
    assert upward == []


def test_what_is_installed_first_needs_nothing_of_the_package() -> None:
    assert imports("prefixkit.bootstrap") == set()


@pytest.mark.parametrize("area", ["metrics", "stats"])
def test_pure_arithmetic_starts_no_servers_and_sends_nothing(area: str) -> None:
    used = {other for m in modules() if m.startswith(f"prefixkit.{area}") for other in imports(m)}
    areas = {name.split(".")[1] for name in used - {"prefixkit"}}
    assert areas <= {area, "errors", "paths", "records"}


def test_modules_stay_small() -> None:
    sizes = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules().items()}
    assert {name: lines for name, lines in sizes.items() if lines > MOST_LINES} == {}


def test_rendering_never_reaches_what_measures() -> None:
    reached: set[str] = set()
    waiting = ["prefixkit.render", "prefixkit.article"]
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += imports(module) - {"prefixkit"}
    areas = {module.split(".")[1] for module in reached}
    assert "stats" in areas
    assert not areas & {"experiments", "server", "probe", "doctor"}


def test_rendering_needs_nothing_that_only_linux_has() -> None:
    code = (
        "import importlib, sys\n"
        "sys.modules['fcntl'] = None\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "print(*(m for m in sys.modules if m.startswith(('prefixkit.server', 'prefixkit.experiments'))))\n"
    )
    wanted = [m for m in modules() if m.startswith(("prefixkit.article", "prefixkit.export", "prefixkit.figures"))]
    wanted += ["prefixkit.render", "prefixkit.publish", "prefixkit.commands.article", "prefixkit.commands.verify"]
    done = subprocess.run([sys.executable, "-c", code, *wanted], capture_output=True, text=True, cwd=paths.ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
