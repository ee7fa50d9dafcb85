"""The P4Runtime service and P4Info.

From the outside in: `server` (gRPC, threads) wraps `service` (messages in, messages out), which
asks `arbitration` for permission and reads or changes the `device`'s `pipeline` through `read` and
`write`; these know each entity from `entities/`. `catalog` maps the ids in messages to the
program's objects; `p4info` makes the ids from a program.
"""
