/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is wrong with a snapshot (rdb_damage.h). A load does not record which key it reads, which
 * would cost time for each; so a file that could not be loaded is read a second time. */
#include "persist/rdb_damage.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "format/rdb_file.h"
#include "format/rdb_settings.h"
#include "format/rdb_source.h"

typedef struct place {
    const char *at; /* the current step */
    str key;        /* of the current key, if `key_known` */
    bool key_known;
    int type; /* of the current key; -1: between keys */
    uint64_t keys;
} place;

static status onStep(void *arg, rdbReader *r, const char *at, const rdbKey *key) {
    (void)r;
    place *p = arg;
    p->at = at;
    if (!strcmp(at, "read-type")) {
        p->type = -1;
        p->key_known = false;
    } else if (!strcmp(at, "read-key")) {
        p->type = key->type;
    } else if (!strcmp(at, "read-object-value")) {
        strClear(&p->key);
        strAppendSlice(&p->key, key->name);
        p->key_known = true;
        p->keys++;
    }
    return OK;
}

static status onKey(void *arg, rdbReader *r, rdbKey *key) {
    (void)arg, (void)r;
    if (key->o) objectFree(key->o);
    return OK;
}

static void logPlace(const place *p, const rdbReader *r) {
    logWarning("--- RDB ERROR DETECTED ---");
    logWarning("[offset %llu] %s", (unsigned long long)rdbReaderOffset(r), r->why.text);
    logWarning("[additional info] While doing: %s", p->at);
    if (p->key_known) {
        str name = STR_EMPTY;
        strAppendQuoted(&name, strSlice(&p->key));
        /* Also with hide-user-data-from-log, as in Valkey: without the name nobody can repair the
         * file. */
        logWarning("[additional info] Reading key '%.*s'", (int)name.len - 2, strText(&name) + 1);
        strFree(&name);
    }
    if (p->type >= 0) {
        const char *name = rdbTypeName(p->type);
        logWarning("[additional info] Reading type %d (%s)", p->type, name ? name : "unknown");
    }
    logWarning("[info] %llu keys read", (unsigned long long)p->keys);
    logWarning("Terminating server after rdb file reading failure.");
}

void rdbDamageLog(const char *path) {
    hotCheck(threadIsMain());
    static const rdbFileHandler handler = {.key = onKey, .doing = onStep};
    reason why;
    rdbFileSource from;
    if (rdbFileSourceOpen(&from, path, &why) != OK) {
        logWarning("Fatal error: can't open the RDB file %s for reading: %s", path,
                   strerror(errno));
        return;
    }
    const rdbFileOptions options = {.values = {.limits = *rdbLimitsNow(), .look = lookAtAll()},
                                    .relaxed = rdbVersionsRelaxed(),
                                    .skip_foreign = true,
                                    .check_checksum = true};
    place p = {.at = "start", .type = -1};
    rdbReader r;
    rdbFileResult result;
    rdbReaderInit(&r, &from.source, true);
    status st = rdbFileRead(&r, &options, &handler, &p, &result);
    /* A type that a later or another server may have is no damage. */
    bool unknown = (st == ERR_NOT_FOUND && options.relaxed) || rdbVersionIsForeign(result.version);
    if (st != OK && !unknown && !result.bad_header) logPlace(&p, &r);
    rdbReaderClear(&r);
    fileReaderClose(&from.file);
    strFree(&p.key);
}
