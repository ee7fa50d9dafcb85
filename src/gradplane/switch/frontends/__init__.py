"""Front ends for programs that another compiler has compiled: a folder for each form.

A front end makes the same intermediate representation that `lower` makes of P4 source. May import
ir only.
"""
