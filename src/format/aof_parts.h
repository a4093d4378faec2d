/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A large value as commands, one part after the other, as the store passes it on (store/saving.h).
 * A command is written only when it is complete, so that commands about other keys may be written
 * between two calls. Main thread. */
#ifndef FORMAT_AOF_PARTS_H
#define FORMAT_AOF_PARTS_H

#include <stdbool.h>

#include "base/str.h"
#include "format/aof_stream.h"
#include "format/rdb_writer.h"
#include "store/saving.h"

typedef struct aofParts {
    str key;   /* of the value being written */
    str items; /* words of the next command, encoded */
    int words; /* their number */
    int type;  /* of the value */
    int db_id; /* of the value */
    int64_t expire_ms;
    str text; /* of a compressed node */
    aofStreamRest rest;
} aofParts;

/* True for values of this type: tables of elements, path hashes, lists and streams. */
bool aofPartsCan(const robj *o);
void aofPartsBegin(aofParts *p, const savedValue *value);
void aofPartsElement(aofParts *p, rdbWriter *w, const valueElement *element);
void aofPartsNode(aofParts *p, rdbWriter *w, const quicklistNodeView *node);
void aofPartsStreamNode(aofParts *p, rdbWriter *w, streamId first, const streamNode *node);
/* Counters and groups, about `count` of them in a call; false at the end. */
bool aofPartsStreamRest(aofParts *p, rdbWriter *w, const stream *rest, uint64_t count);
/* Writes the rest and the expiry time. */
void aofPartsEnd(aofParts *p, rdbWriter *w);
void aofPartsClear(aofParts *p);

#endif
