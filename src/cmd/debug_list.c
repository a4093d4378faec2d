/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEBUG subcommands for quicklists. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/debug_priv.h"
#include "engine/options.h"
#include "engine/reply.h"
#include "store/type_list.h"

void debugAppendQuicklist(str *text, const robj *o, bool fast) {
    const quicklist *q = objectType(o) == TYPE_LIST ? listQuicklist(o) : NULL;
    if (!q) return;
    quicklistStats stats;
    quicklistGetStats(q, &stats);
    strAppendFormat(text, " ql_nodes:%zu ql_avg_node:%.2f ql_listpack_max:%d ql_compressed:%d",
                    stats.nodes, (double)quicklistCount(q) / (double)stats.nodes, stats.fill,
                    stats.depth != 0);
    if (!fast) strAppendFormat(text, " ql_uncompressed_size:%zu", stats.packed_bytes);
}

static void logNode(void *arg, const quicklistNodeView *node) {
    logNotice("DEBUG QUICKLIST: %s node, %zu entries, %zu bytes%s, block of %zu",
              node->plain ? "plain" : "packed", node->entries, node->bytes,
              node->compressed ? " compressed" : "", node->block_bytes);
    const bool *entries = arg;
    if (!*entries || !node->listpack || engineHidesUserData()) return;
    char digits[NUMBER_TEXT_MAX];
    const uint8_t *lp = node->listpack;
    for (const uint8_t *at = listpackFirst(lp); at; at = listpackNext(lp, at)) {
        str text = STR_EMPTY;
        strAppendQuoted(&text, listpackGetText(at, digits));
        logNotice("DEBUG QUICKLIST:   %s", strText(&text));
        strFree(&text);
    }
}

/* DEBUG QUICKLIST key [0|1]: logs the nodes, with their entries if 1. */
void debugQuicklist(ctx *c) {
    const robj *o = debugFind(c);
    if (!o) return;
    const quicklist *q = objectType(o) == TYPE_LIST ? listQuicklist(o) : NULL;
    if (!q) {
        replyError(c, SLICE("ERR Not a quicklist encoded object."));
        return;
    }
    bool entries = c->argc > 3 && ctxArgIs(c, 3, "1");
    quicklistEachNode(q, logNode, &entries);
    replyStatus(c, SLICE("Quicklist structure printed on stdout"));
}

void debugQuicklistPackedThreshold(ctx *c) {
    hotCheck(c->argc > 2);
    uint64_t bytes;
    if (!numberParseMemory(c->argv[2], &bytes) || bytes >= UINT32_MAX) {
        replyError(c,
                   SLICE("ERR argument must be a memory value bigger than 1 and smaller than 4gb"));
        return;
    }
    quicklistSetPlainFrom((size_t)bytes);
    replyOk(c);
}
