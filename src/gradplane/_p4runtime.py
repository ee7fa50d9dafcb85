"""The messages of P4Runtime, P4Info and gNMI: finsy's modules of them, without its client.

`import finsy.proto` imports finsy first, which takes as long as all else that a switch needs of
Python packages. Its folder `proto` is imported here as a package of its own; the classes are the
same, since protobuf has one for each message of its pool.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from finsy.proto import (
        U128,
        gnmi,
        gnmi_grpc,
        p4d,
        p4i,
        p4r,
        p4r_grpc,
        p4t,
        rpc_code,
        rpc_status,
        stratum,
    )

__all__ = [
    "ACTION_SCOPES", "U128", "gnmi", "gnmi_grpc", "p4d", "p4i", "p4r", "p4r_grpc", "p4t",
    "rpc_code", "rpc_status", "stratum",
]  # fmt: skip


def _imported() -> ModuleType:
    """Return finsy's package of messages."""
    if "finsy.proto" in sys.modules:
        return sys.modules["finsy.proto"]
    finsy = find_spec("finsy")
    assert finsy is not None and finsy.origin is not None
    file = Path(finsy.origin).parent / "proto" / "__init__.py"
    spec = spec_from_file_location(f"{__name__}.messages", file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if not TYPE_CHECKING:
    globals().update({name: getattr(_imported(), name) for name in __all__[1:]})

ACTION_SCOPES: dict[str, p4i.ActionRef.Scope.ValueType] = {
    "tableonly": p4i.ActionRef.TABLE_ONLY,
    "defaultonly": p4i.ActionRef.DEFAULT_ONLY,
    "groupaction": 3,  # type: ignore[dict-item]  # P4Runtime 1.6 names it, finsy 0.30 does not
}
"""The scopes of a table's actions by their annotations."""
