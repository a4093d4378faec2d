/* SPDX-License-Identifier: BSD-3-Clause
 *
 * valkey-check-aof: checks an append only file, given by its manifest or as a single old file, and
 * repairs its end. Exit status 0: valid or repaired, 1: not valid or wrong usage. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "format/aof_manifest.h"
#include "io/file.h"
#include "io/file_stream.h"
#include "store/store.h"
#include "tools/aof_check.h"
#include "tools/tool.h"

enum { MANIFEST_MAX = 64 * 1024 * 1024 };

static int usage(const char *program, FILE *to) {
    fprintf(
        to,
        "Usage: %s [--fix|--truncate-to-timestamp $timestamp] <file.manifest|file.aof>\n"
        "       %s -v or --version\n\n"
        "  --fix                      cut an invalid end off the last file, after a confirmation\n"
        "  --truncate-to-timestamp T  remove what was written after a time, in seconds since 1970;\n"
        "                             needs a file written with aof-timestamp-enabled\n",
        program, program);
    return to == stdout ? 0 : 1;
}

/* True if the first line that is not a comment begins as a line of a manifest. */
static bool isManifest(const char *path) {
    char start[4096];
    size_t len = 0;
    fileReader file;
    if (fileReaderOpen(&file, path, NULL) != OK) return false;
    status st = fileReaderRead(&file, start, sizeof(start) - 1, &len, NULL);
    fileReaderClose(&file);
    if (st != OK) return false;
    start[len] = 0;
    const char *line = start;
    while (*line == '#') {
        line = strchr(line, '\n');
        if (!line) return false;
        line++;
    }
    return !strncmp(line, "file ", 5);
}

static void printManifestError(const aofManifestError *error) {
    printf("\n*** FATAL AOF MANIFEST FILE ERROR ***\n");
    if (error->line) {
        str line = STR_EMPTY;
        strAppendQuoted(&line, strSlice(&error->text));
        printf("Reading the manifest file, at line %d\n>>> %s\n", error->line, strText(&line));
        strFree(&line);
    }
    printf("%s\n", error->why.text);
}

/* Checks a file of the manifest, which is in the manifest's folder. */
static bool checkPart(const char *folder, const aofFile *part, bool is_last,
                      const aofCheckOptions *options) {
    str path = STR_EMPTY;
    strAppendFormat(&path, "%s/%s", folder, part->name);
    if (part->type == AOF_BASE)
        printf("Start to check BASE AOF (%s format).\n",
               aofCheckIsRdb(strText(&path)) ? "RDB" : "RESP");
    const aofCheckFile file = {.kind = part->type == AOF_BASE ? "BASE " : "INCR ",
                               .name = part->name,
                               .path = strText(&path),
                               .is_last = is_last};
    bool good = aofCheck(&file, options);
    strFree(&path);
    return good;
}

static bool checkParts(const aofManifest *m, const char *folder, const aofCheckOptions *options) {
    const aofFile *base = aofManifestBase(m), *last = aofManifestLast(m, AOF_INCR);
    if (base && !checkPart(folder, base, !last, options)) return false;
    if (last) printf("Start to check INCR files.\n");
    for (int i = 0; i < m->count; i++) {
        const aofFile *part = &m->files[i];
        if (part->type == AOF_INCR && !checkPart(folder, part, part == last, options)) return false;
    }
    printf("All AOF files and manifest are valid\n");
    return true;
}

static bool checkMultiPart(const char *path, const aofCheckOptions *options) {
    str content = STR_EMPTY;
    reason why;
    printf("Start checking Multi Part AOF\n");
    if (fileReadAll(path, MANIFEST_MAX, &content, &why) != OK) {
        printf("Cannot read file %s: %s\n", path, why.text);
        strFree(&content);
        return false;
    }
    aofManifest m;
    aofManifestError error;
    status st = aofManifestParse(strSlice(&content), &m, &error);
    strFree(&content);
    if (st != OK) {
        printManifestError(&error);
        strFree(&error.text);
        return false;
    }
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", path);
    bool good = checkParts(&m, dirname(folder), options);
    aofManifestClear(&m);
    return good;
}

/* Reads the options before the file's name. False after an error, which is printed. */
static bool parseOptions(int argc, char **argv, aofCheckOptions *out) {
    if (argc == 2) return true;
    if (argc == 3 && !strcmp(argv[1], "--fix")) {
        out->action = AOF_CHECK_FIX;
        return true;
    }
    if (argc == 4 && !strcmp(argv[1], "--truncate-to-timestamp")) {
        out->action = AOF_CHECK_CUT_TIME;
        if (numberParseInt(sliceMake(argv[2], strlen(argv[2])), &out->time_s)) return true;
        printf("Invalid timestamp, aborting...\n");
        return false;
    }
    (void)usage(argv[0], stderr);
    return false;
}

int main(int argc, char **argv) {
    aofCheckOptions options = {.action = AOF_CHECK_ONLY};
    if (argc < 2) return usage(argv[0], stderr);
    if (argc == 2 && toolWantsVersion(argv[1], "valkey-check-aof")) return 0;
    if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")))
        return usage(argv[0], stdout);
    if (!parseOptions(argc, argv, &options)) return 1;
    const char *path = argv[argc - 1];
    toolCheckPath(path);
    storeInit(1, false);
    bool good;
    if (isManifest(path)) {
        good = checkMultiPart(path, &options);
    } else {
        printf("Start checking Old-Style AOF\n");
        good = aofCheck(&(aofCheckFile){.kind = "", .name = path, .path = path, .is_last = true},
                        &options);
    }
    storeShutdown();
    return good ? 0 : 1;
}
