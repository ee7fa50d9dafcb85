"""Write docs/reference/names.md: the stable Python names, which are each room's `__all__`.

    python scripts/stable_names.py            print the page
    python scripts/stable_names.py --write    write it

A room is a package directly below `gradplane`; one without `__all__` has no stable names. The
source is read and nothing imported: some rooms need what is not installed everywhere.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "reference" / "names.md"
HEADING = """# Stable names

The Python names to rely on: each room's `__all__`. A change of one is in CHANGELOG.md; before 1.0
it may come with a minor version. Everything else may change at any time. The other pages of the
reference explain these names.
"""
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def stable_names() -> dict[str, list[str]]:
    """Return the names in `__all__` of the package and of each room that has one."""
    top = SOURCE / "gradplane"
    files = [top / "__init__.py", *sorted(top.glob("*/__init__.py"))]
    found = {".".join(file.parent.relative_to(SOURCE).parts): _all_of(file) for file in files}
    return {package: names for package, names in found.items() if names}


def _all_of(file: Path) -> list[str]:
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return sorted(names, key=lambda name: (name.lower(), name))
    return []


def page() -> str:
    """Return the page's text."""
    return HEADING + "".join(_section(*item) for item in stable_names().items())


def _section(package: str, names: list[str]) -> str:
    folder = SOURCE.joinpath(*package.split("."))
    inside = folder.glob("*.py") if package == "gradplane" else folder.rglob("*.py")
    modules = sorted(inside, key=lambda file: (len(file.parts), file))
    found: dict[str, str] = {}
    for name, text in (item for file in modules for item in _definitions(file)):
        found.setdefault(name, text)
    rows = "".join(f"| `{name}` | {found.get(name, 'a value')} |\n" for name in names)
    return f"\n## {package}\n\n| name | what it is |\n| --- | --- |\n{rows}"


def _definitions(file: Path) -> Iterator[tuple[str, str]]:
    """Yield a module's classes, functions and values that have a docstring, each with its first
    sentence."""
    body = ast.parse(file.read_text("utf-8")).body
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, _DEFINITIONS):
            yield node.name, _first_sentence(ast.get_docstring(node) or "")
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(following, ast.Expr):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(following.value, ast.Constant):
                yield ast.unparse(target), _first_sentence(str(following.value.value))


def _first_sentence(docstring: str) -> str:
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    sentence, dot, _ = paragraph.partition(". ")
    return (sentence + dot.strip()).replace("|", "\\|")


def main() -> None:
    """Print the page, or write it."""
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(), "utf-8")
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
