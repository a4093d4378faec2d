/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stores which primary this replica has followed. The file has one line: `followed PRIMARY BIRTH`.
 * PRIMARY is the id of a node of a cluster, or HOST:PORT; BIRTH is `?` if it is unknown. The name
 * of the file contains the port of this server, because servers may share a folder. */
#include "repl/followed_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "io/file.h"
#include "net/net.h"
#include "persist/sync_load.h"
#include "repl/repl_priv.h"
#include "repl/role_priv.h"

enum { FILE_MODE = 0644, FILE_MAX_BYTES = 4096 };

static str kept; /* the text of the file; empty: there is none */

/* The caller frees it. */
static str nameOf(void) {
    str name = STR_EMPTY;
    strAppendFormat(&name, "replica-followed-%d.conf", netPort());
    return name;
}

/* The line without the birth and the end. The caller frees it. */
static str lineOf(void) {
    str line = STR_EMPTY;
    strAppendText(&line, "followed ");
    roleAppendPrimary(&line);
    strAppendByte(&line, ' ');
    return line;
}

void followedFileKeep(const char *birth) {
    hotCheck(threadIsMain());
    check(replConf.primary_host.len > 0);
    if (persistDeletesSyncFiles()) return;
    str line = lineOf();
    strAppendFormat(&line, "%s\n", birth[0] ? birth : "?");
    if (sliceEqual(strSlice(&line), strSlice(&kept))) {
        strFree(&line);
        return;
    }
    str name = nameOf();
    reason why;
    strFree(&kept);
    if (fileReplace(strText(&name), strSlice(&line), FILE_MODE, &why) == OK) {
        kept = line;
    } else {
        strFree(&line);
        logWarning("After a restart this replica would follow its primary also if that one has "
                   "lost its data: %s",
                   why.text);
    }
    strFree(&name);
}

void followedFileRemove(void) {
    hotCheck(threadIsMain());
    if (!kept.len) return;
    str name = nameOf();
    if (unlink(strText(&name)) != 0 && errno != ENOENT)
        logWarning("Can't remove %s: %s", strText(&name), strerror(errno));
    strFree(&name);
    strFree(&kept);
}

/* The rest of the text after the line, if it begins with that. */
static bool parse(slice text, slice line, char birth[REPL_ID_LEN + 1]) {
    if (text.len <= line.len + 1 || memcmp(text.ptr, line.ptr, line.len) != 0) return false;
    slice rest = sliceMake(text.ptr + line.len, text.len - line.len - 1);
    if (text.ptr[text.len - 1] != '\n') return false;
    birth[0] = birth[REPL_ID_LEN] = 0;
    if (sliceIs(rest, "?")) return true;
    if (!historyIsId(rest)) return false;
    memcpy(birth, rest.ptr, REPL_ID_LEN);
    return true;
}

bool followedFileRead(char birth[REPL_ID_LEN + 1]) {
    str name = nameOf(), line = lineOf();
    reason why;
    hotCheck(line.len > 0);
    strFree(&kept);
    status st = fileReadAll(strText(&name), FILE_MAX_BYTES, &kept, &why);
    if (st != OK && st != ERR_NOT_FOUND) logWarning("%s", why.text);
    bool found = st == OK && parse(strSlice(&kept), strSlice(&line), birth);
    strFree(&name);
    strFree(&line);
    return found;
}
