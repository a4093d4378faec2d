/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Removal of old chains (retention.h). Invariant: every time since the one that is to be kept
 * has a full copy before it. */
#include "tools/backup/retention.h"

#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "io/append_file.h"

status retentionApply(const backupJob *job, int64_t since_ms, reason *why) {
    backupCatalog catalog;
    char text[TIME_TEXT_MAX];
    status st = catalogLoad(job->target, &catalog, why);
    for (int i = 0; st == OK && i + 1 < catalog.count; i++) {
        if (catalog.chains[i + 1].full.time_ms > since_ms) break;
        st = chainRemove(strText(&catalog.chains[i].folder), why);
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
        v->st = chainRemove(folder.ptr, v->why);
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
