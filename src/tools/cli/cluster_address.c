/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The address among the arguments of a subcommand, and the cluster that is found there. */
#include <stdlib.h>

#include "tools/cli/cluster_priv.h"
#include "tools/server_uri.h"

bool managerParseAddress(int argc, char **argv, str *host, int *port, int *bus_port) {
    *port = *bus_port = 0;
    if (argc == 1) {
        clusterNodeParseAddress(argv[0], host, port, bus_port); /* the port is 0 if that fails */
    } else {
        strClear(host);
        strAppendSlice(host, serverHostBare(sliceOf(argv[0])));
        *port = atoi(argv[1]);
    }
    if (*port != 0) return true;
    fputs("[ERR] Invalid arguments: you need to pass either a valid address (ie. 120.0.0.1:7000) "
          "or space separated IP and port (ie. 120.0.0.1 7000)\n",
          stderr);
    return false;
}

bool managerLoadFrom(clusterManager *m, int argc, char **argv) {
    str host = STR_EMPTY;
    int port, bus_port;
    bool loaded = managerParseAddress(argc, argv, &host, &port, &bus_port) &&
                  managerLoad(m, strText(&host), port, bus_port);
    strFree(&host);
    return loaded;
}
