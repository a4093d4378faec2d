# SPDX-License-Identifier: BSD-3-Clause
#
#   docker build -t valkey-server .
#   docker run -p 6379:6379 -v valkey-data:/data valkey-server
#   docker run ... valkey-server /etc/valkey/valkey.conf --requirepass secret     options of your own
#
# Clients of a container come from other addresses, so protected-mode would refuse them all. Nothing
# is reached from outside before -p publishes the port; do not publish it to strangers without a
# password. No package is named here: deps/deps.txt lists the build dependencies, and the linked
# programs determine those at runtime.
FROM debian:12-slim AS build
WORKDIR /source
COPY deps deps
RUN deps/install.sh build
COPY . .
RUN make install DESTDIR=/image && deps/runtime_packages.sh /image/usr/local/bin/valkey-* > /image/packages

FROM debian:12-slim
COPY --from=build /image/packages /tmp/packages
RUN apt-get update && apt-get install -y --no-install-recommends $(cat /tmp/packages) && \
    rm -rf /var/lib/apt/lists/* /tmp/packages && \
    groupadd -r -g 999 valkey && useradd -r -u 999 -g valkey -d /data -s /usr/sbin/nologin valkey && \
    install -d -o valkey -g valkey -m 0750 /data
COPY --from=build /image/usr/local/ /usr/local/
COPY --from=build /source/utils/container/health.sh /usr/local/bin/valkey-health
USER valkey
WORKDIR /data
VOLUME /data
EXPOSE 6379
# For TLS alone set VALKEY_TLS_PORT; the script tells the rest.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["valkey-health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["valkey-server"]
CMD ["--protected-mode", "no"]
