"""The BFRuntime service and bf-rt.json.

From the outside in: `server` (gRPC, threads) wraps `service` (messages in, messages out), which
finds the client's program and has `requests` read and write its tables; `clients`, `notifications`
and `pushed_programs` are parts of the service. `tables/` has a module for each kind of table;
`codec` translates keys and data between messages and Python values by the table's `schema`.
`program_schema` makes the schema of a program's tables from its P4Info, with `profile_schema`,
`register_schema` and others for their kinds; `fixed_tables` has those of the device, which
`fixed_schema` and `traffic_schema` describe in `table_notation`.
"""
