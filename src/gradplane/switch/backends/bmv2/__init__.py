"""BMv2's JSON (p4lang/behavioral-model, docs/JSON_format.md) from the intermediate representation.

`to_json` makes the file that simple_switch loads. `storage` lays the program's variables out as
headers and fields, `expressions` and `actions` translate code, `control_flow` cuts controls into
tables, conditions and actions, `parsers`, `externs` and `v1model` do what their names say.
"""

from gradplane.switch.backends.bmv2.v1model import to_json

__all__ = ["to_json"]
