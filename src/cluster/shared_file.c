/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads and writes the file of shared users and functions (shared_file.h). Invariant: at most one
 * save runs, and what changes meanwhile is in the next one. The thread reads a text that nobody
 * changes, and the name of the file, which cannot be changed. */
#include "cluster/shared_file.h"

#include <string.h>

#include "base/base.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_file.h"
#include "engine/hot.h"
#include "io/bio.h"
#include "io/file.h"

enum { FILE_MODE = 0600, FILE_BYTES_MAX = 1 << 30, COMPLAINT_MS = 30000 };

static struct {
    const sharedState *again; /* to be saved when the present save has ended; NULL: nothing is */
    bool runs;
    int64_t told_ms;
} saves;

/* The task of the thread: the text to write, and how that has ended. */
typedef struct fileText {
    str text;
    status result;
    fileFailure failure;
} fileText;

/* ------------------------------------------------------------------ reading */

static void keepAside(slice text) {
    str name = serverFileName(".shared.old");
    reason why;
    if (fileReplace(strText(&name), text, FILE_MODE, &why) != OK)
        logWarning("The damaged file is lost: %s", why.text);
    strFree(&name);
}

void sharedFileRead(sharedState *s) {
    str name = serverFileName(".shared"), text = STR_EMPTY;
    reason why;
    check(s->count == 0);
    status st = fileReadAll(strText(&name), FILE_BYTES_MAX, &text, &why);
    if (st != OK && st != ERR_NOT_FOUND) {
        logWarning("Shared users and functions: %s", why.text);
    } else if (st == OK && sharedStateParse(s, strSlice(&text)) != OK) {
        logWarning("Shared users and functions: %s is damaged and not used. This node gets them "
                   "from others; it is kept as %s.old.",
                   strText(&name), strText(&name));
        keepAside(strSlice(&text));
    }
    strFree(&text);
    strFree(&name);
}

/* ------------------------------------------------------------------ writing */

/* ANY_THREAD. */
static int writeText(void *arg) {
    fileText *file = arg;
    str name = serverFileName(".shared");
    file->result = fileReplaceAs(strText(&name), strSlice(&file->text), FILE_MODE, FILE_FLUSH_ALL,
                                 &file->failure);
    strFree(&name);
    return 0; /* the result is in `file` */
}

static void ended(void *arg, int error) {
    fileText *file = arg;
    (void)error; /* the result is in `file` */
    check(saves.runs);
    saves.runs = false;
    if (file->result != OK && logIsDue(&saves.told_ms, engineHot.now_ms, COMPLAINT_MS))
        logWarning("Shared users and functions could not be written to %s.shared: %s",
                   clusterConf.cluster_config_file, strerror(file->failure.error));
    strFree(&file->text);
    memFree(file);
    const sharedState *again = saves.again;
    saves.again = NULL;
    if (again) sharedFileSave(again);
}

void sharedFileSave(const sharedState *s) {
    check(threadIsMain());
    if (saves.runs) {
        saves.again = s;
        return;
    }
    fileText *file = memNew(fileText);
    *file = (fileText){.text = STR_EMPTY};
    sharedStatePrint(s, &file->text);
    saves.runs = true;
    bioSubmitTask(BIO_REPLACE, writeText, ended, file);
}

void sharedFileSaveNow(const sharedState *s) {
    sharedFileSave(s);
    while (saves.runs) {
        bioDrain(BIO_REPLACE);
        bioComplete(); /* which may begin the next one */
    }
}
