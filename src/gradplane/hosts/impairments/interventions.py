"""An impairment that somebody asks for while the run goes on, and that ends by itself."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Intervention:
    """An impairment of one host's link for `duration_ns` of the experiment's time.

    spec: a complete table of an impairment, see verdicts.py, whose link is that of the host."""

    spec: dict[str, Any]
    duration_ns: int

    @property
    def link(self) -> str:
        """The name of the host whose link it is."""
        link: str = self.spec["link"]
        return link

    def to_json(self) -> str:
        """Return the intervention as one line of JSON text that from_json() reads."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Intervention:
        """Return the intervention in a text of to_json()."""
        values = json.loads(text)
        return cls(values["spec"], values["duration_ns"])
