# gradplane with Mininet. To build it, and to run an experiment whose folder stays outside:
#
#     docker build -t gradplane .
#     docker run --rm -v "$PWD:/work" --cap-add NET_ADMIN --cap-add NET_RAW --cap-add SYS_ADMIN \
#         --security-opt apparmor=unconfined gradplane run thc-star
#
# The capabilities are for Mininet's namespaces, links, sockets and mounts (Docker gives NET_RAW by
# itself, Podman does not); experiments on the simulated network (--net sim) need none.

FROM debian:bookworm-slim AS base
RUN apt-get update && apt-get install -y --no-install-recommends \
    bash ca-certificates git make python3 python3-venv

FROM base
COPY . /opt/gradplane
RUN /opt/gradplane/scripts/install notebook,sweep,view
ENV PATH=/opt/gradplane/.venv/bin:$PATH
WORKDIR /work
ENTRYPOINT ["gradplane"]
CMD ["--help"]
