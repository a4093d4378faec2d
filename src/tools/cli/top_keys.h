/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hot keys for --top, from what the server offers: HOTKEYS GET, which this server has, or OBJECT
 * FREQ of a part of the keys, which needs an LFU policy. One thread. */
#ifndef TOOLS_CLI_TOP_KEYS_H
#define TOOLS_CLI_TOP_KEYS_H

#include "base/str.h"
#include "tools/cli/connection.h"

enum { TOP_KEYS_MAX = 64 };

typedef struct topKey {
    str name; /* quoted */
    int db;
    double rate, percent; /* requests per second, share of all requests; only of HOTKEYS */
    int64_t count;        /* only of OBJECT FREQ, as the name itself */
    str bytes;
} topKey;

typedef enum topKeysSource {
    TOP_KEYS_NONE, /* `why` tells the reason */
    TOP_KEYS_HOTKEYS,
    TOP_KEYS_FREQ,
} topKeysSource;

typedef struct topKeys {
    topKeysSource source;
    topKey list[TOP_KEYS_MAX]; /* hottest first */
    int count;
    uint64_t cursor, examined; /* of the walk for OBJECT FREQ */
    bool no_hotkeys;           /* the server does not know the command */
    str why;
} topKeys;

/* Brings the list up to date, with at most some hundred requests. `lfu`: the server has an LFU
 * policy. */
void topKeysRefresh(topKeys *t, connection *c, bool lfu);
/* Takes a reply of HOTKEYS GET. False if it has another form. */
bool topKeysTake(topKeys *t, const valkeyReply *reply);
/* Notes the counter of a key of the selected database, in its place of the list or if it is among
 * the hottest. */
void topKeysNote(topKeys *t, slice name, int db, int64_t count);
void topKeysClear(topKeys *t);

#endif
