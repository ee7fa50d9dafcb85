"""Hypothesis profiles, the only place where its settings for all tests are made.

`test`, the default, gives the same answer every time: examples follow from the test alone, and no
verdict depends on how fast or busy the machine is. `fuzz` draws new examples in each run, keeps
those that failed and shrinks them; `make fuzz` sets it (tests/fuzz_properties.py).
"""

import os

from hypothesis import HealthCheck, settings

_ANY_SPEED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("test", derandomize=True, database=None, **_ANY_SPEED)
settings.register_profile("fuzz", print_blob=True, **_ANY_SPEED)
settings.load_profile(os.environ.get("GRADPLANE_HYPOTHESIS_PROFILE", "test"))
