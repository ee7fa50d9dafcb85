"""Circles of imports, those for type checking included, do not grow.

Lower the limits as circles go.
"""

from pathlib import Path

import count_source
from import_arrows import arrows

LARGEST, ALL = 3, 5  # modules of the largest circle, and of all


def test_circles_do_not_grow() -> None:
    rings = count_source.circles(arrows())
    sizes = [len(ring) for ring in rings]
    assert max(sizes, default=0) <= LARGEST, rings[0]
    assert sum(sizes) <= ALL, rings


def test_a_circle_is_found() -> None:
    ring = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a", "f"}}
    assert count_source.circles(ring) == [["a", "b", "c"], ["d", "e"]]


def test_an_import_of_a_name_is_one_of_its_module(tmp_path: Path) -> None:
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text('"""A package."""\nfrom p.a import one\n')
    (package / "a.py").write_text("def one():\n    from p import b\n    return b\n")
    (package / "b.py").write_text("if TYPE_CHECKING:\n    from p.a import one\n")
    found = count_source.modules(tmp_path)
    imported = count_source.imports(found)
    assert imported == {"p": {"p.a"}, "p.a": {"p.b"}, "p.b": {"p.a"}}
    assert count_source.with_one_importer(found, imported) == {"p.b": "p.a"}
    assert count_source.docstring_lines(found) == 1
