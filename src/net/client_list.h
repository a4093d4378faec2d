/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptions of clients for CLIENT LIST, CLIENT KILL and INFO. */
#ifndef NET_CLIENT_LIST_H
#define NET_CLIENT_LIST_H

#include "engine/ctx.h"
#include "engine/hooks.h"
#include "net/client.h"

typedef enum clientField {
    FIELD_ID,
    FIELD_TYPE,
    FIELD_USER,
    FIELD_ADDR,
    FIELD_LADDR,
    FIELD_IP,
    FIELD_NAME,
    FIELD_LIB_NAME,
    FIELD_LIB_VER,
    FIELD_FLAGS,
    FIELD_CAPA,
    FIELD_DB,
    FIELD_COUNT,
} clientField;

/* The condition of one filter. Texts are borrowed from the request. */
typedef struct clientCondition {
    bool given;
    slice text;
    int64_t number; /* DB: its index; TYPE: a clientType */
    int64_t *ids;   /* ID: sorted */
    int id_count;
} clientCondition;

/* A conjunction of conditions. A zeroed filter matches every client. Clear it with
 * clientFilterClear(). */
typedef struct clientFilter {
    clientCondition is[FIELD_COUNT];
    clientCondition is_not[FIELD_COUNT]; /* NOT-ID and so on */
    int64_t idle_s, age_s;               /* minimum; 0: any */
    bool skip_me;
} clientFilter;

/* Parses the filters from argv[2] on. On failure the error was replied, and `f` is empty. */
bool clientFilterParse(ctx *c, bool skip_me, clientFilter *f);
/* Sets a filter for the peer's address only: the old form of CLIENT KILL. */
void clientFilterAddress(clientFilter *f, slice address);
void clientFilterClear(clientFilter *f);
/* `me` is the calling session. Closing clients match nothing. */
bool clientFilterMatches(const clientFilter *f, const client *cl, const session *me);

/* INFO sections and periodic jobs of `net`. */
extern const infoSection netSections[];
extern const tickJob netTicks[];
/* CONFIG RESETSTAT. */
void netResetStats(void);
/* A client's present buffers count as recent ones. */
void netSampleBuffers(const client *cl);

#endif
