/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Removal of old chains (retention.h). Invariant: the description is removed first, so that what
 * remains after a crash is an incomplete chain, which is removed later. */
#include "tools/backup/retention.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "io/append_file.h"

static void removeFile(const char *name, void *folder) {
    str path = STR_EMPTY;
    strAppendFormat(&path, "%s/%s", (const char *)folder, name);
    if (name[0] != '.') (void)unlink(path.ptr); /* if it stays, rmdir() fails */
    strFree(&path);
}

static status removeChain(const char *folder, reason *why) {
    removeFile(FULL_FILE, (void *)folder);
    status st = folderEach(folder, removeFile, (void *)folder, why);
    if (st == OK && rmdir(folder) < 0) st = reasonSetErrno(why, "cannot remove %s", folder);
    return st;
}

status retentionApply(const backupJob *job, int64_t since_ms, reason *why) {
    backupCatalog catalog;
    char text[TIME_TEXT_MAX];
    status st = catalogLoad(job->target, &catalog, why);
    for (int i = 0; st == OK && i + 1 < catalog.count; i++) {
        if (catalog.chains[i + 1].full.time_ms > since_ms) break;
        st = removeChain(strText(&catalog.chains[i].folder), why);
        if (st == OK)
            backupSay(job, "removed the full copy of %s and its stream (--keep)",
                      timePrint(catalog.chains[i].full.time_ms, text));
    }
    catalogClear(&catalog);
    return st;
}

typedef struct incompleteVisit {
    const backupJob *job;
    status st;
    reason *why;
} incompleteVisit;

static void visitFolder(const char *name, void *arg) {
    incompleteVisit *v = arg;
    struct stat info;
    if (strncmp(name, "full-", 5) != 0 || v->st != OK) return;
    str folder = STR_EMPTY, path = STR_EMPTY;
    strAppendFormat(&folder, "%s/%s", v->job->target, name);
    strAppendFormat(&path, "%s/" FULL_FILE, folder.ptr);
    if (stat(path.ptr, &info) < 0) {
        v->st = removeChain(folder.ptr, v->why);
        if (v->st == OK) backupSay(v->job, "removed an incomplete full copy: %s", name);
    }
    strFree(&folder);
    strFree(&path);
}

status retentionRemoveIncomplete(const backupJob *job, reason *why) {
    incompleteVisit visit = {.job = job, .st = OK, .why = why};
    status st = folderEach(job->target, visitFolder, &visit, why);
    return st == OK ? visit.st : st;
}
