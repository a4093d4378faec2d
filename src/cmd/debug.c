/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEBUG, for testing the server. Subcommands that inspect the keyspace neither expire keys nor
 * update access times. Main thread only. */
#include <limits.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/glob.h"
#include "base/number.h"
#include "base/random.h"
#include "cmd/cmd.h"
#include "cmd/cmd_priv.h"
#include "cmd/debug_priv.h"
#include "cmd/procs.h"
#include "engine/child.h"
#include "config/config.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "engine/job.h"
#include "engine/keyspace.h"
#include "engine/options.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "engine/session_report.h"
#include "engine/tick.h"
#include "ds/listpack.h"
#include "format/rdb_settings.h"
#include "store/compressed.h"
#include "store/store.h"
#include "store/type_hash.h"

/* ------------------------------------------------------- DEBUG PROTOCOL: one reply of each type */

static void replyString(ctx *c) { replyBulkText(c, "Hello World"); }
static void replySomeInteger(ctx *c) { replyInteger(c, 12345); }
static void replySomeDouble(ctx *c) { replyDouble(c, 3.141); }
static void replyBigNumber(ctx *c) {
    respBigNumber(c->out, c->proto, SLICE("1234567999999999999999999999999999999"));
}

static void replyThreeItems(ctx *c) {
    for (int i = 0; i < 3; i++) replyInteger(c, i);
}

static void replySomeArray(ctx *c) {
    replyArray(c, 3);
    replyThreeItems(c);
}

static void replySomeSet(ctx *c) {
    replySet(c, 3);
    replyThreeItems(c);
}

static void replySomeMap(ctx *c) {
    replyMap(c, 3);
    for (int i = 0; i < 3; i++) {
        replyInteger(c, i);
        replyBool(c, i == 1);
    }
}

static void replySomeAttribute(ctx *c) {
    if (c->proto > 2) {
        respAttribute(c->out, c->proto, 1);
        replyBulkText(c, "key-popularity");
        replyArray(c, 2);
        replyBulkText(c, "key:123");
        replyInteger(c, 90);
    }
    replyBulkText(c, "Some real reply following the attribute");
}

/* A push message sent while a command runs is delivered after its reply. */
static void replySomePush(ctx *c) {
    if (c->proto == 2) {
        replyError(c, SLICE("ERR RESP2 is not supported by this command"));
        return;
    }
    replyBulkText(c, "Some real reply following the push reply");
    sessionDeliver(c->who, DELIVER_PUSH, SLICE(">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n"));
}

static void replyTrue(ctx *c) { replyBool(c, true); }
static void replyFalse(ctx *c) { replyBool(c, false); }
static void replySomeNull(ctx *c) { replyNull(c); }
static void replySomeVerbatim(ctx *c) {
    replyVerbatim(c, SLICE("This is a verbatim\nstring"), "txt");
}

static void debugProtocol(ctx *c) {
    static const struct {
        const char *type;
        commandProc *reply;
    } types[] = {
        {"string", replyString},    {"integer", replySomeInteger},   {"double", replySomeDouble},
        {"bignum", replyBigNumber}, {"null", replySomeNull},         {"array", replySomeArray},
        {"set", replySomeSet},      {"map", replySomeMap},           {"attrib", replySomeAttribute},
        {"push", replySomePush},    {"verbatim", replySomeVerbatim}, {"true", replyTrue},
        {"false", replyFalse},
    };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (!ctxArgIs(c, 2, types[i].type)) continue;
        types[i].reply(c);
        return;
    }
    replyError(c, SLICE("ERR Wrong protocol type name. Please use one of the following: "
                        "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|"
                        "false"));
}

/* ------------------------------------------------------------------ keys and values */

static void debugObject(ctx *c) {
    const robj *o = debugFind(c);
    if (!o) return;
    str text = STR_EMPTY;
    strAppendFormat(&text, "Value at:%p refcount:1 encoding:%s", (const void *)o,
                    objectEncoding(o));
    bool fast = c->argc > 3 && ctxArgIs(c, 3, "fast");
    if (!fast) strAppendFormat(&text, " serializedlength:%zu", rdbValueSize(o));
    strAppendFormat(&text, " lru:%u lru_seconds_idle:%lld", objectLru(o),
                    (long long)storeIdleSeconds(o));
    debugAppendQuicklist(&text, o, fast);
    replyStatus(c, strSlice(&text));
    strFree(&text);
}

static void debugSdslen(ctx *c) {
    const robj *o = debugFind(c);
    if (!o) return;
    if (objectType(o) != TYPE_STRING || objectIsInt(o)) {
        replyError(c, SLICE("ERR Not an sds encoded string."));
        return;
    }
    const blob *b = objectForm(o) == FORM_POINTER ? objectPointer(o) : NULL;
    size_t value_bytes = b ? blobMemory(b) : 0;
    str text = STR_EMPTY;
    strAppendFormat(&text,
                    "key_sds_len:%zu key_sds_avail:0 obj_alloc:%zu val_sds_len:%zu "
                    "val_sds_avail:%zu val_alloc:%zu",
                    objectKey(o).len, objectMemory(o, 0) - value_bytes, objectText(o, NULL).len,
                    b ? b->cap - b->len : 0, value_bytes);
    replyStatus(c, strSlice(&text));
    strFree(&text);
}

static void replyDigest(ctx *c, const digest *d) {
    char hex[DIGEST_HEX];
    digestPrint(d, hex);
    replyStatus(c, sliceMake(hex, sizeof(hex)));
}

static void debugDigest(ctx *c) {
    digest all;
    storeDigest(keyspaceMain(), c->look, &all);
    replyDigest(c, &all);
}

/* A missing key does not contribute to the digest. */
static void debugDigestValue(ctx *c) {
    hotCheck(c->argc >= 2);
    replyArray(c, c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        slice key = c->argv[i];
        const robj *o = dbPeek(c->db, key, storeHash(key));
        digest d = {{0}};
        if (o) objectDigestAt(o, dbId(c->db), c->look, &d);
        replyDigest(c, &d);
    }
}

/* DEBUG is permitted while a dataset is loaded, but its subcommands that change the dataset are
 * not: a key that is in the file as well would make the load fail. True: the error was replied. */
static bool refusedByLoad(ctx *c) {
    if (likely(!engineHot.loading)) return false;
    replyError(c, ERR_LOADING_TEXT);
    return true;
}

/* DEBUG POPULATE count [prefix] [size]: values "value:0" and so on, truncated or zero-padded to
 * `size`. */
static void debugPopulate(ctx *c) {
    hotCheck(c->argc > 2);
    static const char not_positive[] = "ERR value is out of range, must be positive";
    int64_t count, size = 0;
    if (refusedByLoad(c)) return;
    if (!ctxArgIntIn(c, 2, 0, INT64_MAX, &count, not_positive)) return;
    if (c->argc > 4 && !ctxArgIntIn(c, 4, 0, engineBulkMax(), &size, not_positive)) return;
    slice prefix = c->argc > 3 ? c->argv[3] : SLICE("key");
    str key = STR_EMPTY, value = STR_EMPTY;
    for (int64_t i = 0; i < count; i++) {
        strClear(&key);
        strAppendSlice(&key, prefix);
        strAppendFormat(&key, ":%lld", (long long)i);
        uint64_t hash = storeHash(strSlice(&key));
        if (dbFind(c->db, strSlice(&key), hash, c->look, &c->at)) continue;
        strClear(&value);
        strAppendFormat(&value, "value:%lld", (long long)i);
        size_t len = size ? (size_t)size : value.len;
        if (len > value.len) {
            size_t more = len - value.len;
            memset(strReserve(&value, more), 0, more);
            strGrow(&value, more);
        }
        dbSetString(c->db, strSlice(&key), &c->at, NULL, sliceMake(value.ptr, len), NULL,
                    OBJECT_NO_EXPIRE);
        if (engineHot.observers) ctxTellObservers(c, strSlice(&key), NULL);
    }
    strFree(&key);
    strFree(&value);
    replyOk(c);
}

/* ------------------------------------------------------------------ tables */

/* Reports the number of buckets that a lookup reads after the first one as the length of a
 * chain. */
static void appendChains(str *out, const hashtableStats *s) {
    uint64_t longest = 0, sum = 0;
    for (uint64_t i = 0; i < HASHTABLE_PROBES_MAX; i++) {
        if (s->probes[i]) longest = i;
        sum += s->probes[i] * i;
    }
    strAppendFormat(out, " top-level buckets: %llu\n child buckets: 0\n max chain length: %llu\n",
                    (unsigned long long)s->buckets, (unsigned long long)longest);
    strAppendFormat(out, " avg chain length: %f\n chain length distribution:\n",
                    (double)sum / (double)s->count);
    for (int i = 0; i < HASHTABLE_PROBES_MAX; i++) {
        if (!s->probes[i]) continue;
        strAppendFormat(out, "   %d: %llu (%.2f%%)\n", i, (unsigned long long)s->probes[i],
                        100.0 * (double)s->probes[i] / (double)s->count);
    }
}

static void appendTable(str *out, int index, const char *what, uint64_t slots, uint64_t count,
                        int64_t resize_position) {
    hotCheck(index >= 0);
    strAppendFormat(out, "Hash table %d stats (%s):\n table size: %llu\n", index, what,
                    (unsigned long long)slots);
    strAppendFormat(out, " number of entries: %llu\n rehashing index: %lld\n",
                    (unsigned long long)count, (long long)resize_position);
}

/* Volatile keys are entries of the same table: the table of expiry times is reported with no slots
 * and the number of volatile keys. */
static void debugHtstats(ctx *c) {
    hotCheck(c->argc > 2);
    int64_t id;
    if (!ctxArgInt(c, 2, &id)) return;
    if (id < 0 || id >= storeDbCount()) {
        replyError(c, SLICE("ERR Out of range database"));
        return;
    }
    hashtableStats s;
    dbTableStats(storeDb((int)id), &s);
    str text = STR_EMPTY;
    strAppendText(&text, "[Dictionary HT]\n");
    if (s.count) {
        appendTable(&text, 0, "main hash table", s.slots, s.count, s.resize_position);
        if (c->argc > 3 && ctxArgIs(c, 3, "full")) appendChains(&text, &s);
        if (s.resize_slots)
            appendTable(&text, 1, "rehashing target", s.resize_slots, 0, s.resize_position);
    }
    strAppendText(&text, "[Expires HT]\n");
    if (s.volatile_count) appendTable(&text, 0, "main hash table", 0, s.volatile_count, -1);
    replyVerbatim(c, strSlice(&text), "txt");
    strFree(&text);
}

static void debugHtstatsKey(ctx *c) {
    const robj *o = debugFind(c);
    if (!o) return;
    const typeOps *ops = typeOf(o);
    if (objectForm(o) != FORM_POINTER || !ops->table_stats) {
        replyError(c, SLICE("ERR The value stored at the specified key is not represented using an "
                            "hash table"));
        return;
    }
    hashtableStats s;
    ops->table_stats(objectPointer(o), &s);
    str text = STR_EMPTY;
    appendTable(&text, 0, "main hash table", s.slots, s.count, s.resize_position);
    if (c->argc > 3 && ctxArgIs(c, 3, "full")) appendChains(&text, &s);
    replyVerbatim(c, strSlice(&text), "txt");
    strFree(&text);
}

/* Writes the entries of a packed value to the log. */
static void debugListpack(ctx *c) {
    const robj *o = debugFind(c);
    if (!o) return;
    if (objectIsCompressed(o)) o = compressedShow(o);
    bool shaped = objectType(o) == TYPE_HASH && objectIsShaped(o);
    if (objectType(o) == TYPE_STRING || (objectForm(o) != FORM_PACKED && !shaped)) {
        replyError(c, SLICE("ERR Not a listpack encoded object."));
        return;
    }
    const uint8_t *lp = shaped ? (const uint8_t *)hashListpack(o).ptr : objectPacked(o);
    char digits[NUMBER_TEXT_MAX];
    logNotice("DEBUG LISTPACK: %zu bytes, %zu entries", listpackSize(lp), listpackCount(lp));
    for (const uint8_t *at = listpackFirst(lp); at; at = listpackNext(lp, at)) {
        str text = STR_EMPTY;
        if (!engineHidesUserData()) strAppendQuoted(&text, listpackGetText(at, digits));
        logNotice("DEBUG LISTPACK: offset %zu, %zu bytes: %s", (size_t)(at - lp),
                  listpackEntrySize(at), strText(&text));
        strFree(&text);
    }
    replyStatus(c, SLICE("Listpack structure printed on stdout"));
}

/* ------------------------------------------------------------------ toggles */

/* Argument 2 as a boolean, as atoi() does: without a leading non-zero number it is off. */
static bool switchArg(const ctx *c) {
    hotCheck(c->argc > 2);
    str text = strNew(c->argv[2]);
    bool on = strtol(strText(&text), NULL, 10) != 0;
    strFree(&text);
    return on;
}

static void debugSetActiveExpire(ctx *c) {
    keyspaceSetActiveExpire(switchArg(c));
    replyOk(c);
}

static void debugSetDisableDenyScripts(ctx *c) {
    engineSetDeniedInScripts(!switchArg(c));
    replyOk(c);
}

static void debugSetSkipChecksum(ctx *c) {
    rdbSetChecksumSkipped(switchArg(c));
    replyOk(c);
}

/* DEBUG FORCE-TLS-WRITE-ERROR 1|0. */
static void debugForceTlsWriteError(ctx *c) {
    hotCheck(c->argc > 2);
    int64_t on;
    if (!ctxArgIntIn(c, 2, 0, 1, &on, "ERR Value must be 0 or 1")) return;
    if (!engineBlockTlsWrites(on)) {
        replyError(c, SLICE("ERR TLS is not enabled"));
    } else {
        replyOk(c);
    }
}

/* DEBUG RELOAD [NOSAVE] [NOFLUSH] [MERGE]. */
static void debugReload(ctx *c) {
    static const struct {
        const char *word;
        unsigned flag;
    } words[] = {{"nosave", RELOAD_NO_SAVE}, {"noflush", RELOAD_NO_FLUSH}, {"merge", RELOAD_MERGE}};
    unsigned flags = 0;
    if (refusedByLoad(c)) return;
    for (int i = 2; i < c->argc; i++) {
        size_t at = 0;
        while (at < COUNT_OF(words) && !ctxArgIs(c, i, words[at].word)) at++;
        if (at == COUNT_OF(words)) {
            replyError(
                c, SLICE("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."));
            return;
        }
        flags |= words[at].flag;
    }
    reason why;
    if (engineReload(flags, &why) == OK) {
        logWarning("DB reloaded by DEBUG RELOAD");
        replyOk(c);
    } else {
        replyError(c, SLICE("ERR Error trying to load the RDB dump, check server logs."));
    }
}

static void debugAofFlushSleep(ctx *c) {
    hotCheck(c->argc > 2);
    int64_t us;
    if (!numberParseInt(c->argv[2], &us)) {
        replyError(c, ERR_NOT_INTEGER_TEXT);
        return;
    }
    engineSetFlushDelay(us);
    replyOk(c);
}

static void debugLoadAof(ctx *c) {
    reason why;
    if (refusedByLoad(c)) return;
    if (engineReload(RELOAD_AOF, &why) == OK) {
        logWarning("Append Only File loaded by DEBUG LOADAOF");
        replyOk(c);
    } else {
        replyError(c, SLICE("ERR Error trying to load the AOF files, check server logs."));
    }
}

static void debugDictResizing(ctx *c) {
    storeSetResizing(switchArg(c));
    replyOk(c);
}

/* Words of tests that need no action: CLIENT-ENFORCE-REPLY-LIST, because replies are in a list of
 * blocks anyway; HASHTABLE-CAN-ABORT-SHRINK, because a resize is never given up;
 * FORCE-FREE-PRIMARY-ASYNC, because all clients are freed at the end of a turn. */
static void debugNothing(ctx *c) { replyOk(c); }

/* DEBUG PROTECT-CLIENT id: all clients are freed at the end of a turn anyway, so only the id is
 * checked. */
static void debugProtectClient(ctx *c) {
    hotCheck(c->argc > 2);
    int64_t id;
    if (!numberParseInt(c->argv[2], &id)) {
        replyError(c, SLICE("ERR Invalid client id"));
    } else if (id < 0 || !sessionFindById((uint64_t)id)) {
        replyError(c, SLICE("ERR No such client"));
    } else {
        replyOk(c);
    }
}

static int sleepInChild(void *us) {
    hotCheck(*(const int64_t *)us >= 0);
    clockSleepUs(*(const int64_t *)us);
    return 0;
}

/* Forks a child that shares our pages and only sleeps: the effect of a save on the server. */
static void debugChild(ctx *c) {
    hotCheck(c->argc > 2);
    double seconds;
    reason why;
    if (!ctxArgDouble(c, 2, &seconds)) return;
    childKill();
    int64_t us = (int64_t)(seconds < 0 ? 0 : seconds > 1e6 ? 1e12 : seconds * 1e6);
    if (us &&
        childStart(&(childJob){.kind = CHILD_TEST, .run = sleepInChild, .arg = &us}, &why) != OK) {
        replyErrorFormat(c, "ERR %s", why.text);
        return;
    }
    replyOk(c);
}

/* DEBUG BIO-DRAIN, as in Valkey 9.2. */
static void debugBioDrain(ctx *c) {
    engineDrainJobs();
    replyOk(c);
}

static void debugPauseCron(ctx *c) {
    ticksSetPaused(switchArg(c));
    replyOk(c);
}

static void debugPauseJobs(ctx *c) {
    jobSetPaused(switchArg(c));
    replyOk(c);
}

/* ------------------------------------------------------------------ DEBUG, other subcommands */

static const char *const debug_help[] = {
    "AOF-FLUSH-SLEEP <microsec>",
    "    Server will sleep before flushing the AOF, this is used for testing.",
    "ASSERT",
    "    Crash by assertion failed.",
    "CHANGE-REPL-ID",
    "    Change the replication IDs of the instance.",
    "    Dangerous: should be used only for testing the replication subsystem.",
    "CONFIG-REWRITE-FORCE-ALL",
    "    Like CONFIG REWRITE but writes all configuration options, including",
    "    keywords not listed in original configuration file or default values.",
    "CRASH-AND-RECOVER [<milliseconds>]",
    "    Hard crash and restart after a <milliseconds> delay (default 0).",
    "DIGEST",
    "    Output a hex signature representing the current DB content.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Output a hex signature of the values of all the specified keys.",
    "ERROR <string>",
    "    Return a RESP protocol error with <string> as message. Useful for clients",
    "    unit tests to simulate error replies.",
    "LEAK <string>",
    "    Create a memory leak of the input string.",
    "LOG <message>",
    "    Write <message> to the server log.",
    "HTSTATS <dbid> [full]",
    "    Return hash table statistics of the specified database.",
    "HTSTATS-KEY <key> [full]",
    "    Like HTSTATS but for the hash table stored at <key>'s value.",
    "LOADAOF",
    "    Flush the AOF buffers on disk and reload the AOF in memory.",
    "REPLICATE <word> [<word> ...]",
    "    Send the words to the replicas as one command, without running it.",
    "MALLCTL <key> [<val>]",
    "    Get or set a malloc tuning integer.",
    "MALLCTL-STR <key> [<val>]",
    "    Get or set a malloc tuning string.",
    "OBJECT <key> [fast]",
    "    Show low level info about `key` and associated value.",
    "    Some fields of the default behavior may be time consuming to fetch,",
    "    and `fast` can be passed to avoid fetching them.",
    "DROP-CLUSTER-PACKET-FILTER <packet-type>",
    "    Drop all packets that match the filtered type. Set to -1 allow all packets or -2 to "
    "drop all packets.",
    "CLOSE-CLUSTER-LINK-ON-PACKET-DROP <0|1>",
    "    This is valid only when DROP-CLUSTER-PACKET-FILTER is set to a valid packet type.",
    "    When set to 1, the cluster link is closed after dropping a packet based on the filter.",
    "CLUSTER-REPLICA-PRIORITY <node-id>",
    "    Show the cluster-replica-priority of a node, as far as this node knows it.",
    "DISABLE-CLUSTER-RANDOM-PING <0|1>",
    "    Disable sending cluster ping to a random node every second.",
    "DISABLE-CLUSTER-RECONNECTION <0|1>",
    "    Disable cluster reconnection of cluster nodes.",
    "OOM",
    "    Crash the server simulating an out-of-memory error.",
    "PANIC",
    "    Crash the server simulating a panic.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Create <count> string keys named key:<num>. If <prefix> is specified then",
    "    it is used instead of the 'key' prefix. These are not propagated to",
    "    replicas. Cluster slots are not respected so keys not belonging to the",
    "    current node can be created in cluster mode.",
    "PROTOCOL <type>",
    "    Reply with a test value of the specified type. <type> can be: string,",
    "    integer, double, bignum, null, array, set, map, attrib, push, verbatim,",
    "    true, false.",
    "RELOAD [option ...]",
    "    Save the RDB on disk and reload it back to memory. Valid <option> values:",
    "    * MERGE: conflicting keys will be loaded from RDB.",
    "    * NOFLUSH: the existing database will not be removed before load, but",
    "      conflicting keys will generate an exception and kill the server.",
    "    * NOSAVE: the database will be loaded from an existing RDB file.",
    "    Examples:",
    "    * DEBUG RELOAD: verify that the server is able to persist, flush and reload",
    "      the database.",
    "    * DEBUG RELOAD NOSAVE: replace the current database with the contents of an",
    "      existing RDB file.",
    "    * DEBUG RELOAD NOSAVE NOFLUSH MERGE: add the contents of an existing RDB",
    "      file to the database.",
    "RESTART [<milliseconds>]",
    "    Graceful restart: stop, restart after a <milliseconds> delay (default 0).",
    "SDSLEN <key>",
    "    Show low level SDS string info representing `key` and value.",
    "SEGFAULT",
    "    Crash the server with sigsegv.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Setting it to 0 disables expiring keys in background when they are not",
    "    accessed (otherwise the behavior). Setting it to 1 reenables back the",
    "    default.",
    "QUICKLIST-PACKED-THRESHOLD <size>",
    "    Sets the threshold for elements to be inserted as plain vs packed nodes",
    "    Default value is 1GB, allows values up to 4GB. Setting to 0 restores to default.",
    "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
    "    Enables or disables checksum checks for RDB files and RESTORE's payload.",
    "SLEEP <seconds>",
    "    Stop the server for <seconds>. Decimals allowed.",
    "STRINGMATCH-TEST",
    "    Run a fuzz tester against the stringmatchlen() function.",
    "STRUCTSIZE",
    "    Return the size of different core C structures.",
    "LISTPACK <key>",
    "    Show low level info about the listpack encoding of <key>.",
    "QUICKLIST <key> [<0|1>]",
    "    Show low level info about the quicklist encoding of <key>.",
    "    The optional argument (0 by default) sets the level of detail",
    "CLIENT-EVICTION",
    "    Show low level client eviction pools info (maxmemory-clients).",
    "BIO-DRAIN",
    "    Wait for the jobs of background threads.",
    "PAUSE-CRON <0|1>",
    "    Stop periodic cron job processing.",
    "PAUSE-JOBS <0|1>",
    "    Commands that run in slices stay where they are after the first slice.",
    "REPLYBUFFER PEAK-RESET-TIME <NEVER|RESET|time>",
    "REPLYBUFFER RESIZING <0|1>",
    "    Accepted for tests: reply buffers are not resized.",
    "PAUSE-AFTER-FORK <0|1>",
    "    Stop the server with SIGSTOP after it has forked a child for replicas.",
    "DELAY-RDB-CLIENT-FREE-SECONDS <seconds>",
    "    Grace period in seconds for replica main channel to establish psync.",
    "DICT-RESIZING <0|1>",
    "    Enable or disable the main dict and expire dict resizing.",
    "HASHTABLE-CAN-ABORT-SHRINK <0|1>",
    "    Accepted for tests: a resize of a table is never given up.",
    "CLIENT-ENFORCE-REPLY-LIST <0|1>",
    "    When set to 1, it enforces the use of the client reply list directly",
    "    and avoids using the client's static buffer.",
    "HOLD-CLUSTER-CONFIG-SAVES <0|1>",
    "    When set to 1, saves of the cluster configuration file that no client waits for do not begin.",
    "SLOTMIGRATION PREVENT-PAUSE <0|1>",
    "    When set to 1, slot migrations will be prevented from pausing on the source node.",
    "SLOTMIGRATION PREVENT-FAILOVER <0|1>",
    "    When set to 1, slot migrations will be prevented from performing the slot-level "
    "failover on the target node.",
    "FORCE-FREE-PRIMARY-ASYNC <0|1>",
    "    Accepted for tests: the client of the primary is always freed later.",
    "PROTECT-CLIENT <id>",
    "    Accepted for tests: clients are always freed at the end of a turn.",
    "FORCE-TLS-WRITE-ERROR <0|1>",
    "    Force TLS write error for testing.",
    "CLUSTERLINK KILL <to|from|all> <node-id>",
    "    Kills the link based on the direction to/from (both) with the provided node.",
    "CHILD <seconds>",
    "    Fork a child process that lives for <seconds>, like a child that saves.",
    "    0 ends the one that lives.",
    "COMPRESS <key>",
    "    Compress the string of <key> in memory now; 1 if it is compressed then.",
    "COMPRESSED <key>",
    "    Show the number of the dictionary that <key> is compressed with, or 0.",
    "VALUE-DICTIONARY <prefix> <text>",
    "    Make a dictionary of <text> for the keys of this database with <prefix>.",
    "HASH-SHAPES [<key>]",
    "    Check the number of hashes of each shape, or show the number of <key>'s shape.",
    NULL,
};

static void debugConfigRewrite(ctx *c) {
    reason why = {""};
    if (configRewrite(CONFIG_REWRITE_ALL, &why) == OK) {
        replyOk(c);
    } else {
        replyErrorFormat(c, "ERR CONFIG-REWRITE-FORCE-ALL failed: %s", why.text);
    }
}

static void debugHelp(ctx *c) { replyHelp(c, debug_help); }

/* The text is the complete error including its code; it is not counted as an error reply. */
static void debugError(ctx *c) { respError(c->out, c->argv[2]); }

static void debugLog(ctx *c) {
    hotCheck(c->argc > 2);
    logWarning("DEBUG LOG: %.*s", (int)c->argv[2].len, c->argv[2].ptr);
    replyOk(c);
}

/* Sleeps for the number of seconds at the start of the argument; 0 if there is none. */
static void debugSleep(ctx *c) {
    hotCheck(c->argc > 2);
    const double longest_s = 1e9;
    str text = strNew(c->argv[2]);
    double seconds = strtod(strText(&text), NULL);
    strFree(&text);
    if (seconds > 0) clockSleepUs((int64_t)((seconds < longest_s ? seconds : longest_s) * 1e6));
    replyOk(c);
}

/* Matches random patterns with random texts. */
static void debugStringmatchTest(ctx *c) {
    enum { ROUNDS = 100000, LEN_MAX = 32 };
    static const char bytes[] = "ab*?[]^-\\!";
    char text[2][LEN_MAX];
    for (int round = 0; round < ROUNDS; round++) {
        size_t len[2];
        for (int k = 0; k < 2; k++) {
            len[k] = (size_t)randomUniform(LEN_MAX);
            for (size_t i = 0; i < len[k]; i++) text[k][i] = bytes[randomUniform(sizeof(bytes))];
        }
        (void)globMatch(sliceMake(text[0], len[0]),
                        sliceMake(text[1], len[1])); /* must not crash */
    }
    replyStatus(c, SLICE("Apparently the server did not crash: test passed"));
}

/* ------------------------------------------------------------------ the gate */

static bool isDebug(const commandSpec *spec) { return spec->proc == debugCommand; }

static gateVerdict checkDebugAllowed(ctx *c) {
    return optionsCheckRestricted(c, RESTRICTED_DEBUG, "DEBUG", "enable-debug-command");
}

const gate debugGate = {.name = "debug", .selects = isDebug, .admit = checkDebugAllowed};

static const struct {
    const char *word;
    int argc_min, argc_max;
    commandProc *run;
} debug_words[] = {
    {"help", 2, 2, debugHelp},
    {"assert", 2, INT_MAX, debugAssert},
    {"child", 3, 3, debugChild},
    {"change-repl-id", 2, 2, debugChangeReplId},
    {"config-rewrite-force-all", 2, 2, debugConfigRewrite},
    {"client-eviction", 2, 2, debugClientEviction},
    {"hashtable-can-abort-shrink", 3, 3, debugNothing},
    {"protect-client", 3, 3, debugProtectClient},
    {"client-enforce-reply-list", 3, 3, debugNothing},
    {"compress", 3, 3, debugCompress},
    {"compressed", 3, 3, debugCompressed},
    {"value-dictionary", 4, 4, debugValueDictionary},
    {"crash-and-recover", 2, INT_MAX, debugCrashAndRecover},
    {"dict-resizing", 3, 3, debugDictResizing},
    {"digest", 2, 2, debugDigest},
    {"digest-value", 2, INT_MAX, debugDigestValue},
    {"error", 3, 3, debugError},
    {"hash-shapes", 2, 3, debugHashShapes},
    {"htstats", 3, INT_MAX, debugHtstats},
    {"htstats-key", 3, INT_MAX, debugHtstatsKey},
    {"leak", 3, 3, debugLeak},
    {"listpack", 3, 3, debugListpack},
    {"force-tls-write-error", 3, 3, debugForceTlsWriteError},
    {"force-free-primary-async", 3, 3, debugNothing},
    {"log", 3, 3, debugLog},
    {"mallctl", 3, 4, debugMallctl},
    {"mallctl-str", 3, 4, debugMallctlStr},
    {"quicklist", 3, 4, debugQuicklist},
    {"quicklist-packed-threshold", 3, 3, debugQuicklistPackedThreshold},
    {"object", 3, 4, debugObject},
    {"oom", 2, INT_MAX, debugOom},
    {"panic", 2, INT_MAX, debugPanic},
    {"delay-rdb-client-free-seconds", 3, 3, debugDelayRdbClientFree},
    {"pause-after-fork", 3, 3, debugPauseAfterFork},
    {"replicate", 3, INT_MAX, debugReplicate},
    {"drop-cluster-packet-filter", 3, 3, debugDropClusterPackets},
    {"close-cluster-link-on-packet-drop", 3, 3, debugCloseClusterLink},
    {"disable-cluster-reconnection", 3, 3, debugDisableClusterReconnection},
    {"disable-cluster-random-ping", 3, 3, debugDisableClusterPing},
    {"clusterlink", 5, 5, debugClusterLink},
    {"cluster-replica-priority", 3, 3, debugClusterReplicaPriority},
    {"hold-cluster-config-saves", 3, 3, debugHoldClusterConfigSaves},
    {"slotmigration", 4, 4, debugSlotMigration},
    {"replybuffer", 4, 4, debugReplyBuffer},
    {"pause-cron", 3, 3, debugPauseCron},
    {"pause-jobs", 3, 3, debugPauseJobs},
    {"bio-drain", 2, 2, debugBioDrain},
    {"populate", 3, 5, debugPopulate},
    {"protocol", 3, 3, debugProtocol},
    {"reload", 2, INT_MAX, debugReload},
    {"loadaof", 2, 2, debugLoadAof},
    {"aof-flush-sleep", 3, 3, debugAofFlushSleep},
    {"restart", 2, INT_MAX, debugRestart},
    {"segfault", 2, INT_MAX, debugSegfault},
    {"sdslen", 3, 3, debugSdslen},
    {"set-active-expire", 3, 3, debugSetActiveExpire},
    {"set-disable-deny-scripts", 3, 3, debugSetDisableDenyScripts},
    {"set-skip-checksum-validation", 3, 3, debugSetSkipChecksum},
    {"sleep", 3, 3, debugSleep},
    {"structsize", 2, 2, debugStructsize},
    {"stringmatch-test", 2, 2, debugStringmatchTest},
};

/* DEBUG subcommand [argument]. Not a container command: its subcommands have no specs. */
void debugCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    for (size_t i = 0; i < COUNT_OF(debug_words); i++) {
        if (!ctxArgIs(c, 1, debug_words[i].word)) continue;
        if (c->argc < debug_words[i].argc_min || c->argc > debug_words[i].argc_max) break;
        if (debug_words[i].run != debugPauseJobs) (void)jobEndChanges(); /* most look at keys */
        debug_words[i].run(c);
        return;
    }
    replyErrorSubcommand(c);
}
