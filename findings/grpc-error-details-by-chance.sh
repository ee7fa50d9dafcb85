#!/usr/bin/env bash
# Between 8 and 16 KiB, whether gRPC delivers an error's details is decided by chance, call by call.
#
# Versions:  grpcio 1.85.3 from PyPI, client and server in one process over loopback.
# Expected:  A limit is a limit: details (trailing metadata) of one size always arrive, or never.
# Seen:      7000 bytes of grpc-status-details-bin always arrive, 20000 never do. Of 12000 bytes some
#            calls get the server's status, UNKNOWN with its details, others RESOURCE_EXHAUSTED ("received
#            metadata size exceeds soft limit"): between grpc.max_metadata_size (8 KiB) and
#            grpc.absolute_max_metadata_size (16 KiB) it is refused at random, the more the larger.
# Matters:   P4Runtime answers a failed batch with one Error per update in these details: batches of a
#            hundred or more entries with telling messages get there. The client sees the reason at one
#            try and RESOURCE_EXHAUSTED, as if a table were full, at the next. Clients set both options.
# Source:    gRPC's list of channel arguments; the P4Runtime specification, "Error reporting".
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet grpcio==1.85.3

"$venv/bin/python" - <<'PY' | tee "$work/seen"
from collections import Counter
from concurrent import futures

import grpc


def fail(request, context):
    context.set_trailing_metadata((("grpc-status-details-bin", bytes(int(request))),))
    context.abort(grpc.StatusCode.UNKNOWN, "see the details")


class Service(grpc.GenericRpcHandler):
    def service(self, call):
        return grpc.unary_unary_rpc_method_handler(fail)


server = grpc.server(futures.ThreadPoolExecutor(1))
server.add_generic_rpc_handlers((Service(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    call = channel.unary_unary("/test/Write")
    for size in (7000, 12000, 20000):
        found = Counter()
        for _ in range(100):
            try:
                call(str(size).encode(), timeout=10)
            except grpc.RpcError as error:
                found[error.code().name] += 1
        print(f"{size}:", *sorted(found))
server.stop(None)
PY
diff - "$work/seen" <<'TXT' && echo "as described"
7000: UNKNOWN
12000: RESOURCE_EXHAUSTED UNKNOWN
20000: RESOURCE_EXHAUSTED
TXT
