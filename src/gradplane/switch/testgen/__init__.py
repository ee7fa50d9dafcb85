"""Tests made from a program: packets and table entries that reach every statement and branch.

The interpreter runs a packet while each value that depends on the packet, or on action data, also
has a z3 term (`symbols`, `concolic`); so the run gives the condition of its path (`recorder`,
`runs`). A branch on the path is turned the other way by solving for it (`solving`), and the new
packet and entries run again, until everything is covered or time is up (`explorer`). What
contradicts a goal on its path is given up, so that the run may come to it by another. A condition
that does not depend on the packet where it is, since a branch before has decided it, such as
whether a header is valid, leads back to that branch (`Goals.deciders`): it is turned, and the rest
of the path is taken again. So what a test expects is what the interpreter did. `goals` says what
there is to cover; `made_tests` and `ptf_tests` have the forms of a test, `generate` does it all.

Needs z3-solver (pip install 'gradplane[p4tests]').
"""
