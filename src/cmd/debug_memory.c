/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEBUG subcommands about memory: the allocator, sizes, buffers of clients. Main thread only. */
#include <string.h>

#include "base/alloc.h"
#include "base/base.h"
#include "base/number.h"
#include "cmd/debug_priv.h"
#include "ds/hashtable.h"
#include "engine/reply.h"
#include "engine/session_report.h"
#include "engine/session.h"
#include "store/store.h"
#include "store/type_hash.h"

/* A robj is its header; expiry time, key and value follow in the same allocation. */
void debugStructsize(ctx *c) {
    str text = STR_EMPTY;
    strAppendFormat(&text, "bits:%zu robj:%zu blob:%zu hashtable:%zu session:%zu",
                    8 * sizeof(void *), sizeof(uint32_t), sizeof(blob), sizeof(hashtable),
                    sizeof(session));
    replyStatus(c, strSlice(&text));
    strFree(&text);
}

static void replyAllocatorError(ctx *c, int error) {
    replyErrorFormat(c, "ERR %s", strerror(error));
}

/* DEBUG MALLCTL key [value]. Reply: the value before the change. */
void debugMallctl(ctx *c) {
    hotCheck(c->argc > 2);
    int64_t set, value;
    bool sets = c->argc == 4;
    if (sets && !ctxArgInt(c, 3, &set)) return;
    str name = strNew(c->argv[2]);
    int error = memControlInt(strText(&name), sets ? &set : NULL, &value);
    strFree(&name);
    if (error) {
        replyAllocatorError(c, error);
    } else {
        replyInteger(c, value);
    }
}

/* DEBUG MALLCTL-STR key. The texts cannot be changed; a value is ignored. */
void debugMallctlStr(ctx *c) {
    hotCheck(c->argc > 2);
    const char *text;
    str name = strNew(c->argv[2]);
    int error = memControlText(strText(&name), &text);
    strFree(&name);
    if (error) {
        replyAllocatorError(c, error);
    } else {
        replyBulkText(c, text);
    }
}

/* DEBUG HASH-SHAPES [key]. Reply: OK, or what is wrong with the counts; the number of the key's
 * shape, 0 for none. */
void debugHashShapes(ctx *c) {
    if (c->argc > 2) {
        const robj *o = debugFind(c);
        if (o) replyInteger(c, objectType(o) == TYPE_HASH ? hashShapeNumber(o) : 0);
        return;
    }
    const char *fault = storeVerifyShapes(keyspaceMain());
    if (fault) {
        replyErrorFormat(c, "ERR %s", fault);
    } else {
        replyOk(c);
    }
}

/* DEBUG REPLYBUFFER PEAK-RESET-TIME|RESIZING value: an idle client has no reply buffer, and those
 * of others are not resized, so only the arguments are checked. */
void debugReplyBuffer(ctx *c) {
    int64_t ms;
    if (ctxArgIs(c, 2, "peak-reset-time")) {
        bool is_word = ctxArgIs(c, 3, "never") || ctxArgIs(c, 3, "reset");
        if (!is_word && !ctxArgInt(c, 3, &ms)) return;
    } else if (!ctxArgIs(c, 2, "resizing")) {
        replyErrorSubcommand(c);
        return;
    }
    replyOk(c);
}

/* DEBUG CLIENT-EVICTION. Reply: the clients by classes of the memory that maxmemory-clients
 * limits. */
void debugClientEviction(ctx *c) {
    str text = STR_EMPTY;
    if (sessionAppendMemoryClasses(&text)) {
        replyVerbatim(c, strSlice(&text), "txt");
    } else {
        replyError(c, SLICE("ERR maxmemory-clients is disabled."));
    }
    strFree(&text);
}
