/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --diff (modes.h): compares two servers key by key, by value and all TTLs. Walks the keys of the
 * first server, then looks for those of the second that the first has not. Keys that differ are
 * compared again before they are reported, as a replica may be a moment behind. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "tools/cli/diff_priv.h"
#include "tools/cli/info.h"
#include "tools/cli/modes.h"
#include "tools/cli/reply_map.h"
#include "tools/cli/scan.h"

enum {
    PAGE = 500,           /* keys compared at once */
    SHOWN_MAX = 100,      /* differences that are printed without --verbose */
    RECHECKS = 3,         /* how often a key that differs is compared again */
    RECHECKED_MAX = 2000, /* keys that are: beyond, the servers are not copies of each other */
    RECHECK_AFTER_US = 200 * 1000,
};

typedef struct diffJob {
    const cliOptions *options;
    diffSide sides[DIFF_SIDES];
    int db[DIFF_SIDES]; /* selected */
    uint64_t verdicts[DIFF_VERDICTS], reported, rechecked, done;
    uint64_t libraries; /* of functions, that differ */
    bool second_only;   /* the second walk: keys that both have were compared */
    jobProgress progress;
} diffJob;

/* ------------------------------------------------------------------ the two servers */

static bool answers(connection *c, const char *command) {
    valkeyReply *reply = connectionCommand(c, command);
    bool known = reply->type != VALKEY_REPLY_ERROR;
    freeReplyObject(reply);
    return known;
}

static bool openSide(diffSide *side, const cliOptions *options, const char *uri) {
    side->uri = uri;
    cliOptionsForUri(&side->options, options, uri);
    connectionInit(&side->link, &side->options);
    if (side->link.db < 0) side->link.db = 0;
    if (!connectionConnect(&side->link)) return false;
    /* A replica in a cluster serves reads only after this; others refuse it, or do not mind. */
    (void)answers(&side->link, "READONLY");
    side->has_expiretime = answers(&side->link, "PEXPIRETIME valkey-cli:diff");
    side->has_field_expiry = answers(&side->link, "HPEXPIRETIME valkey-cli:diff FIELDS 1 f");
    side->has_member_expiry = answers(&side->link, "SPEXPIRETIME valkey-cli:diff MEMBERS 1 m");
    return true;
}

/* Selects a database; notes if it has values whose fields or members expire. */
static void selectDb(diffJob *job, int s, int db) {
    diffSide *side = &job->sides[s];
    job->db[s] = db;
    if (side->link.server_db != db)
        freeReplyObject(connectionRequire(&side->link, "SELECT", "SELECT %d", db));
    side->link.server_db = db;
    valkeyReply *info = connectionRequireText(&side->link, "INFO", "INFO keyspace");
    const char *at = info->str;
    side->has_volatile_items = false;
    for (infoDatabase d; infoNextDatabase(&at, &d);)
        side->has_volatile_items |= d.id == db && d.volatile_items > 0;
    freeReplyObject(info);
}

/* ------------------------------------------------------------------ reporting */

static const char *const verdict_names[DIFF_VERDICTS] = {
    [DIFF_EQUAL] = "equal",
    [DIFF_ONLY_FIRST] = "only in the first",
    [DIFF_ONLY_SECOND] = "only in the second",
    [DIFF_TYPE] = "type",
    [DIFF_VALUE] = "value",
    [DIFF_TTL] = "TTL",
    [DIFF_FIELD_TTL] = "TTL of a field",
    [DIFF_MEMBER_TTL] = "TTL of a member",
    [DIFF_NOT_COMPARED] = "not compared: values of modules",
    [DIFF_NOT_SERVED] = "not compared: of another node",
};

static bool isDifference(diffVerdict verdict) {
    return verdict >= DIFF_ONLY_FIRST && verdict <= DIFF_MEMBER_TTL;
}

static void report(diffJob *job, const diffKey *key) {
    if (job->reported++ >= SHOWN_MAX && !job->options->verbose) return;
    str line = STR_EMPTY;
    strAppendFormat(&line, "db %d ", job->db[0]);
    strAppendQuoted(&line, key->name);
    strAppendFormat(&line, ": %s", verdict_names[key->verdict]);
    if (key->why.len) strAppendFormat(&line, ": %s", strText(&key->why));
    jobProgressHide(&job->progress);
    puts(strText(&line));
    strFree(&line);
}

/* Moves the keys that differ to the front. Returns their number. */
static size_t differentFirst(diffKey *keys, size_t count) {
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isDifference(keys[i].verdict)) continue;
        diffKey other = keys[left];
        keys[left++] = keys[i];
        keys[i] = other;
    }
    return left;
}

static void compare(diffJob *job, diffKey *keys, size_t count) {
    diffCompareKeys(job->sides, keys, count);
    size_t different = differentFirst(keys, count);
    for (int i = 0; i < RECHECKS && different && job->rechecked < RECHECKED_MAX; i++) {
        job->rechecked += different;
        clockSleepUs(RECHECK_AFTER_US);
        diffCompareKeys(job->sides, keys, different);
        different = differentFirst(keys, different);
    }
    for (size_t i = 0; i < count; i++) {
        if (isDifference(keys[i].verdict)) report(job, &keys[i]);
        job->verdicts[keys[i].verdict]++;
        strFree(&keys[i].why);
    }
}

/* ------------------------------------------------------------------ walking */

/* Removes the keys that the first server has. Returns the number of those left. */
static size_t dropKnown(diffJob *job, diffKey *keys, size_t count) {
    connection *first = &job->sides[0].link;
    for (size_t i = 0; i < count; i++)
        connectionQueue(first, "EXISTS %b", keys[i].name.ptr, keys[i].name.len);
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        valkeyReply *reply = connectionNext(first);
        bool known = reply->type == VALKEY_REPLY_INTEGER && reply->integer;
        if (!known) keys[left++] = keys[i];
        freeReplyObject(reply);
    }
    return left;
}

static void takeNames(diffJob *job, valkeyReply *const *names, size_t count) {
    diffKey *keys = memCalloc(count + 1, sizeof(*keys));
    for (size_t i = 0; i < count; i++) keys[i].name = sliceMake(names[i]->str, names[i]->len);
    size_t left = job->second_only ? dropKnown(job, keys, count) : count;
    compare(job, keys, left);
    memFree(keys);
    job->done += count;
    jobProgressAt(&job->progress, job->done);
}

static bool takePage(connection *c, const valkeyReply *names, void *arg) {
    (void)c;
    diffJob *job = arg;
    for (size_t at = 0; at < names->elements; at += PAGE) {
        size_t left = names->elements - at;
        takeNames(job, names->element + at, left < PAGE ? left : PAGE);
    }
    if (job->options->interval_us > 0) clockSleepUs(job->options->interval_us);
    return true;
}

/* Compares random keys of a server. */
static void sample(diffJob *job, int s) {
    connection *c = &job->sides[s].link;
    for (int64_t left = job->options->diff_sample; left > 0; left -= PAGE) {
        size_t asked = left < PAGE ? (size_t)left : PAGE, count = 0;
        valkeyReply *names[PAGE];
        for (size_t i = 0; i < asked; i++) connectionQueue(c, "RANDOMKEY");
        for (size_t i = 0; i < asked; i++) {
            valkeyReply *reply = connectionNext(c);
            if (reply->type == VALKEY_REPLY_STRING) {
                names[count++] = reply;
            } else {
                freeReplyObject(reply); /* the database is empty */
            }
        }
        takeNames(job, names, count);
        for (size_t i = 0; i < count; i++) freeReplyObject(names[i]);
    }
}

static void compareDatabases(diffJob *job, int first, int second) {
    selectDb(job, 0, first);
    selectDb(job, 1, second);
    for (int s = 0; s < DIFF_SIDES; s++) {
        job->second_only = s == 1;
        if (job->options->diff_sample > 0) {
            sample(job, s);
        } else {
            scanKeys(&job->sides[s].link, takePage, job);
        }
    }
}

/* The next database after `db` with keys on a side; -1: none. */
static int nextDatabase(diffJob *job, int db) {
    int next = -1;
    for (int s = 0; s < DIFF_SIDES; s++) {
        valkeyReply *info = connectionRequireText(&job->sides[s].link, "INFO", "INFO keyspace");
        const char *at = info->str;
        for (infoDatabase d; infoNextDatabase(&at, &d);) {
            if (d.id > db && (next < 0 || d.id < next)) next = d.id;
        }
        freeReplyObject(info);
    }
    return next;
}

static uint64_t totalKeys(diffJob *job) {
    uint64_t total = 0;
    for (int s = 0; s < DIFF_SIDES; s++) {
        valkeyReply *info = connectionRequireText(&job->sides[s].link, "INFO", "INFO keyspace");
        total += (uint64_t)infoKeys(info->str);
        freeReplyObject(info);
    }
    return total;
}

static void walk(diffJob *job) {
    int first = job->sides[0].options.db, second = job->sides[1].options.db;
    bool named = first >= 0 || second >= 0; /* by a URI */
    if (named) {
        compareDatabases(job, first < 0 ? 0 : first, second < 0 ? 0 : second);
        return;
    }
    for (int db = -1; (db = nextDatabase(job, db)) >= 0;) compareDatabases(job, db, db);
}

/* ------------------------------------------------------------------ functions */

static const valkeyReply *findLibrary(const valkeyReply *libraries, slice name) {
    for (size_t i = 0; i < libraries->elements; i++) {
        if (sliceEqual(replyMapSlice(libraries->element[i], "library_name"), name))
            return libraries->element[i];
    }
    return NULL;
}

/* Prints the libraries of a server that the other one lacks; for the first server also those with
 * another code. */
static void compareLibraries(diffJob *job, const valkeyReply *libraries, const valkeyReply *others,
                             diffVerdict missing) {
    for (size_t i = 0; i < libraries->elements; i++) {
        const valkeyReply *library = libraries->element[i];
        slice name = replyMapSlice(library, "library_name");
        const valkeyReply *other = findLibrary(others, name);
        bool differs = other && missing == DIFF_ONLY_FIRST &&
                       !sliceEqual(replyMapSlice(library, "library_code"),
                                   replyMapSlice(other, "library_code"));
        if (other && !differs) continue;
        printf("function library %.*s: %s\n", (int)name.len, name.ptr,
               verdict_names[differs ? DIFF_VALUE : missing]);
        job->libraries++;
    }
}

static void compareFunctions(diffJob *job) {
    valkeyReply *reply[DIFF_SIDES];
    for (int s = 0; s < DIFF_SIDES; s++)
        reply[s] = connectionCommand(&job->sides[s].link, "FUNCTION LIST WITHCODE");
    /* Not all versions have functions, and not all users may see them. */
    if (reply[0]->type == VALKEY_REPLY_ARRAY && reply[1]->type == VALKEY_REPLY_ARRAY) {
        compareLibraries(job, reply[0], reply[1], DIFF_ONLY_FIRST);
        compareLibraries(job, reply[1], reply[0], DIFF_ONLY_SECOND);
    }
    for (int s = 0; s < DIFF_SIDES; s++) freeReplyObject(reply[s]);
}

/* Returns the exit status. */
static int summarize(const diffJob *job) {
    uint64_t compared = 0, different = 0;
    for (diffVerdict v = DIFF_EQUAL; v <= DIFF_MEMBER_TTL; v++) {
        compared += job->verdicts[v];
        if (isDifference(v)) different += job->verdicts[v];
    }
    if (job->reported > SHOWN_MAX && !job->options->verbose)
        printf("... and %" PRIu64 " more (--verbose prints all)\n", job->reported - SHOWN_MAX);
    printf("%" PRIu64 " keys compared, %" PRIu64 " differ\n", compared, different);
    for (diffVerdict v = DIFF_ONLY_FIRST; v < DIFF_VERDICTS; v++) {
        if (job->verdicts[v] && verdict_names[v])
            printf("  %s: %" PRIu64 "\n", verdict_names[v], job->verdicts[v]);
    }
    if (job->sides[0].has_field_expiry != job->sides[1].has_field_expiry)
        puts("  only one of the servers has TTLs of fields");
    if (job->sides[0].has_member_expiry != job->sides[1].has_member_expiry &&
        job->verdicts[DIFF_MEMBER_TTL])
        puts("  only one of the servers has TTLs of members of sets and sorted sets");
    if (job->libraries) printf("  function libraries: %" PRIu64 "\n", job->libraries);
    return different || job->libraries;
}

int modeDiff(const cliOptions *options) {
    diffJob job = {.options = options};
    bool open = true;
    for (int s = 0; s < DIFF_SIDES; s++)
        open = open && openSide(&job.sides[s], options, options->diff_uris[s]);
    int status = 1;
    if (open) {
        jobProgressBegin(&job.progress, options->progress, "diff", "keys", totalKeys(&job));
        walk(&job);
        jobProgressEnd(&job.progress, job.done);
        compareFunctions(&job);
        status = summarize(&job);
    }
    for (int s = 0; s < DIFF_SIDES; s++) {
        if (job.sides[s].uri) connectionClear(&job.sides[s].link);
        cliOptionsClear(&job.sides[s].options);
    }
    return status;
}
