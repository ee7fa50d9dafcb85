"""The rights of a role: everything without a configuration, else Stratum's P4RoleConfig message."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError

from gradplane._p4runtime import stratum
from gradplane.switch.p4runtime.status_errors import invalid


@dataclass(frozen=True, slots=True)
class RoleConfig:
    """The rights of a role.

    `ids`: the P4Info ids it may access, None for all. The packet-in filter is (metadata id, value).
    """

    ids: frozenset[int] | None = None
    receives_packet_ins: bool = True
    can_push_pipeline: bool = True
    packet_in_filter: tuple[int, bytes] | None = None

    @classmethod
    def parse(cls, config: Any | None) -> RoleConfig:
        """Read Role.config; raise RpcError INVALID_ARGUMENT for a message of another type."""
        if config is None:
            return FULL_ACCESS
        message = stratum.P4RoleConfig()
        try:
            if config.Unpack(message):
                return cls._from_message(message)
        except DecodeError:
            pass
        raise invalid(
            f"role config of type {config.type_url or '(none)'}: expected none, or a"
            f" {message.DESCRIPTOR.full_name}"
        )

    @classmethod
    def _from_message(cls, message: stratum.P4RoleConfig) -> RoleConfig:
        chosen = None
        if message.HasField("packet_in_filter"):
            chosen = (message.packet_in_filter.metadata_id, message.packet_in_filter.value)
        return cls(
            frozenset(message.exclusive_p4_ids) | frozenset(message.shared_p4_ids),
            message.receives_packet_ins,
            message.can_push_pipeline,
            chosen,
        )

    def may_access(self, p4_id: int) -> bool:
        """Return True if the id is allowed.

        0 stands for entities without one (groups, clone sessions).
        """
        return self.ids is None or p4_id == 0 or p4_id in self.ids


FULL_ACCESS = RoleConfig()
