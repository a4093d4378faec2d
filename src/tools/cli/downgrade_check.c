/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --downgrade-check (modes.h): what of a server, or of its files, keeps Valkey 9.1.2 and earlier
 * versions from starting on them, and which export they load. Invariant: it only reads. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "format/aof_manifest.h"
#include "format/aof_reader.h"
#include "format/rdb_file.h"
#include "format/rdb_source.h"
#include "io/file.h"
#include "store/store.h"
#include "tools/cli/info.h"
#include "tools/cli/modes.h"
#include "tools/cli/new_commands.h"
#include "tools/cli/rdb_visit.h"

enum { TEXT_FILE_MAX = 16 * 1024 * 1024, START_BYTES = 16 };

#define WAY_PLAIN \
    "CONFIG SET rdbcompression yes, then SAVE, and BGREWRITEAOF with an append only file"
#define WAY_EXPORT \
    "valkey-cli --rdb FILE writes what they load, with these members but without TTLs"
#define WAY_PATHS "copy these keys to hashes and delete them, or stay with 9.2 or this server"
#define WAY_USERS "ACL EXPORT lists users without what Valkey 9.1 does not know"

/* Obstacles of one file or server. */
typedef struct obstacles {
    const char *name;
    str found;
    uint64_t path_hashes, timed_members, keys;
} obstacles;

static void note(obstacles *o, const char *way, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void note(obstacles *o, const char *way, const char *format, ...) {
    va_list args;
    strAppendText(&o->found, "  - ");
    va_start(args, format);
    strAppendFormatV(&o->found, format, args);
    va_end(args);
    strAppendFormat(&o->found, "\n    way: %s\n", way);
}

/* Prints and clears the findings. True if there are any. */
static bool report(obstacles *o) {
    if (o->path_hashes) note(o, WAY_PATHS, "%" PRIu64 " path hashes (type 23)", o->path_hashes);
    if (o->timed_members)
        note(o, WAY_EXPORT, "%" PRIu64 " sets or sorted sets whose members have TTLs",
             o->timed_members);
    bool any = o->found.len > 0;
    printf("%s\n%s", o->name, any ? strText(&o->found) : "  - nothing was found\n");
    strFree(&o->found);
    return any;
}

/* ------------------------------------------------------------------ RDB files */

static status onKey(void *arg, rdbReader *r, rdbKey *key) {
    obstacles *o = arg;
    (void)r; /* has nothing more to say */
    o->keys++;
    o->path_hashes += key->type == RDB_TYPE_PATHHASH && !r->redis;
    o->timed_members += key->type == RDB_TYPE_SET_TIMED || key->type == RDB_TYPE_ZSET_TIMED;
    if (key->o) objectFree(key->o);
    return OK;
}

/* Reads the file, or the preamble of an append only file. *end: the offset after it. */
static bool checkRdb(obstacles *o, const char *path, uint64_t *end) {
    static const rdbFileHandler handler = {.key = onKey};
    rdbVisit visit;
    bool good = rdbVisitFile(path, &handler, o, true, &visit);
    if (!visit.opened) return false;
    *end = visit.end;
    if (visit.result.codec != COMPRESS_NONE)
        note(o, WAY_PLAIN, "%s is compressed as a whole (%s)", path,
             compressName(visit.result.codec));
    if (visit.result.version > RDB_VERSION)
        note(o, "load it with this server, then SAVE", "%s has RDB version %d; they read up to %d",
             path, visit.result.version, RDB_VERSION);
    return good;
}

/* ------------------------------------------------------------------ append only files */

/* NULL: Valkey 9.1 knows the command. */
static const newCommand *findNew(slice name) {
    check(newCommandCount > 0);
    for (int i = 0; i < newCommandCount; i++) {
        if (sliceIs(name, newCommands[i].name)) return &newCommands[i];
    }
    return NULL;
}

static bool checkCommands(obstacles *o, const char *path, uint64_t from) {
    rdbFileSource source;
    aofReader reader;
    reason why;
    uint64_t paths = 0, others = 0;
    const char *first = NULL;
    if (rdbFileSourceOpen(&source, path, &why) != OK ||
        fileReaderSkip(&source.file, (int64_t)from, &why) != OK) {
        fprintf(stderr, "%s\n", why.text);
        return false;
    }
    aofReaderInit(&reader, &source.source, from);
    aofItem item;
    while ((item = aofReaderNext(&reader)) == AOF_COMMAND || item == AOF_ANNOTATION) {
        bool is_command = item == AOF_COMMAND && reader.argc > 0;
        const newCommand *found = is_command ? findNew(reader.argv[0]) : NULL;
        if (!found) continue;
        *(found->of_paths ? &paths : &others) += 1;
        if (!found->of_paths && !first) first = found->name;
    }
    bool good = item == AOF_END || item == AOF_TRUNCATED;
    if (!good) fprintf(stderr, "%s: %s\n", path, reader.why.text);
    if (paths) note(o, WAY_PATHS, "%s has %" PRIu64 " commands of path hashes", path, paths);
    if (others)
        note(o, WAY_EXPORT, "%s has %" PRIu64 " commands that they do not know, such as %s", path,
             others, first);
    aofReaderClear(&reader);
    fileReaderClose(&source.file);
    return good;
}

static bool checkDataFile(obstacles *o, const char *path) {
    bool is_rdb;
    reason why;
    uint64_t end = 0;
    if (aofFileIsRdb(path, &is_rdb, &why) != OK) {
        fprintf(stderr, "%s\n", why.text);
        return false;
    }
    if (is_rdb && !checkRdb(o, path, &end)) return false;
    return checkCommands(o, path, end);
}

static bool checkManifest(obstacles *o, const char *path, slice content) {
    aofManifest manifest;
    aofManifestError error;
    if (aofManifestParse(content, &manifest, &error) != OK) {
        fprintf(stderr, "%s: %s\n", path, error.why.text);
        strFree(&error.text);
        return false;
    }
    const char *slash = strrchr(path, '/');
    bool good = true;
    for (int i = 0; i < manifest.count; i++) {
        str file = STR_EMPTY;
        if (manifest.files[i].type == AOF_HISTORY) continue;
        if (slash) strAppend(&file, path, (size_t)(slash + 1 - path));
        strAppendText(&file, manifest.files[i].name);
        good = checkDataFile(o, strText(&file)) && good;
        strFree(&file);
    }
    aofManifestClear(&manifest);
    return good;
}

/* ------------------------------------------------------------------ users */

/* Looks at a line of an aclfile, of a configuration file or of ACL LIST. */
static void checkUser(obstacles *o, slice line) {
    static const char *const rules[] = {"role=", "cpu=", "maxmemory="};
    str *words;
    int count;
    if (!strSplitWords(line, &words, &count)) return;
    if (count > 1 && sliceIs(strSlice(&words[0]), "role"))
        note(o, WAY_USERS, "role %s", strText(&words[1]));
    bool is_user = count > 1 && sliceIs(strSlice(&words[0]), "user");
    for (int i = 2; is_user && i < count; i++) {
        for (size_t rule = 0; rule < COUNT_OF(rules); rule++) {
            if (!strncasecmp(strText(&words[i]), rules[rule], strlen(rules[rule])))
                note(o, WAY_USERS, "user %s has the rule %s", strText(&words[1]),
                     strText(&words[i]));
        }
    }
    strFreeWords(words, count);
}

static void checkLines(obstacles *o, slice content) {
    const char *at = content.ptr, *end = content.ptr + content.len;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        checkUser(o, sliceMake(at, (size_t)(stop - at)));
        at = stop + 1;
    }
}

/* ------------------------------------------------------------------ a file, a server */

/* False for files that are neither data nor lines: compressed by another program, encrypted. */
static bool isText(slice content) {
    for (size_t i = 0; i < content.len; i++) {
        unsigned char c = (unsigned char)content.ptr[i];
        if ((c < ' ' && !strchr("\t\r\n", c)) || !c) return false;
    }
    return true;
}

static bool isDataFile(slice start) {
    return start.len && (start.ptr[0] == '*' || start.ptr[0] == '#' || aofIsRdb(start));
}

static bool checkFile(obstacles *o, const char *path) {
    char start[START_BYTES];
    fileReader file;
    reason why;
    size_t len = 0;
    status st = fileReaderOpen(&file, path, &why);
    if (st == OK) {
        st = fileReaderRead(&file, start, sizeof(start), &len, &why);
        fileReaderClose(&file);
    }
    str content = STR_EMPTY;
    slice begin = sliceMake(start, len);
    bool is_text =
        st == OK && (!isDataFile(begin) || (len > 1 && start[0] == '#' && start[1] == ' '));
    if (is_text) st = fileReadAll(path, TEXT_FILE_MAX, &content, &why);
    if (st != OK) fprintf(stderr, "%s\n", why.text);
    bool good = st == OK;
    if (good && !is_text) {
        good = checkDataFile(o, path);
    } else if (good && len > 5 && !memcmp(start, "file ", 5)) {
        good = checkManifest(o, path, strSlice(&content));
    } else if (good && !isText(strSlice(&content))) {
        fprintf(stderr,
                "%s: neither a snapshot, an append only file, its manifest, an aclfile nor a "
                "configuration file\n",
                path);
        good = false;
    } else if (good) {
        checkLines(o, strSlice(&content));
    }
    strFree(&content);
    return good;
}

/* Sets the cursor to the one of a reply of SCAN or its kind, and returns the elements; NULL: it is
 * an error, and the cursor that of an end. */
static const valkeyReply *takePage(const valkeyReply *reply, char cursor[NUMBER_TEXT_MAX]) {
    bool good = reply->type == VALKEY_REPLY_ARRAY && reply->elements == 2 &&
                reply->element[0]->type == VALKEY_REPLY_STRING;
    snprintf(cursor, NUMBER_TEXT_MAX, "%s", good ? reply->element[0]->str : "0");
    return good ? reply->element[1] : NULL;
}

/* A type of which members may have TTLs: its commands, and items of a page per member. */
typedef struct timedForm {
    const char *type, *scan, *expiry;
    size_t width;
} timedForm;

static const timedForm timed_forms[] = {{"set", "SSCAN", "SPEXPIRETIME", 1},
                                        {"zset", "ZSCAN", "ZPEXPIRETIME", 2}};

/* True if a member of the page has a TTL. */
static bool hasTtl(connection *c, const valkeyReply *key, const timedForm *form,
                   const valkeyReply *page) {
    enum { WORDS = 4 };
    char number[NUMBER_TEXT_MAX];
    size_t count = page->elements / form->width;
    const slice words[WORDS] = {sliceOf(form->expiry), sliceMake(key->str, key->len),
                                SLICE("MEMBERS"), sliceMake(number, numberPrintInt(number, count))};
    const char **argv = memAlloc(sizeof(*argv) * (WORDS + count));
    size_t *lengths = memAlloc(sizeof(*lengths) * (WORDS + count));
    for (size_t i = 0; i < WORDS + count; i++) {
        const valkeyReply *member = i < WORDS ? NULL : page->element[(i - WORDS) * form->width];
        argv[i] = member ? member->str : words[i].ptr;
        lengths[i] = member ? member->len : words[i].len;
    }
    connectionQueueArgv(c, (int)(WORDS + count), argv, lengths);
    memFree(argv);
    memFree(lengths);
    valkeyReply *times = connectionNext(c);
    bool found = false; /* an error: the server does not have such TTLs */
    for (size_t i = 0; times->type == VALKEY_REPLY_ARRAY && i < times->elements; i++)
        found |= times->element[i]->integer >= 0;
    freeReplyObject(times);
    return found;
}

/* True if a member of the key has a TTL: reads its members in pages until one has. */
static bool isTimed(connection *c, const valkeyReply *key, const timedForm *form) {
    char cursor[NUMBER_TEXT_MAX] = "0";
    bool found = false;
    do {
        valkeyReply *reply =
            connectionCommand(c, "%s %b %s COUNT 1000", form->scan, key->str, key->len, cursor);
        const valkeyReply *page = takePage(reply, cursor);
        found = page && page->elements && hasTtl(c, key, form, page);
        freeReplyObject(reply);
    } while (!found && strcmp(cursor, "0") != 0);
    return found;
}

/* Counts the keys of a type in the selected database, or with `form` those of which members have
 * TTLs. 0: the server does not have the type. */
static uint64_t countKeys(connection *c, const char *type, const timedForm *form) {
    uint64_t keys = 0;
    char cursor[NUMBER_TEXT_MAX] = "0";
    do {
        valkeyReply *reply = connectionCommand(c, "SCAN %s COUNT 1000 TYPE %s", cursor, type);
        const valkeyReply *page = takePage(reply, cursor);
        for (size_t i = 0; page && i < page->elements; i++)
            keys += !form || isTimed(c, page->element[i], form);
        freeReplyObject(reply);
    } while (strcmp(cursor, "0") != 0);
    return keys;
}

/* Counts the keys that older servers do not have. A database without fields and members that have
 * TTLs is not searched for them. */
static void countOnServer(connection *c, obstacles *o, const char *keyspace) {
    for (infoDatabase d; infoNextDatabase(&keyspace, &d);) {
        freeReplyObject(connectionCommand(c, "SELECT %d", d.id));
        o->path_hashes += countKeys(c, "pathhash", NULL);
        for (size_t i = 0; d.volatile_items && i < COUNT_OF(timed_forms); i++)
            o->timed_members += countKeys(c, timed_forms[i].type, &timed_forms[i]);
    }
}

static bool checkServer(obstacles *o, const cliOptions *options, const char *uri) {
    connection c;
    cliOptions there;
    cliOptionsForUri(&there, options, uri);
    if (there.db < 0) there.db = 0;
    connectionInit(&c, &there);
    bool good = connectionConnect(&c);
    if (good) {
        valkeyReply *info = connectionRequireText(&c, "INFO", "INFO keyspace");
        valkeyReply *codec = connectionCommand(&c, "CONFIG GET rdbcompression");
        valkeyReply *users = connectionCommand(&c, "ACL LIST");
        const char *value = codec->elements == 2 ? codec->element[1]->str : NULL;
        if (value && (!strcmp(value, "lz4") || !strcmp(value, "zstd")))
            note(o, WAY_PLAIN, "rdbcompression is %s: its files are compressed as a whole", value);
        for (size_t i = 0; i < users->elements; i++)
            checkUser(o, sliceMake(users->element[i]->str, users->element[i]->len));
        countOnServer(&c, o, info->str);
        freeReplyObject(info);
        freeReplyObject(codec);
        freeReplyObject(users);
    }
    connectionClear(&c);
    cliOptionsClear(&there);
    return good;
}

static bool checkOne(const cliOptions *options, const char *name) {
    obstacles o = {.name = name};
    bool is_file = access(name, F_OK) == 0;
    if (!is_file && !strstr(name, "://")) {
        fprintf(stderr, "%s: no such file, and no URI of a server\n", name);
        return false;
    }
    bool good = is_file ? checkFile(&o, name) : checkServer(&o, options, name);
    if (!good) {
        strFree(&o.found);
        return false;
    }
    bool free_way = !report(&o);
    if (!is_file)
        puts("  Its files are checked by their names: after the steps above, give this option the "
             "snapshot, the manifest of the append only file and the aclfile.");
    return free_way;
}

int modeDowngradeCheck(const cliOptions *options, int argc, char **argv) {
    bool free_way = checkOne(options, options->downgrade_of);
    for (int i = 0; i < argc; i++) free_way = checkOne(options, argv[i]) && free_way;
    puts(free_way ? "Valkey 9.1.2 starts with these." : "Valkey 9.1.2 does not start with these.");
    return !free_way;
}
