/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checking AOF files (aof_check.h). */
#include "tools/aof_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "format/aof_reader.h"
#include "format/rdb_source.h"
#include "tools/progress.h"
#include "tools/rdb_check.h"

/* How the records of a file end. */
typedef struct verdict {
    bool valid;
    bool cut_found; /* a record is newer than the wanted time */
    uint64_t cut_at;
} verdict;

bool aofCheckIsRdb(const char *path) {
    bool yes;
    return aofFileIsRdb(path, &yes, NULL) == OK && yes;
}

/* ------------------------------------------------------------------ records */

static void printProblem(uint64_t offset, const char *text) {
    printf("0x%16llx: %s\n", (unsigned long long)offset, text);
}

/* Prints why the records end before the end of the file. */
static void explain(const aofReader *r, aofItem item, uint64_t at, const aofCheckFile *file) {
    char text[64 + REASON_MAX];
    if (item == AOF_COMMAND) {
        snprintf(text, sizeof(text), "Unexpected %s in AOF %s", r->in_multi ? "MULTI" : "EXEC",
                 file->name);
        printProblem(at, text);
    } else if (item == AOF_END) {
        printProblem(at, "Reached EOF before reading EXEC for MULTI");
    } else {
        printProblem(r->error_offset, r->why.text);
        if (item == AOF_INVALID) printf("AOF %s format error\n", file->name);
    }
}

/* Whether a record is the first one after the wanted time. */
static bool isTooNew(const aofReader *r, aofItem item, const aofCheckOptions *options) {
    int64_t time_s;
    return options->action == AOF_CHECK_CUT_TIME && item == AOF_ANNOTATION &&
           aofAnnotationTime(r->raw, &time_s) && time_s > options->time_s;
}

static verdict readRecords(aofReader *r, const aofCheckFile *file, const aofCheckOptions *options,
                           progress *progress) {
    for (;;) {
        /* A cut in the middle of a transaction would leave it incomplete. */
        uint64_t before = r->in_multi ? r->safe_offset : aofReaderOffset(r);
        aofItem item = aofReaderNext(r);
        progressAt(progress, aofReaderOffset(r));
        if (isTooNew(r, item, options))
            return (verdict){.valid = true, .cut_found = true, .cut_at = before};
        if (item == AOF_ANNOTATION || (item == AOF_COMMAND && !r->unexpected)) continue;
        if (item == AOF_END && !r->in_multi) return (verdict){.valid = true};
        progressEnd(progress);
        explain(r, item, before, file);
        return (verdict){.valid = false};
    }
}

/* ------------------------------------------------------------------ cutting */

static bool truncateFile(const aofCheckFile *file, uint64_t len) {
    int fd = open(file->path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && ftruncate(fd, (off_t)len) == 0 && fsync(fd) == 0;
    if (!done) printf("Failed to truncate AOF %s: %s\n", file->name, strerror(errno));
    if (fd >= 0) (void)close(fd); /* everything is on disk */
    return done;
}

static bool confirmed(void) {
    char answer[8] = "";
    printf("Continue? [y/N]: ");
    fflush(stdout);
    return fgets(answer, sizeof(answer), stdin) && (*answer == 'y' || *answer == 'Y');
}

static bool fix(const aofCheckFile *file, uint64_t size, uint64_t valid) {
    if (!file->is_last) {
        printf("Failed to truncate AOF %s because it is not the last file\n", file->name);
        return false;
    }
    printf("This will shrink the AOF %s from %llu bytes, with %llu bytes, to %llu bytes\n",
           file->name, (unsigned long long)size, (unsigned long long)(size - valid),
           (unsigned long long)valid);
    if (!confirmed()) {
        printf("Aborting...\n");
        return false;
    }
    if (!truncateFile(file, valid)) return false;
    printf("Successfully truncated AOF %s\n", file->name);
    return true;
}

static bool cutAtTime(const aofCheckFile *file, const verdict *v, int64_t time_s) {
    if (!v->cut_found) {
        printf("Truncate nothing in AOF %s to timestamp %lld\n", file->name, (long long)time_s);
        printf("%sAOF %s is valid\n", file->kind, file->name);
        return true;
    }
    if (v->cut_at == 0) {
        printf("AOF %s has nothing before timestamp %lld, aborting...\n", file->name,
               (long long)time_s);
        return false;
    }
    if (!file->is_last) {
        printf(
            "Failed to truncate AOF %s to timestamp %lld to offset %llu because it is not the last file.\n"
            "If you insist, please delete all files after this file according to the manifest file and "
            "delete the corresponding records in manifest file manually. Then re-run valkey-check-aof.\n",
            file->name, (long long)time_s, (unsigned long long)v->cut_at);
        return false;
    }
    if (!truncateFile(file, v->cut_at)) return false;
    printf("Successfully truncated AOF %s to timestamp %lld\n", file->name, (long long)time_s);
    return true;
}

/* ------------------------------------------------------------------ a file */

static bool judge(const aofCheckFile *file, const aofCheckOptions *options, const aofReader *r,
                  const verdict *v, uint64_t size) {
    if (v->valid && options->action == AOF_CHECK_CUT_TIME)
        return cutAtTime(file, v, options->time_s);
    printf("AOF analyzed: filename=%s, size=%llu, ok_up_to=%llu, ok_up_to_line=%lld, diff=%llu\n",
           file->name, (unsigned long long)size, (unsigned long long)r->safe_offset,
           (long long)r->safe_line, (unsigned long long)(size - r->safe_offset));
    if (v->valid) {
        printf("%sAOF %s is valid\n", file->kind, file->name);
        return true;
    }
    if (options->action == AOF_CHECK_FIX) return fix(file, size, r->safe_offset);
    printf("AOF %s is not valid. Use the --fix option to try fixing it.\n", file->name);
    return false;
}

/* Checks the records from `offset` on, where the file's position is. */
static bool checkRecords(rdbFileSource *source, uint64_t offset, const aofCheckFile *file,
                         const aofCheckOptions *options) {
    uint64_t size = (uint64_t)source->file.size;
    progress progress;
    aofReader r;
    progressBegin(&progress, size);
    aofReaderInit(&r, &source->source, offset);
    verdict v = readRecords(&r, file, options, &progress);
    progressEnd(&progress);
    bool good = judge(file, options, &r, &v, size);
    aofReaderClear(&r);
    return good;
}

/* Checks the RDB part; *len is its length. */
static bool checkPreamble(const aofCheckFile *file, uint64_t *len) {
    if (!rdbCheck(&(rdbCheckOptions){.path = file->path}, len)) {
        printf("RDB preamble of AOF file is not sane, aborting.\n");
        return false;
    }
    printf("RDB preamble is OK, proceeding with AOF tail...\n");
    return true;
}

bool aofCheck(const aofCheckFile *file, const aofCheckOptions *options) {
    rdbFileSource source;
    reason why;
    uint64_t offset = 0;
    errno = 0;
    if (rdbFileSourceOpen(&source, file->path, &why) != OK) {
        printf("Cannot open file %s: %s\n", file->path, strerror(errno));
        return false;
    }
    bool good = true;
    if (source.file.size == 0) {
        printf("%sAOF %s is empty\n", file->kind, file->name);
    } else {
        if (aofCheckIsRdb(file->path)) good = checkPreamble(file, &offset);
        if (good && fileReaderSkip(&source.file, (int64_t)offset, &why) != OK) {
            printf("Cannot read file %s: %s\n", file->path, why.text);
            good = false;
        }
        if (good) good = checkRecords(&source, offset, file, options);
    }
    fileReaderClose(&source.file);
    return good;
}
