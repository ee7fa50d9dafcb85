"""One store for everything that a control plane sets.

`store.py` puts the kinds of objects together, `kind.py` says what a kind is, `journal.py` undoes a
batch that fails. P4Runtime, BFRuntime, simple_switch's commands, STF and Python are notations over
it: they translate their messages to records and back, and word refusals in their own way. It may
import `arch`, `runtime` and `ir`.
"""
