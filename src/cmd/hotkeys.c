/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HOTKEYS: the most frequently accessed keys, as estimated by engine/hotkeys.c. Main thread
 * only. */
#include "engine/hotkeys.h"

#include "base/base.h"
#include "cmd/hotkeys_priv.h"
#include "cmd/procs.h"
#include "engine/reply.h"

static void replyKey(ctx *c, const hotKey *k, double total) {
    replyMap(c, 5);
    replyBulkText(c, "key");
    replyBulk(c, strSlice(&k->key));
    replyBulkText(c, "db");
    replyInteger(c, k->db_id);
    replyBulkText(c, "requests-per-second");
    replyDouble(c, k->rate);
    replyBulkText(c, "requests-per-second-error");
    replyDouble(c, k->error);
    replyBulkText(c, "percentage");
    replyDouble(c, total > 0 ? 100.0 * k->rate / total : 0);
}

/* The form of Valkey 9.2. */
static void replyWindow(ctx *c) {
    hotCheck(c->argc == 2);
    int count;
    const hotWindowKey *keys = hotkeysWindowRead(&count);
    replyArray(c, count);
    for (int i = 0; i < count; i++) {
        replyMap(c, 3);
        replyBulkText(c, "key");
        replyBulk(c, strSlice(&keys[i].key));
        replyBulkText(c, "db");
        replyInteger(c, keys[i].db_id);
        replyBulkText(c, "qps");
        replyInteger(c, keys[i].rate);
    }
}

/* HOTKEYS GET [COUNT count]. Reply: parameters of the sampling, and the keys, most frequent first;
 * without COUNT what the last window has found, as in Valkey 9.2, if hotkeys-top-k is above 0 or
 * extended-commands is no, else what a session (HOTKEYS START) has measured, if there is one. */
void hotkeysGetCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    int64_t wanted = HOTKEYS_MAX;
    bool extended = ctxHasExtensions(c);
    if (c->argc == 2 && (hotkeysWindowIsOn() || !extended)) {
        replyWindow(c);
        return;
    }
    if (c->argc != 2 && (c->argc != 4 || !extended || !ctxArgIs(c, 2, "count"))) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    if (c->argc == 2 && hotkeysReplySession(c)) return;
    if (c->argc == 4 && !ctxArgInt(c, 3, &wanted)) return;
    if (wanted < 1) {
        replyError(c, SLICE("ERR COUNT must be positive"));
        return;
    }
    int count;
    double total;
    const hotKey *keys = hotkeysRead(&count, &total);
    if (wanted < count) count = (int)wanted;
    replyMap(c, 6);
    replyBulkText(c, "requests-per-sample");
    replyInteger(c, HOTKEYS_SAMPLE);
    replyBulkText(c, "half-life-seconds");
    replyInteger(c, HOTKEYS_HALF_LIFE_S);
    replyBulkText(c, "samples");
    replyInteger(c, (int64_t)hotkeysLooks());
    replyBulkText(c, "since-unix-time-milliseconds");
    replyInteger(c, hotkeysSince());
    replyBulkText(c, "requests-per-second");
    replyDouble(c, total);
    replyBulkText(c, "keys");
    replyArray(c, count);
    for (int i = 0; i < count; i++) replyKey(c, &keys[i], total);
}

/* HOTKEYS RESET. Reply: OK. */
void hotkeysResetCommand(ctx *c) {
    if (!hotkeysForgetSession()) {
        replyError(c, SLICE("ERR hotkey tracking session in progress, stop tracking first"));
        return;
    }
    hotkeysReset();
    hotkeysWindowClear();
    replyOk(c);
}

/* HOTKEYS HELP. Reply: an array of lines. */
void hotkeysHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "GET [COUNT <count>]",
        "    Return the keys most asked for (64 at most), as estimated from a sample of",
        "    the requests: requests per second, by how much that may be too high, and the",
        "    share of all requests in percent. Requests count half after 10 seconds.",
        "    Without COUNT, what the last window has found, if hotkeys-top-k is above 0, or",
        "    what a session has measured, if there is one.",
        "RESET",
        "    Forget what was counted so far, and the session, which must have been stopped.",
        "START METRICS <count> [CPU] [NET] [COUNT <keys>] [DURATION <seconds>]",
        "      [SAMPLE <ratio>] [SLOTS <count> <slot> ...]",
        "    Begin a session that measures the time and traffic of each command, and finds the",
        "    keys (10, 64 at most) that cost most; of one command in <ratio> if given.",
        "STOP",
        "    End the measuring of the session.",
        NULL,
    };
    replyHelp(c, lines);
}
