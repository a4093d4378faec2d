/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream of a server, which both sides share: its identity, whether it is produced here
 * (primary) or applied (replica), and its backlog. State of one side only is in other files. */
#ifndef PSYNC_STREAM_STATE_H
#define PSYNC_STREAM_STATE_H

#include <stdbool.h>

#include "psync/backlog.h"
#include "psync/birth.h"
#include "psync/history.h"

typedef struct replServer {
    replHistory history;
    replBirth birth;               /* of the dataset */
    char process[REPL_ID_LEN + 1]; /* of this start of the server: birth.h */
    bool has_backlog;
    replBacklog backlog; /* if has_backlog: its next byte is number history.offset + 1 */
} replServer;

#endif
