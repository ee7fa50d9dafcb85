"""The test program, and what the fixtures give."""

from __future__ import annotations

from pathlib import Path

from bfrt_client import Client

from gradplane.switch.p4runtime.device import Device

PROGRAM = Path(__file__).parent / "program.p4"

Served = tuple[Device, Client]
