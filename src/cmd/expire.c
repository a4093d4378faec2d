/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands on the expiry time of keys. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/procs.h"
#include "engine/keyspace.h"
#include "engine/reply.h"
#include "store/store.h"

/* ------------------------------------------------------------------ EXPIRE */

enum expireCondition { EXPIRE_NX = 1, EXPIRE_XX = 2, EXPIRE_GT = 4, EXPIRE_LT = 8 };

/* Parses the options after the time. False: the error was replied. */
static bool parseConditions(ctx *c, uint32_t *out) {
    static const struct {
        const char *word;
        uint32_t flag;
    } words[] = {{"nx", EXPIRE_NX}, {"xx", EXPIRE_XX}, {"gt", EXPIRE_GT}, {"lt", EXPIRE_LT}};
    uint32_t given = 0;
    for (int i = 3; i < c->argc; i++) {
        size_t at = 0;
        while (at < COUNT_OF(words) && !ctxArgIs(c, i, words[at].word)) at++;
        if (at == COUNT_OF(words)) {
            replyErrorFormat(c, "ERR Unsupported option %.*s", (int)c->argv[i].len, c->argv[i].ptr);
            return false;
        }
        given |= words[at].flag;
    }
    if (given & EXPIRE_NX && given & ~(uint32_t)EXPIRE_NX) {
        replyError(c, SLICE("ERR NX and XX, GT or LT options at the same time are not compatible"));
        return false;
    }
    if (given & EXPIRE_GT && given & EXPIRE_LT) {
        replyError(c, SLICE("ERR GT and LT options at the same time are not compatible"));
        return false;
    }
    *out = given;
    return true;
}

/* Parses argument 2 as Unix time in ms. False: the error was replied. */
static bool parseTime(ctx *c, int64_t unit_ms, bool relative, int64_t *out) {
    hotCheck(unit_ms == 1 || unit_ms == 1000);
    hotCheck(c->argc >= 3);
    int64_t value;
    if (!ctxArgInt(c, 2, &value)) return false;
    if (numberMul(value, unit_ms, &value) && (!relative || numberAdd(value, c->now_ms, &value))) {
        *out = value;
        return true;
    }
    replyErrorFormat(c, "ERR invalid expire time in '%.*s' command", (int)c->cmd->name.len,
                     c->cmd->name.ptr);
    return false;
}

/* A key without a TTL counts as having an infinite one. */
static bool conditionsHold(uint32_t conditions, int64_t old_ms, int64_t new_ms) {
    bool none = old_ms == OBJECT_NO_EXPIRE;
    if (conditions & EXPIRE_NX && !none) return false;
    if (conditions & EXPIRE_XX && none) return false;
    if (conditions & EXPIRE_GT && (none || new_ms <= old_ms)) return false;
    if (conditions & EXPIRE_LT && !none && new_ms >= old_ms) return false;
    return true;
}

/* Propagates the absolute time that was set, so that replicas and the AOF do not depend on their
 * own clock. */
static void propagateTime(ctx *c, int64_t expire_ms) {
    if (!engineHot.sinks) return;
    char digits[NUMBER_TEXT_MAX];
    slice *words = memNewArray(slice, (size_t)c->argc);
    words[0] = SLICE("PEXPIREAT");
    words[1] = c->argv[1];
    words[2] = sliceMake(digits, numberPrintInt(digits, expire_ms));
    for (int i = 3; i < c->argc; i++) words[i] = c->argv[i];
    ctxPropagateAs(c, c->argc, words);
    memFree(words);
}

/* Common implementation: the four commands differ in the unit and in relative or absolute time. */
static void expire(ctx *c, int64_t unit_ms, bool relative) {
    hotCheck(unit_ms == 1 || unit_ms == 1000);
    uint32_t conditions;
    int64_t expire_ms;
    if (!parseConditions(c, &conditions) || !parseTime(c, unit_ms, relative, &expire_ms)) return;
    robj *o = dbFindHead(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    if (!o || !conditionsHold(conditions, objectExpire(o), expire_ms)) {
        replyInteger(c, 0);
        return;
    }
    if (keyspaceIsPast(c, expire_ms)) {
        keyspaceExpireNow(c, c->argv[1], c->key_hash);
    } else {
        if (expire_ms < 0) expire_ms = 0; /* -1 would mean no expiry */
        dbPlace(c->db, &c->at, objectSetExpire(o, expire_ms));
        if (relative || unit_ms != 1) propagateTime(c, expire_ms);
        ctxKeyChanged(c, c->argv[1], &eventExpire);
    }
    replyInteger(c, 1);
}

/* EXPIRE key seconds [NX|XX|GT|LT]. Reply: 1, or 0 if the key is missing or the condition is not
 * met. The other three use milliseconds or Unix times. A time in the past deletes the key. */
void expireCommand(ctx *c) { expire(c, 1000, true); }
void pexpireCommand(ctx *c) { expire(c, 1, true); }
void expireatCommand(ctx *c) { expire(c, 1000, false); }
void pexpireatCommand(ctx *c) { expire(c, 1, false); }

/* ------------------------------------------------------------------ TTL */

/* Replies the remaining time (`relative`) or the Unix time of expiry; -1 without a TTL, -2 if the
 * key is missing. Seconds are rounded to the nearest. */
static void replyTime(ctx *c, bool in_seconds, bool relative) {
    const robj *o = dbFindQuiet(c->db, c->argv[1], c->key_hash, c->look);
    int64_t time_ms = o ? objectExpire(o) : -2;
    if (!o || time_ms == OBJECT_NO_EXPIRE) {
        replyInteger(c, time_ms);
        return;
    }
    if (relative) time_ms = time_ms > c->now_ms ? time_ms - c->now_ms : 0;
    replyInteger(c, in_seconds ? time_ms / 1000 + (time_ms % 1000 >= 500) : time_ms);
}

/* TTL key. Reply: remaining time in seconds. */
void ttlCommand(ctx *c) { replyTime(c, true, true); }
/* PTTL key. Reply: remaining time in milliseconds. */
void pttlCommand(ctx *c) { replyTime(c, false, true); }
/* EXPIRETIME key. Reply: Unix time in seconds. */
void expiretimeCommand(ctx *c) { replyTime(c, true, false); }
/* PEXPIRETIME key. Reply: Unix time in milliseconds. */
void pexpiretimeCommand(ctx *c) { replyTime(c, false, false); }

/* PERSIST key. Reply: 1, or 0 if the key is missing or has no TTL. */
void persistCommand(ctx *c) {
    hotCheck(c->argc == 2);
    robj *o = dbFindHead(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    bool had_time = o && objectHasExpire(o);
    if (had_time) {
        dbPlace(c->db, &c->at, objectSetExpire(o, OBJECT_NO_EXPIRE));
        ctxKeyChanged(c, c->argv[1], &eventPersist);
    }
    replyInteger(c, had_time);
}
