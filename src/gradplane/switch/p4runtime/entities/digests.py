"""DigestEntry: enables a digest and sets how its messages are gathered."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from gradplane.switch.p4runtime.catalog import find
from gradplane.switch.p4runtime.pipeline import Pipeline, Undo
from gradplane.switch.p4runtime.status_errors import RpcError


def write_digest(p: Pipeline, kind: int, message: p4r.DigestEntry) -> Undo:
    extern = find(p.catalog.digests, message.digest_id, "digest")
    former = p.digests.get(extern.id)
    if kind == p4r.Update.INSERT and former is not None:
        pi_text = f"Digest {extern.id} already configured"
        raise RpcError("ALREADY_EXISTS", f"digest {extern.name} is enabled", pi_text)
    if kind != p4r.Update.INSERT and former is None:
        what = f"digest {extern.name} is not enabled; INSERT enables it"
        raise RpcError("NOT_FOUND", what, f"Digest {extern.id} not configured")
    if kind == p4r.Update.DELETE:
        del p.digests[extern.id]
    else:
        config = p4r.DigestEntry.Config()
        config.CopyFrom(message.config)
        p.digests[extern.id] = _checked(extern.name, config)

    def undo() -> None:
        p.digests.pop(extern.id, None)
        if former is not None:
            p.digests[extern.id] = former

    return undo


def read_digests(p: Pipeline, query: p4r.DigestEntry) -> Iterator[p4r.DigestEntry]:
    if query.digest_id:
        find(p.catalog.digests, query.digest_id, "digest")
    for number, config in p.digests.items():
        if query.digest_id in (0, number):
            yield p4r.DigestEntry(digest_id=number, config=config)


def _checked(name: str, config: p4r.DigestEntry.Config) -> p4r.DigestEntry.Config:
    for part in ("max_timeout_ns", "max_list_size", "ack_timeout_ns"):
        if getattr(config, part) < 0:
            raise RpcError(
                "INVALID_ARGUMENT", f"digest {name}: {part} {getattr(config, part)} is below 0"
            )
    return config
