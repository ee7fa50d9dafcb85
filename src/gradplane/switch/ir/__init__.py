"""The intermediate representation: types and nodes, their printer and their verifier.

A checked program as the engines run it: instantiated, inlined, monomorphic. Imports no other stage.
"""
