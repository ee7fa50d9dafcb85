"""The BFRuntime service and bf-rt.json.

From the outside in: `server` (gRPC, threads) wraps `service` (messages in, messages out), which
knows its `clients`, finds the program that they are bound to (`bound_program`) and has `requests`
read and write its tables, a notation over the switch's store; `tables/` has a module for each kind
of table. `codec` translates keys and data between messages and Python values by the table's
`schema`. `program_schema` makes the schema of a program's tables from its P4Info, with
`object_schemas` for most kinds; those of the device are texts in `fixed_schema` and
`traffic_schema`. A device table that only keeps values needs no more than its text and, where it
differs from others, a row in `tables/kept_tables.py`.
"""
