"""DigestEntry: enables a digest and sets how its messages are gathered."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from gradplane.switch.p4runtime.catalog import find
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import RpcError


def write_digest(p: Pipeline, kind: int, message: p4r.DigestEntry) -> None:
    extern = find(p.catalog.digests, message.digest_id, "digest")
    former = p.digests.get(extern.id)
    if kind == p4r.Update.INSERT and former is not None:
        pi_text = f"Digest {extern.id} already configured"
        raise RpcError("ALREADY_EXISTS", f"digest {extern.name} is enabled", pi_text)
    if kind != p4r.Update.INSERT and former is None:
        what = f"digest {extern.name} is not enabled; INSERT enables it"
        raise RpcError("NOT_FOUND", what, f"Digest {extern.id} not configured")
    config = None
    if kind != p4r.Update.DELETE:
        config = p4r.DigestEntry.Config()
        config.CopyFrom(message.config)
        _check(extern.name, config)
    p.store.journal.put(p.digests, extern.id, config)


def read_digests(p: Pipeline, query: p4r.DigestEntry) -> Iterator[p4r.DigestEntry]:
    if query.digest_id:
        find(p.catalog.digests, query.digest_id, "digest")
    for number, config in p.digests.items():
        if query.digest_id in (0, number):
            yield p4r.DigestEntry(digest_id=number, config=config)


def _check(name: str, config: p4r.DigestEntry.Config) -> None:
    for part in ("max_timeout_ns", "max_list_size", "ack_timeout_ns"):
        if getattr(config, part) < 0:
            raise RpcError(
                "INVALID_ARGUMENT", f"digest {name}: {part} {getattr(config, part)} is below 0"
            )
