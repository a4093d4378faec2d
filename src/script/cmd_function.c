/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FCALL, FCALL_RO and FUNCTION. Main thread only. */
#include "base/base.h"
#include "base/glob.h"
#include "engine/keyspace.h"
#include "engine/reply.h"
#include "format/rdb_dump.h"
#include "format/rdb_file.h"
#include "format/rdb_format.h"
#include "format/rdb_settings.h"
#include "script/engines.h"
#include "script/functions.h"
#include "script/procs.h"
#include "script/run.h"
#include "script/script_priv.h"

/* ------------------------------------------------------------------ calls */

static void call(ctx *c, bool read_only) {
    hotCheck(c->argc >= 3);
    const function *f = functionFind(c->argv[1]);
    if (!f) {
        replyError(c, SLICE("ERR Function not found"));
        return;
    }
    int key_count;
    if (!scriptArgKeys(c, &key_count, "ERR Bad number of keys provided")) return;
    scriptRun now = {.name = strSlice(&f->name),
                     .flags = f->flags,
                     .is_function = true,
                     .is_read_only = read_only};
    if (!scriptRunBegin(&now, c, 3, key_count)) return;
    f->of->engine->call(scriptEngineVm(f->of->engine, SCRIPT_USE_FUNCTIONS, true), f->handle, &now);
    scriptRunEnd(&now);
    scriptNoteWork();
}

/* FCALL function numkeys [key ...] [arg ...]. Reply: what the function returns. */
void fcallCommand(ctx *c) { call(c, false); }
void fcallRoCommand(ctx *c) { call(c, true); }

uint64_t scriptCallFlags(const ctx *c) {
    hotCheck(threadIsMain());
    hotCheck(c->argc >= 2);
    const function *f = functionFind(c->argv[1]);
    return scriptFlagsOfCommand(c, f ? f->flags : SCRIPT_NO_HEADER);
}

/* ------------------------------------------------------------------ changes */

static int64_t loadLimitMs(const ctx *c) { return ctxIsReplay(c) ? INT32_MAX : FUNCTION_LOAD_MS; }

static int64_t restoreLimitMs(const ctx *c) {
    return ctxIsReplay(c) ? INT32_MAX : FUNCTION_RESTORE_MS;
}

/* FUNCTION LOAD [REPLACE ...] code. Reply: the name of the library. */
void functionLoadCommand(ctx *c) {
    hotCheck(threadIsMain());
    hotCheck(c->argc >= 3);
    bool replace = false;
    for (int i = 2; i < c->argc - 1; i++) {
        if (!ctxArgIs(c, i, "replace")) {
            replyErrorFormat(c, "ERR Unknown option given: %.*s", (int)c->argv[i].len,
                             c->argv[i].ptr);
            return;
        }
        replace = true;
    }
    str error = STR_EMPTY;
    const library *l = libraryLoad(c->argv[c->argc - 1], replace, loadLimitMs(c), &error);
    if (l) {
        ctxDatasetChanged(c, 1);
        replyBulk(c, strSlice(&l->name));
    } else {
        replyError(c, strSlice(&error));
    }
    strFree(&error);
}

/* FUNCTION DELETE library */
void functionDeleteCommand(ctx *c) {
    hotCheck(threadIsMain());
    hotCheck(c->argc == 3);
    library *l = libraryFind(c->argv[2]);
    if (!l) {
        replyError(c, SLICE("ERR Library not found"));
        return;
    }
    libraryDelete(l);
    ctxDatasetChanged(c, 1);
    replyOk(c);
}

/* FUNCTION FLUSH [ASYNC | SYNC] */
void functionFlushCommand(ctx *c) {
    hotCheck(threadIsMain());
    hotCheck(c->argc >= 2);
    if (c->argc > 3) {
        replyErrorSubcommand(c);
        return;
    }
    if (c->argc == 3 && !ctxArgIs(c, 2, "sync") && !ctxArgIs(c, 2, "async")) {
        replyError(c, SLICE("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
        return;
    }
    librariesFlush(c->argc == 2 ? keyspaceFlushesLater() : ctxArgIs(c, 2, "async"));
    ctxDatasetChanged(c, 1);
    replyOk(c);
}

/* ------------------------------------------------------------------ DUMP, RESTORE */

/* FUNCTION DUMP. Reply: a payload with the code of all libraries. */
void functionDumpCommand(ctx *c) {
    hotCheck(threadIsMain());
    str payload = STR_EMPTY;
    rdbStrSink sink;
    rdbStrSinkInit(&sink, &payload);
    rdbWriter w;
    rdbWriterInit(&w, &sink.sink, false, rdbCompressionOn());
    list *all = librariesAll();
    for (listNode *n = all->head.next; n != &all->head; n = n->next)
        rdbFileFunction(&w, strSlice(&LIST_OWNER(n, library, node)->code));
    check(rdbWriterFlush(&w) == OK); /* into memory */
    rdbWriterClear(&w);
    strReserve(&payload, RDB_DUMP_FOOTER);
    rdbDumpAppendFooter(&payload, 0,
                        rdbOutgoingForm() == RDB_FORM_REDIS ? RDB_VERSION_REDIS_MAX : RDB_VERSION);
    replyBulk(c, strSlice(&payload));
    strFree(&payload);
}

typedef struct payloadCodes {
    str *codes;
    int count;
} payloadCodes;

static const char *readCode(rdbReader *r, payloadCodes *to) {
    uint8_t type;
    if (rdbReadByte(r, &type) != OK) return "ERR can not read data type";
    if (type == RDB_OP_FUNCTION_PRE_GA) return "ERR Pre-GA function format not supported";
    if (type != RDB_OP_FUNCTION_2) return "ERR given type is not a function";
    str code = STR_EMPTY;
    if (rdbReadStringInto(r, &code) != OK) {
        strFree(&code);
        return "ERR Failed loading library payload";
    }
    to->codes = memRealloc(to->codes, (size_t)(to->count + 1) * sizeof(str));
    to->codes[to->count++] = code;
    return NULL;
}

static void restore(ctx *c, slice body, restorePolicy policy) {
    rdbSliceSource source;
    rdbSliceSourceInit(&source, body);
    rdbReader r;
    rdbReaderInit(&r, &source.source, false);
    payloadCodes read = {NULL, 0};
    const char *invalid = NULL;
    while (!invalid && rdbReaderOffset(&r) < body.len) invalid = readCode(&r, &read);
    rdbReaderClear(&r);
    str error = STR_EMPTY;
    slice *codes = memNewArray(slice, (size_t)read.count + 1);
    for (int i = 0; i < read.count; i++) codes[i] = strSlice(&read.codes[i]);
    if (invalid) {
        replyError(c, sliceOf(invalid));
    } else if (librariesRestore(codes, read.count, policy, loadLimitMs(c), restoreLimitMs(c),
                                &error)) {
        ctxDatasetChanged(c, 1);
        replyOk(c);
    } else {
        replyError(c, strSlice(&error));
    }
    strFree(&error);
    memFree(codes);
    for (int i = 0; i < read.count; i++) strFree(&read.codes[i]);
    memFree(read.codes);
}

/* FUNCTION RESTORE payload [FLUSH | APPEND | REPLACE]: loads all libraries of the payload, or
 * none. */
void functionRestoreCommand(ctx *c) {
    hotCheck(threadIsMain());
    hotCheck(c->argc >= 3);
    if (c->argc > 4) {
        replyErrorSubcommand(c);
        return;
    }
    restorePolicy policy = RESTORE_APPEND;
    if (c->argc == 4) {
        if (ctxArgIs(c, 3, "flush")) {
            policy = RESTORE_FLUSH;
        } else if (ctxArgIs(c, 3, "replace")) {
            policy = RESTORE_REPLACE;
        } else if (!ctxArgIs(c, 3, "append")) {
            replyError(c, SLICE("ERR Wrong restore policy given, value should be either FLUSH, "
                                "APPEND or REPLACE."));
            return;
        }
    }
    slice payload = c->argv[2];
    int version;
    if (!rdbDumpHasFooter(payload, rdbVersionsRelaxed(), rdbChecksumSkipped(), &version)) {
        replyError(c, SLICE("ERR DUMP payload version or checksum are wrong"));
        return;
    }
    restore(c, sliceMake(payload.ptr, payload.len - RDB_DUMP_FOOTER), policy);
}

/* ------------------------------------------------------------------ LIST, STATS */

static void replyFlags(ctx *c, unsigned flags) {
    replySet(c, __builtin_popcount(flags));
    for (int i = 0; i < SCRIPT_FLAG_COUNT; i++) {
        if (flags & 1u << i) replyStatus(c, sliceOf(scriptFlagNames[i]));
    }
}

static void replyLibrary(ctx *c, const library *l, bool with_code) {
    replyMap(c, with_code ? 4 : 3);
    replyBulkText(c, "library_name");
    replyBulk(c, strSlice(&l->name));
    replyBulkText(c, "engine");
    replyBulkText(c, l->engine->name);
    replyBulkText(c, "functions");
    replyArray(c, l->function_count);
    for (int i = 0; i < l->function_count; i++) {
        const function *f = &l->functions[i];
        replyMap(c, 3);
        replyBulkText(c, "name");
        replyBulk(c, strSlice(&f->name));
        replyBulkText(c, "description");
        if (f->description.ptr) {
            replyBulk(c, strSlice(&f->description));
        } else {
            replyNull(c);
        }
        replyBulkText(c, "flags");
        replyFlags(c, f->flags);
    }
    if (!with_code) return;
    replyBulkText(c, "library_code");
    replyBulk(c, strSlice(&l->code));
}

/* FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE] */
void functionListCommand(ctx *c) {
    hotCheck(threadIsMain());
    hotCheck(c->argc >= 2);
    bool with_code = false, has_pattern = false;
    slice pattern = {NULL, 0};
    for (int i = 2; i < c->argc; i++) {
        if (!with_code && ctxArgIs(c, i, "withcode")) {
            with_code = true;
        } else if (!has_pattern && ctxArgIs(c, i, "libraryname")) {
            if (i + 1 == c->argc) {
                replyError(c, SLICE("ERR library name argument was not given"));
                return;
            }
            has_pattern = true;
            pattern = c->argv[++i];
        } else {
            replyErrorFormat(c, "ERR Unknown argument %.*s", (int)c->argv[i].len, c->argv[i].ptr);
            return;
        }
    }
    list *all = librariesAll();
    int64_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass) replyArray(c, count);
        for (listNode *n = all->head.next; n != &all->head; n = n->next) {
            const library *l = LIST_OWNER(n, library, node);
            if (has_pattern && !globMatchFold(pattern, strSlice(&l->name))) continue;
            count++;
            if (pass) replyLibrary(c, l, with_code);
        }
    }
}

static void replyRunning(ctx *c) {
    const scriptRun *run = scriptRunNow();
    if (!run || !run->is_function) {
        replyNull(c);
        return;
    }
    replyMap(c, 3);
    replyBulkText(c, "name");
    replyBulk(c, run->name);
    replyBulkText(c, "command");
    replyArray(c, run->caller->argc);
    for (int i = 0; i < run->caller->argc; i++) replyBulk(c, run->caller->argv[i]);
    replyBulkText(c, "duration_ms");
    replyInteger(c, (clockMonoUs() - run->started_us) / 1000);
}

static void replyEngine(const scriptEngineRow *row, void *arg) {
    ctx *c = arg;
    int64_t libraries = 0, count = 0;
    for (listNode *n = listFirst(librariesAll()); n; n = listNext(librariesAll(), n)) {
        const library *l = LIST_OWNER(n, library, node);
        if (l->engine != row->engine) continue;
        libraries++;
        count += l->function_count;
    }
    replyBulkText(c, row->engine->name);
    replyMap(c, 2);
    replyIntField(c, "libraries_count", libraries);
    replyIntField(c, "functions_count", count);
}

/* FUNCTION STATS */
void functionStatsCommand(ctx *c) {
    hotCheck(threadIsMain());
    replyMap(c, 2);
    replyBulkText(c, "running_script");
    replyRunning(c);
    replyBulkText(c, "engines");
    replyMap(c, scriptEngineCount());
    scriptEnginesEach(replyEngine, c);
}

/* FUNCTION KILL */
void functionKillCommand(ctx *c) { scriptRunKill(c, true); }

/* FUNCTION HELP */
void functionHelpCommand(ctx *c) {
    hotCheck(threadIsMain());
    static const char *const lines[] = {
        "LOAD [REPLACE] <FUNCTION CODE>",
        "    Create a new library with the given library name and code.",
        "DELETE <LIBRARY NAME>",
        "    Delete the given library.",
        "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
        "    Return general information on all the libraries:",
        "    * Library name",
        "    * The engine used to run the Library",
        "    * Functions list",
        "    * Library code (if WITHCODE is given)",
        "    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
        "STATS",
        "    Return information about the current function running:",
        "    * Function name",
        "    * Command used to run the function",
        "    * Duration in MS that the function is running",
        "    If no function is running, return nil",
        "    In addition, returns a list of available engines.",
        "KILL",
        "    Kill the current running function.",
        "FLUSH [ASYNC|SYNC]",
        "    Delete all the libraries.",
        "    When called without the optional mode argument, the behavior is determined by the",
        "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
        "    * ASYNC: Asynchronously flush the libraries.",
        "    * SYNC: Synchronously flush the libraries.",
        "DUMP",
        "    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE command",
        "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
        "    Restore the libraries represented by the given payload, it is possible to give a restore policy to",
        "    control how to handle existing libraries (default APPEND):",
        "    * FLUSH: delete all existing libraries.",
        "    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
        "    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old",
        "      libraries with the new libraries (notice that even on this option there is a chance of failure",
        "      in case of functions name collision with another library).",
        NULL};
    replyHelp(c, lines);
}
