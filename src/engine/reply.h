/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies of commands, in the protocol of the context. Thin wrappers around resp; errors are
 * counted. */
#ifndef ENGINE_REPLY_H
#define ENGINE_REPLY_H

#include "engine/ctx.h"

/* Texts that clients compare with. */
extern const slice ERR_SYNTAX_TEXT; /* ERR syntax error */
/* WRONGTYPE Operation against a key holding the wrong kind of value */
extern const slice ERR_WRONG_TYPE_TEXT;
extern const slice ERR_NOT_INTEGER_TEXT; /* ERR value is not an integer or out of range */
extern const slice ERR_NOT_FLOAT_TEXT;   /* ERR value is not a valid float */
extern const slice ERR_LOADING_TEXT;     /* LOADING Valkey is loading the dataset in memory */
extern const slice ERR_NO_KEY_TEXT;      /* ERR no such key */
extern const slice ERR_DB_RANGE_TEXT;    /* ERR DB index is out of range */
extern const slice ERR_SAME_OBJECT_TEXT; /* ERR source and destination objects are the same */

/* A reply given as a string literal in RESP: for the hot path, e.g. "+OK\r\n". */
#define replyLiteral(c, bytes) outbufAppend((c)->out, bytes, sizeof(bytes) - 1)
static inline void replyOk(ctx *c) { replyLiteral(c, "+OK\r\n"); }
static inline void replyStatus(ctx *c, slice text) { respStatus(c->out, text); }
static inline void replyInteger(ctx *c, int64_t v) { respInteger(c->out, v); }
static inline void replyBulk(ctx *c, slice bytes) { respBulk(c->out, bytes); }
static inline void replyBulkText(ctx *c, const char *text) { respBulk(c->out, sliceOf(text)); }
/* A field of a map. */
static inline void replyIntField(ctx *c, const char *name, int64_t value) {
    replyBulkText(c, name);
    replyInteger(c, value);
}
static inline void replyNull(ctx *c) { respNull(c->out, c->proto); }
static inline void replyNullArray(ctx *c) { respNullArray(c->out, c->proto); }
static inline void replyArray(ctx *c, int64_t n) { respArray(c->out, n); }
static inline void replyMap(ctx *c, int64_t pairs) { respMap(c->out, c->proto, pairs); }
static inline void replySet(ctx *c, int64_t n) { respSet(c->out, c->proto, n); }
static inline void replyDouble(ctx *c, double v) { respDouble(c->out, c->proto, v); }
static inline void replyDoubleText(ctx *c, slice text) { respDoubleText(c->out, c->proto, text); }
static inline void replyBool(ctx *c, bool v) { respBool(c->out, c->proto, v); }
static inline void replyVerbatim(ctx *c, slice bytes, const char *format) {
    respVerbatim(c->out, c->proto, bytes, format);
}

/* Replies an error. `text` starts with its code ("ERR ..."); else "ERR " is prepended. CR and LF
 * become blanks. Marks the ctx as failed and counts the error (errorstats). From a gate it refuses
 * the request, and with it a transaction that is being queued. */
void replyError(ctx *c, slice text);
void replyErrorFormat(ctx *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "ERR wrong number of arguments for 'config|get' command" */
void replyErrorArity(ctx *c);
/* "ERR unknown subcommand or wrong number of arguments for 'FOO'. Try DEBUG HELP." */
void replyErrorSubcommand(ctx *c);
/* Sends replies of `c` from here on although CLIENT REPLY has switched them off: for commands that
 * switch them on. */
void replyUnmute(ctx *c);
/* HELP of a container: NULL-terminated lines, in Valkey's layout. */
void replyHelp(ctx *c, const char *const *lines);

/* Parse numeric arguments; on failure the error is replied and false returned. */
bool ctxArgInt(ctx *c, int i, int64_t *out); /* ERR value is not an integer or out of range */
/* error NULL: the default text. */
bool ctxArgIntIn(ctx *c, int i, int64_t min, int64_t max, int64_t *out, const char *error);
bool ctxArgDouble(ctx *c, int i, double *out);
/* True if argv[i] equals `word`, ignoring case. */
static inline bool ctxArgIs(const ctx *c, int i, const char *word) {
    return sliceIs(c->argv[i], word);
}

#endif
