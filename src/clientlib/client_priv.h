/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of the library share. Nothing here is exported. */
#ifndef CLIENTLIB_CLIENT_PRIV_H
#define CLIENTLIB_CLIENT_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <valkey/valkey.h>

/* ------------------------------------------------------------------ text.c
 * A text is a length-prefixed string that is followed by a NUL; its pointer changes when it
 * grows. */

enum { VK_TEXT_HEAD = 17 };

/* An empty text, or NULL. */
char *vkTextNew(void);
void vkTextFree(char *text);
static inline size_t vkTextLen(const char *text) {
    uint64_t len;
    memcpy(&len, text - VK_TEXT_HEAD, sizeof(len));
    return (size_t)len;
}
static inline size_t vkTextCapacity(const char *text) {
    uint64_t cap;
    memcpy(&cap, text - VK_TEXT_HEAD + sizeof(cap), sizeof(cap));
    return (size_t)cap;
}
/* Sets the length after bytes were written or to be dropped; at most the capacity. */
static inline void vkTextSetLen(char *text, size_t len) {
    uint64_t value = len;
    memcpy(text - VK_TEXT_HEAD, &value, sizeof(value));
    text[len] = '\0';
}
/* Makes space for `extra` bytes after the text. False if memory is exhausted; the text is unchanged
 * then. */
bool vkTextReserve(char **text, size_t extra);
bool vkTextAppend(char **text, const char *bytes, size_t len);
/* Removes the first `len` bytes; an empty text gives back a large buffer. */
void vkTextConsume(char **text, size_t len);

/* ------------------------------------------------------------------ format.c */

/* Append a command to a text; return its length, -1 if memory is exhausted, -2 if the format or an
 * argument is not valid. */
long long vkAppendFormat(char **text, const char *format, va_list ap);
long long vkAppendArgv(char **text, int argc, const char **argv, const size_t *argvlen);

/* One argument of an encoded command. */
typedef struct vkArg {
    const char *ptr;
    size_t len;
} vkArg;
/* A position in an encoded command. */
typedef struct vkCommandCursor {
    const char *at, *end;
    long long left; /* arguments */
} vkCommandCursor;
/* False if `cmd` does not begin with a complete command header. */
bool vkCommandOpen(vkCommandCursor *cursor, const char *cmd, size_t len);
/* The next argument; false after the last, or if the bytes are not a command. */
bool vkCommandNext(vkCommandCursor *cursor, vkArg *arg);
/* True if the bytes are one complete command with at least its name, which gets exactly one
 * reply. */
bool vkIsOneCommand(const char *cmd, size_t len);
/* True if `arg` is the lower-case `word`, in any case. */
bool vkArgIs(vkArg arg, const char *word);

/* ------------------------------------------------------------------ reply.c */

extern valkeyReplyObjectFunctions vkReplyFunctions;

/* ------------------------------------------------------------------ context.c */

/* Sets c->err; `text` NULL: the text of errno. */
void vkSetError(valkeyContext *c, int type, const char *text);
/* Closes the connection and frees what its transport keeps; the context has the functions `next`
 * then, NULL if it is freed. */
void vkCloseTransport(valkeyContext *c, const valkeyContextFuncs *next);
/* A copy of `from` in `*to` (freed first); `from` NULL: none. False if memory is exhausted. */
bool vkCopyTimeout(struct timeval **to, const struct timeval *from);
bool vkCopyString(char **to, const char *from);

/* ------------------------------------------------------------------ socket.c */

/* Functions of vkSocketFuncs. */
int vkSocketConnect(valkeyContext *c, const valkeyOptions *options);
ssize_t vkSocketRead(valkeyContext *c, char *buf, size_t cap);
ssize_t vkSocketWrite(valkeyContext *c);
ssize_t vkSocketWriteBytes(valkeyContext *c, const char *buf, size_t len);
/* Milliseconds of a timeout, rounded up; -1 for NULL. False (c->err) if it is too long or
 * negative. */
bool vkTimeoutMs(valkeyContext *c, const struct timeval *tv, long *ms);
/* Waits until the socket can be read or written (`events` of poll); false (errno ETIMEDOUT) after
 * `ms`. */
bool vkSocketWait(valkeyContext *c, short events, long ms);
/* The clock: microseconds of a monotonic clock. Tests replace it. */
extern long long (*vkClock)(void);
long long vkNowUs(void);
long long vkNowMs(void);
void vkSleepMs(int ms);
/* A descriptor that becomes readable after `ms`; or VALKEY_INVALID_FD. */
valkeyFD vkTimerOpen(int ms);
void vkTimerClose(valkeyFD fd);
bool vkTimerHasExpired(valkeyFD fd);

/* ------------------------------------------------------------------ connect.c */

/* The transport over plain sockets. */
extern const valkeyContextFuncs vkSocketFuncs;

#endif
