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
#include "format/rdb_settings.h"
#include "format/rdb_source.h"
#include "io/file.h"
#include "store/store.h"
#include "tools/cli/info.h"
#include "tools/cli/modes.h"

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
    rdbFileSource source;
    rdbReader reader;
    rdbFileResult result;
    reason why;
    if (rdbFileSourceOpen(&source, path, &why) != OK) {
        fprintf(stderr, "%s\n", why.text);
        return false;
    }
    storeInit(1, false);
    const rdbFileOptions options = {.values = {.limits = *rdbLimitsNow(), .look = lookAtAll()},
                                    .relaxed = true,
                                    .skip_modules = true,
                                    .skip_foreign = true,
                                    .foreign_everywhere = true,
                                    .check_checksum = true};
    rdbReaderInit(&reader, &source.source, true);
    bool good = rdbFileRead(&reader, &options, &handler, o, &result) == OK;
    *end = rdbReaderOffset(&reader);
    if (!good) fprintf(stderr, "%s: %s\n", path, reader.why.text);
    if (result.codec != COMPRESS_NONE)
        note(o, WAY_PLAIN, "%s is compressed as a whole (%s)", path, compressName(result.codec));
    if (result.version > RDB_VERSION)
        note(o, "load it with this server, then SAVE", "%s has RDB version %d; they read up to %d",
             path, result.version, RDB_VERSION);
    rdbReaderClear(&reader);
    fileReaderClose(&source.file);
    storeShutdown();
    return good;
}

/* ------------------------------------------------------------------ append only files */

/* Commands in append only files that no Valkey before 9.2 has. */
static bool isNewCommand(slice name, bool *of_paths) {
    static const char *const names[] = {"saddex",     "zaddex",  "spexpireat",
                                        "zpexpireat", "xcfgset", "xidmprecord"};
    static const char *const path_names[] = {"phset", "phmset", "phdel", "phdelprefix"};
    for (size_t i = 0; i < COUNT_OF(path_names); i++) {
        *of_paths = sliceIs(name, path_names[i]);
        if (*of_paths) return true;
    }
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (sliceIs(name, names[i])) return true;
    }
    return false;
}

static bool checkCommands(obstacles *o, const char *path, uint64_t from) {
    rdbFileSource source;
    aofReader reader;
    reason why;
    uint64_t paths = 0, others = 0;
    if (rdbFileSourceOpen(&source, path, &why) != OK ||
        fileReaderSkip(&source.file, (int64_t)from, &why) != OK) {
        fprintf(stderr, "%s\n", why.text);
        return false;
    }
    aofReaderInit(&reader, &source.source, from);
    aofItem item;
    while ((item = aofReaderNext(&reader)) == AOF_COMMAND || item == AOF_ANNOTATION) {
        bool of_paths;
        if (item != AOF_COMMAND || !reader.argc || !isNewCommand(reader.argv[0], &of_paths))
            continue;
        *(of_paths ? &paths : &others) += 1;
    }
    bool good = item == AOF_END || item == AOF_TRUNCATED;
    if (!good) fprintf(stderr, "%s: %s\n", path, reader.why.text);
    if (paths) note(o, WAY_PATHS, "%s has %" PRIu64 " commands of path hashes", path, paths);
    if (others)
        note(o, WAY_EXPORT, "%s has %" PRIu64 " commands that only this server knows", path,
             others);
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

/* Counts keys of a type that older servers do not have; 0 if this one does not have it either. */
static uint64_t countType(connection *c, const char *keyspace, const char *type) {
    uint64_t keys = 0;
    for (infoDatabase d; infoNextDatabase(&keyspace, &d);) {
        char cursor[NUMBER_TEXT_MAX] = "0";
        freeReplyObject(connectionCommand(c, "SELECT %d", d.id));
        do {
            valkeyReply *page = connectionCommand(c, "SCAN %s COUNT 1000 TYPE %s", cursor, type);
            bool good = page->type == VALKEY_REPLY_ARRAY && page->elements == 2 &&
                        page->element[0]->type == VALKEY_REPLY_STRING;
            snprintf(cursor, sizeof(cursor), "%s", good ? page->element[0]->str : "0");
            keys += good ? page->element[1]->elements : 0;
            freeReplyObject(page);
        } while (strcmp(cursor, "0") != 0);
    }
    return keys;
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
        o->path_hashes = countType(&c, info->str, "pathhash");
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
