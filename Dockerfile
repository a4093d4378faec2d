# SPDX-License-Identifier: BSD-3-Clause
#
#   docker build -t valkey-server .
#   docker run -p 6379:6379 -v valkey-data:/data valkey-server
#   docker run ... valkey-server /etc/valkey/valkey.conf --requirepass secret     options of your own
#
# Clients of a container come from other addresses, so protected-mode would refuse them all. Nothing is
# reached from outside before -p publishes the port; do not publish it to strangers without a password.
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
        gcc libc6-dev libjemalloc-dev make pkg-config && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN make install DESTDIR=/image

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends libjemalloc2 && \
    rm -rf /var/lib/apt/lists/* && \
    groupadd -r -g 999 valkey && useradd -r -u 999 -g valkey -d /data -s /usr/sbin/nologin valkey && \
    install -d -o valkey -g valkey -m 0750 /data
COPY --from=build /image/usr/local/ /usr/local/
USER valkey
WORKDIR /data
VOLUME /data
EXPOSE 6379
# Any whole answer to PING is one of a server that lives, "-NOAUTH ..." too; -LOADING is not ready yet.
ENV VALKEY_PORT=6379
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["bash", "-c", \
    "exec 3<>/dev/tcp/127.0.0.1/$VALKEY_PORT && printf 'PING\\r\\n' >&3 && read -r -t 2 answer <&3 && [[ $answer == +PONG* || $answer == -NOAUTH* ]]"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["valkey-server"]
CMD ["--protected-mode", "no"]
