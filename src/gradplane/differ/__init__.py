"""Differential tests of a program: the same entries and packets through two switches.

`inputs` makes entries and packets, aimed at the program's `goals`; `bmv2_switch` runs the real
simple_switch_grpc; `difference` compares. May import switch, controller and experiment.
"""
