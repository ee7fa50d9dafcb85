"""The BFRuntime service and bf-rt.json.

From the outside in: `server` (gRPC, threads) wraps `service` (messages in, messages out), which
knows its `clients`, finds the program that they are bound to (`bound_program`) and has `requests`
read and write its tables, a notation over the switch's store; `tables/` has a module for each kind
of table. `codec` translates keys and data between messages and Python values by the table's
`schema`. `program_schema` has a row for each table of a program, from its P4Info: the schema, and
how the table is made on a running switch. The device's tables are texts in `fixed_schema` and
`traffic_schema`; one that only keeps values needs no more than its text and, where it differs from
others, a row in `tables/kept_tables.py`.
"""
