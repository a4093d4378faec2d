/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --scan, and the walk over all keys for the modes that sample them (scan.h). */
#include "tools/cli/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "tools/cli/modes.h"

static slice patternOf(const cliOptions *o) {
    size_t len = o->pattern_len >= 0 ? (size_t)o->pattern_len : strlen(o->pattern);
    return sliceMake(o->pattern, len);
}

static valkeyReply *scanPage(connection *c, uint64_t cursor) {
    const cliOptions *o = c->options;
    valkeyReply *reply;
    if (o->pattern) {
        slice pattern = patternOf(o);
        reply = connectionCommand(c, "SCAN %" PRIu64 " MATCH %b COUNT %" PRId64, cursor,
                                  pattern.ptr, pattern.len, o->count);
    } else if (o->count != 10) {
        reply = connectionCommand(c, "SCAN %" PRIu64 " COUNT %" PRId64, cursor, o->count);
    } else {
        reply = connectionCommand(c, "SCAN %" PRIu64, cursor);
    }
    if (reply->type == VALKEY_REPLY_ERROR) {
        fprintf(stderr, "SCAN error: %s\n", reply->str);
        exit(1);
    }
    if (reply->type != VALKEY_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[1]->type != VALKEY_REPLY_ARRAY) {
        fputs("Invalid reply of SCAN\n", stderr);
        exit(1);
    }
    return reply;
}

void scanKeys(connection *c, scanPageProc *page, void *arg) {
    uint64_t cursor = 0;
    do {
        valkeyReply *reply = scanPage(c, cursor);
        cursor = strtoull(reply->element[0]->str, NULL, 10);
        bool more = page(c, reply->element[1], arg);
        freeReplyObject(reply);
        if (!more) return;
    } while (cursor != 0);
}

static bool printPage(connection *c, const valkeyReply *keys, void *arg) {
    (void)arg;
    const cliOptions *o = c->options;
    str out = STR_EMPTY;
    for (size_t i = 0; i < keys->elements; i++) {
        slice key = sliceMake(keys->element[i]->str, keys->element[i]->len);
        if (o->output == OUTPUT_STANDARD) {
            strAppendQuoted(&out, key);
        } else {
            strAppendSlice(&out, key);
        }
        strAppendByte(&out, '\n');
    }
    fwrite(strText(&out), 1, out.len, stdout);
    strFree(&out);
    if (o->interval_us > 0) {
        fflush(stdout);
        clockSleepUs(o->interval_us);
    }
    return true;
}

int modeScan(connection *c) {
    if (!connectionConnect(c)) return 1;
    scanKeys(c, printPage, NULL);
    return 0;
}
