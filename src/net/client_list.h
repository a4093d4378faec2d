/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What CLIENT LIST, CLIENT KILL and INFO make of the clients. */
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

/* What one filter wants. Texts are borrowed from the request. */
typedef struct clientWant {
    bool given;
    slice text;
    int64_t number; /* DB: its number; TYPE: a clientType */
    int64_t *ids;   /* ID: those named, sorted */
    int id_count;
} clientWant;

/* All must hold. A zeroed one holds for every client. Clear with clientFilterClear(). */
typedef struct clientFilter {
    clientWant is[FIELD_COUNT];
    clientWant is_not[FIELD_COUNT]; /* NOT-ID and so on */
    int64_t idle_s, age_s;          /* at least; 0: any */
    bool skip_me;
} clientFilter;

/* Reads the filters from argv[2] on. On failure the error is replied, and `f` holds nothing. */
bool clientFilterParse(ctx *c, bool skip_me, clientFilter *f);
/* Sets the filter on the peer's address alone: the old form of CLIENT KILL. */
void clientFilterAddress(clientFilter *f, slice address);
void clientFilterClear(clientFilter *f);
/* `me` is who asks. Clients that are closing match nothing. */
bool clientFilterMatches(const clientFilter *f, const client *cl, const session *me);

/* What INFO shows of the door, and the door's periodic jobs. */
extern const infoSection netSections[];
extern const tickJob netTicks[];
/* CONFIG RESETSTAT. */
void netResetStats(void);

#endif
