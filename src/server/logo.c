/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The logo printed when the server starts in a terminal. */
#include <unistd.h>

#include "base/base.h"
#include "base/build_info.h"
#include "config/config.h"
#include "net/net.h"
#include "server/server.h"
#include "server/server_priv.h"

void logoPrint(void) {
    char where[256];
    netListenText(where, sizeof(where));
    str text = STR_EMPTY;
    strAppendText(&text, "\n");
    strAppendFormat(&text, "      /\\_____/\\       Valkey-compatible server %s, 64 bit\n",
                    SERVER_VERSION);
    strAppendFormat(&text, "     /  o   o  \\      Listening on: %s\n", where);
    strAppendFormat(&text, "    ( ==  ^  == )     PID: %d\n", (int)getpid());
    strAppendFormat(&text, "     )  keys   (      Config: %s\n",
                    configFilePath() ? configFilePath() : "(none)");
    strAppendText(&text,
                  "    (           )     run with --help to list the command line options\n");
    strAppendText(&text, "    (__(__)___(__)\n\n");
    logRaw(strText(&text));
    strFree(&text);
}
