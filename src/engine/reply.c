/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Error replies, HELP texts and numeric arguments. Errors are counted here. Main thread only. */
#include "engine/reply.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/stats.h"
#include "engine/stream_priv.h"
#include "engine/transaction_priv.h"

const slice ERR_SYNTAX_TEXT = SLICE("ERR syntax error");
const slice ERR_WRONG_TYPE_TEXT =
    SLICE("WRONGTYPE Operation against a key holding the wrong kind of value");
const slice ERR_NOT_INTEGER_TEXT = SLICE("ERR value is not an integer or out of range");
const slice ERR_NOT_FLOAT_TEXT = SLICE("ERR value is not a valid float");
const slice ERR_LOADING_TEXT = SLICE("LOADING Valkey is loading the dataset in memory");
const slice ERR_NO_KEY_TEXT = SLICE("ERR no such key");
const slice ERR_DB_RANGE_TEXT = SLICE("ERR DB index is out of range");
const slice ERR_SAME_OBJECT_TEXT = SLICE("ERR source and destination objects are the same");

/* True if the text starts with an error code: capitals, digits and underscores before the first
 * blank. */
static bool hasCode(slice text) {
    for (size_t i = 0; i < text.len; i++) {
        char ch = text.ptr[i];
        if (ch == ' ') return i > 0;
        if (!(ch >= 'A' && ch <= 'Z') && !(ch >= '0' && ch <= '9') && ch != '_') return false;
    }
    return false;
}

/* Errors of calls of modules count when the module passes them on. */
static void count(const ctx *c, slice code) {
    if (c->origin != ORIGIN_MODULE) statsCountError(code);
}

static void countAndSend(ctx *c, slice text) {
    if (hasCode(text)) {
        size_t code = (size_t)((const char *)memchr(text.ptr, ' ', text.len) - text.ptr);
        count(c, sliceMake(text.ptr, code));
        respError(c->out, text);
        return;
    }
    str with_code = STR_EMPTY;
    strAppendText(&with_code, "ERR ");
    strAppendSlice(&with_code, text);
    count(c, SLICE("ERR"));
    respError(c->out, strSlice(&with_code));
    strFree(&with_code);
}

/* The error of a command that has succeeded before: one in the stream of our primary or in the
 * AOF. */
static void noteUnexpected(ctx *c, slice text) {
    statsCountUnexpectedError();
    if (ctxIsStream(c)) streamCommandFailed(c, text);
}

void replyError(ctx *c, slice text) {
    hotCheck(threadIsMain());
    c->flags |= CTX_FAILED;
    if (unlikely(ctxIsReplay(c))) noteUnexpected(c, text);
    str instead = STR_EMPTY;
    if (unlikely(c->flags & CTX_ADMISSION) && transactionRefused(c, text, &instead)) {
        text = strSlice(&instead);
    }
    countAndSend(c, text);
    strFree(&instead);
}

void replyErrorFormat(ctx *c, const char *format, ...) {
    hotCheck(threadIsMain());
    str text = STR_EMPTY;
    va_list args;
    va_start(args, format);
    strAppendFormatV(&text, format, args);
    va_end(args);
    slice line = strSlice(&text);
    /* Text from the client may be at the end: its trailing line breaks are removed. */
    while (line.len && (line.ptr[line.len - 1] == '\r' || line.ptr[line.len - 1] == '\n'))
        line.len--;
    replyError(c, line);
    strFree(&text);
}

void replyErrorArity(ctx *c) {
    hotCheck(c->cmd);
    replyErrorFormat(c, "ERR wrong number of arguments for '%.*s' command", (int)c->cmd->name.len,
                     c->cmd->name.ptr);
}

/* The container's name as sent by the client, in capitals. */
static str containerName(const ctx *c) {
    hotCheck(c->argc > 0);
    str name = strNew(sliceMake(c->argv[0].ptr, sizeMin(c->argv[0].len, 128)));
    for (size_t i = 0; i < name.len; i++) name.ptr[i] = byteUpper(name.ptr[i]);
    return name;
}

void replyErrorSubcommand(ctx *c) {
    hotCheck(threadIsMain());
    slice word = c->argv[c->argc > 1];
    str name = containerName(c);
    replyErrorFormat(c,
                     "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try %s HELP.",
                     (int)sizeMin(word.len, 128), word.ptr, strText(&name));
    strFree(&name);
}

void replyUnmute(ctx *c) {
    if (c->out != &c->who->out && outbufIsNull(c->out)) c->out = &c->who->out;
}

/* False for a subcommand that this server does not have (in Sentinel; a hidden extension); its text
 * is indented. A line in brackets describes the container without a subcommand. */
static bool isOffered(const command *container, const char *line, bool is_before) {
    hotCheck(line[0]);
    if (line[0] == ' ') return is_before;
    if (line[0] == '(') return true;
    if (!container || container->sub_count == 0) return true;
    return commandFindSub(container, sliceMake(line, strcspn(line, " "))) != NULL;
}

void replyHelp(ctx *c, const char *const *lines) {
    hotCheck(threadIsMain());
    const command *container = commandFind(c->argv[0]);
    int count = 0;
    bool offered = true;
    for (int i = 0; lines[i]; i++) {
        offered = isOffered(container, lines[i], offered);
        count += offered;
    }
    str head = containerName(c);
    strAppendText(&head, " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    replyArray(c, count + 3);
    replyStatus(c, strSlice(&head));
    for (int i = 0; lines[i]; i++) {
        offered = isOffered(container, lines[i], offered);
        if (offered) replyStatus(c, sliceOf(lines[i]));
    }
    replyStatus(c, SLICE("HELP"));
    replyStatus(c, SLICE("    Print this help."));
    strFree(&head);
}

bool ctxArgInt(ctx *c, int i, int64_t *out) {
    hotCheck(i <= c->argc);
    hotCheck(i > 0);
    hotCheck(i < c->argc);
    if (numberParseInt(c->argv[i], out)) return true;
    replyError(c, ERR_NOT_INTEGER_TEXT);
    return false;
}

bool ctxArgIntIn(ctx *c, int i, int64_t min, int64_t max, int64_t *out, const char *error) {
    hotCheck(i <= c->argc);
    hotCheck(i > 0);
    hotCheck(i < c->argc);
    hotCheck(min <= max);
    int64_t value;
    if (numberParseInt(c->argv[i], &value) && value >= min && value <= max) {
        *out = value;
        return true;
    }
    replyError(c, error ? sliceOf(error) : ERR_NOT_INTEGER_TEXT);
    return false;
}

bool ctxArgDouble(ctx *c, int i, double *out) {
    hotCheck(i <= c->argc);
    hotCheck(i > 0);
    hotCheck(i < c->argc);
    if (numberParseDouble(c->argv[i], out)) return true;
    replyError(c, ERR_NOT_FLOAT_TEXT);
    return false;
}
