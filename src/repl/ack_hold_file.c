/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stores an order to hold acknowledgements in a file, so that it survives a restart. The file has
 * one line: `hold-acks MS`, or `hold-acks MS except HOST PORT`. Its name contains the port of this
 * server, because servers may share a folder. */
#include "repl/ack_hold_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "io/file.h"
#include "net/net.h"
#include "repl/ack_hold.h"
#include "repl/repl_priv.h"

enum { FILE_MODE = 0644, FILE_MAX_BYTES = 4096 };

static struct {
    int64_t ms;       /* in the file; 0: there is none */
    int64_t until_ms; /* it remains until then */
    bool has_except;  /* it names a primary */
} kept;

/* The caller frees it. */
static str nameOf(void) {
    str name = STR_EMPTY;
    strAppendFormat(&name, "replica-hold-%d.conf", netPort());
    return name;
}

/* The caller frees it. */
static str exceptOf(void) {
    str text = STR_EMPTY;
    strAppendFormat(&text, " except %s %d", strText(&replConf.primary_host), replConf.primary_port);
    return text;
}

static status save(int64_t ms, bool except, reason *why) {
    check(ms > 0);
    str name = nameOf(), text = STR_EMPTY, words = except ? exceptOf() : STR_EMPTY;
    strAppendFormat(&text, "hold-acks %lld%s\n", (long long)ms, strText(&words));
    status st = fileReplace(strText(&name), strSlice(&text), FILE_MODE, why);
    strFree(&name);
    strFree(&text);
    strFree(&words);
    return st;
}

status ackHoldFileKeep(int64_t ms, reason *why) {
    check(ms > 0);
    check(ms <= ACK_HOLD_MAX_MS);
    int64_t until_ms = clockMonoMs() + ms;
    bool is_there = ms <= kept.ms && !kept.has_except;
    int64_t longest_ms = ms > kept.ms ? ms : kept.ms;
    if (!is_there) {
        status st = save(longest_ms, false, why);
        if (st != OK) return st;
    }
    kept.ms = longest_ms;
    kept.has_except = false;
    if (kept.until_ms < until_ms) kept.until_ms = until_ms;
    return OK;
}

void ackHoldFileExcept(void) {
    reason why;
    if (!kept.ms || !replConf.primary_host.len) return;
    if (save(kept.ms, true, &why) == OK) {
        kept.has_except = true;
    } else {
        logWarning("After a restart within %lld ms nothing would be acknowledged for that time: %s",
                   (long long)kept.ms, why.text);
    }
}

void ackHoldFileRemove(void) {
    if (!kept.ms) return;
    str name = nameOf();
    if (unlink(strText(&name)) != 0 && errno != ENOENT)
        logWarning("Can't remove %s: %s", strText(&name), strerror(errno));
    strFree(&name);
    kept.ms = kept.until_ms = 0;
    kept.has_except = false;
}

/* False: it is none of this server. */
static bool parse(slice text, int64_t *ms, slice *except) {
    const slice word = SLICE("hold-acks ");
    if (text.len <= word.len || !sliceEqual(sliceMake(text.ptr, word.len), word)) return false;
    size_t end = word.len;
    while (end < text.len && text.ptr[end] >= '0' && text.ptr[end] <= '9') end++;
    if (text.ptr[text.len - 1] != '\n') return false;
    *except = sliceMake(text.ptr + end, text.len - end - 1);
    return numberParseInt(sliceMake(text.ptr + word.len, end - word.len), ms) && *ms > 0 &&
           *ms <= ACK_HOLD_MAX_MS;
}

int64_t ackHoldFileRead(void) {
    enum { UNKNOWN_MS = 60 * 1000 };
    str name = nameOf(), text = STR_EMPTY, words = exceptOf();
    slice except = SLICE("");
    int64_t ms = 0;
    reason why;
    status st = fileReadAll(strText(&name), FILE_MAX_BYTES, &text, &why);
    if (st != ERR_NOT_FOUND && (st != OK || !parse(strSlice(&text), &ms, &except))) {
        logWarning("%s cannot be read: it counts as an order of %d ms.", strText(&name),
                   UNKNOWN_MS);
        ms = UNKNOWN_MS;
        except = SLICE("");
    }
    kept.ms = ms;
    kept.until_ms = clockMonoMs() + ms;
    kept.has_except = except.len > 0;
    bool applies = ms && !sliceEqual(except, strSlice(&words));
    strFree(&name);
    strFree(&text);
    strFree(&words);
    return applies ? ms : 0;
}

bool ackHoldFileIsThere(void) { return kept.ms > 0; }

void ackHoldFileTick(void) {
    if (kept.ms && clockMonoMs() >= kept.until_ms) ackHoldFileRemove();
}
