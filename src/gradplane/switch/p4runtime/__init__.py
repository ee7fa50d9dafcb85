"""The P4Runtime service, and P4Info.

From the outside in: `server` (gRPC, threads) around `service` (messages in, messages out), which
asks `arbitration` who may, and changes or reads the `device`'s `pipeline` through `write` and
`read`; those know each entity from `entities/`. `catalog` says what the numbers in messages stand
for; `p4info` makes them from a program.
"""
