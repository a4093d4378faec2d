/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Contexts: errors, options, freeing, and the synchronous functions. The functions in c->funcs
 * transfer the bytes. connect.c creates contexts. */
#include <errno.h>
#include <stdio.h>

#include "clientlib/client_priv.h"

void vkSetError(valkeyContext *c, int type, const char *text) {
    c->err = type;
    if (text) {
        snprintf(c->errstr, sizeof(c->errstr), "%s", text);
    } else {
        int saved = errno;
        if (strerror_r(saved, c->errstr, sizeof(c->errstr)) != 0)
            snprintf(c->errstr, sizeof(c->errstr), "Error %d", saved);
        errno = saved;
    }
}

bool vkCopyTimeout(struct timeval **to, const struct timeval *from) {
    if (*to == from) return true;
    if (!from) {
        vk_free(*to);
        *to = NULL;
        return true;
    }
    if (!*to && !(*to = vk_malloc(sizeof(**to)))) return false;
    **to = *from;
    return true;
}

bool vkCopyString(char **to, const char *from) {
    if (*to == from) return true;
    char *copy = from ? vk_strdup(from) : NULL;
    if (from && !copy) return false;
    vk_free(*to);
    *to = copy;
    return true;
}

/* ------------------------------------------------------------------ life */

void vkCloseTransport(valkeyContext *c, const valkeyContextFuncs *next) {
    /* free_privctx() may free the table of functions, too. */
    valkeyContextFuncs funcs = *c->funcs;
    c->funcs = next;
    if (funcs.free_privctx && c->privctx) funcs.free_privctx(c->privctx);
    c->privctx = NULL;
    if (funcs.close) funcs.close(c);
}

void valkeyFree(valkeyContext *c) {
    if (!c) return;
    vkCloseTransport(c, NULL);
    vkTextFree(c->obuf);
    valkeyReaderFree(c->reader);
    vk_free(c->tcp.host);
    vk_free(c->tcp.source_addr);
    vk_free(c->unix_sock.path);
    vk_free(c->connect_timeout);
    vk_free(c->command_timeout);
    vk_free(c->saddr);
    if (c->privdata && c->free_privdata) c->free_privdata(c->privdata);
    vk_free(c);
}

valkeyFD valkeyFreeKeepFd(valkeyContext *c) {
    valkeyFD fd = c->fd;
    c->fd = VALKEY_INVALID_FD;
    valkeyFree(c);
    return fd;
}

valkeyPushFn *valkeySetPushCallback(valkeyContext *c, valkeyPushFn *fn) {
    valkeyPushFn *previous = c->push_cb;
    c->push_cb = fn;
    return previous;
}

int valkeySetTimeout(valkeyContext *c, const struct timeval tv) {
    if (!(c->flags & VALKEY_BLOCK)) return VALKEY_ERR;
    if (!vkCopyTimeout(&c->command_timeout, &tv)) {
        vkSetError(c, VALKEY_ERR_OOM, "Out of memory");
        return VALKEY_ERR;
    }
    return c->funcs->set_timeout ? c->funcs->set_timeout(c, tv) : VALKEY_OK;
}

/* ------------------------------------------------------------------ transfer */

static int readerFailed(valkeyContext *c) {
    vkSetError(c, c->reader->err, c->reader->errstr);
    return VALKEY_ERR;
}

/* Reads from a buffer that belongs to the transport. */
static int readLent(valkeyContext *c) {
    char *buf;
    ssize_t n = c->funcs->read_zc(c, &buf);
    if (n < 0) return VALKEY_ERR;
    if (n > 0 && valkeyReaderFeed(c->reader, buf, (size_t)n) != VALKEY_OK) return readerFailed(c);
    if (c->funcs->read_zc_done && c->funcs->read_zc_done(c) < 0) return VALKEY_ERR;
    return VALKEY_OK;
}

int valkeyBufferRead(valkeyContext *c) {
    char *buf;
    size_t cap;
    if (c->err) return VALKEY_ERR;
    if (c->funcs->read_zc) return readLent(c);
    if (valkeyReaderGetReadBuf(c->reader, &buf, &cap, 0) != VALKEY_OK) return readerFailed(c);
    ssize_t n = c->funcs->read(c, buf, cap);
    if (n < 0) return VALKEY_ERR;
    valkeyReaderCommitRead(c->reader, (size_t)n);
    return VALKEY_OK;
}

int valkeyBufferWrite(valkeyContext *c, int *done) {
    if (c->err) return VALKEY_ERR;
    if (vkTextLen(c->obuf) > 0) {
        ssize_t n = c->funcs->write(c);
        if (n < 0) return VALKEY_ERR;
        if (n > 0) vkTextConsume(&c->obuf, (size_t)n);
    }
    if (done) *done = vkTextLen(c->obuf) == 0;
    return VALKEY_OK;
}

ssize_t valkeyWriteBytes(valkeyContext *c, const char *buf, size_t len) {
    if (c->err) return -1;
    if (!c->funcs->write_bytes) {
        vkSetError(c, VALKEY_ERR_OTHER, "The transport only sends from the output buffer");
        return -1;
    }
    return c->funcs->write_bytes(c, buf, len);
}

int valkeyGetReplyFromReader(valkeyContext *c, void **reply) {
    if (valkeyReaderGetReply(c->reader, reply) == VALKEY_OK) return VALKEY_OK;
    return readerFailed(c);
}

/* The next reply that is not a push message for the callback. */
static int nextReply(valkeyContext *c, void **reply) {
    do {
        if (valkeyGetReplyFromReader(c, reply) != VALKEY_OK) return VALKEY_ERR;
        valkeyReply *r = *reply;
        /* Reply objects that other functions have created have an unknown form. */
        if (!r || !c->push_cb || c->reader->fn != &vkReplyFunctions || r->type != VALKEY_REPLY_PUSH)
            return VALKEY_OK;
        c->push_cb(c->privdata, r);
    } while (true);
}

int valkeyGetReply(valkeyContext *c, void **reply) {
    void *next = NULL;
    if (reply) *reply = NULL;
    if (nextReply(c, &next) != VALKEY_OK) return VALKEY_ERR;
    if (!next && (c->flags & VALKEY_BLOCK)) {
        int done = 0;
        do {
            if (valkeyBufferWrite(c, &done) != VALKEY_OK) return VALKEY_ERR;
        } while (!done);
        do {
            if (valkeyBufferRead(c) != VALKEY_OK || nextReply(c, &next) != VALKEY_OK)
                return VALKEY_ERR;
        } while (!next);
    }
    if (reply) {
        *reply = next;
    } else if (next && c->reader->fn && c->reader->fn->freeObject) {
        c->reader->fn->freeObject(next);
    }
    return VALKEY_OK;
}

/* ------------------------------------------------------------------ commands */

static int appended(valkeyContext *c, long long len) {
    if (len >= 0) return VALKEY_OK;
    if (len == -2) {
        vkSetError(c, VALKEY_ERR_OTHER, "Invalid format string");
    } else {
        vkSetError(c, VALKEY_ERR_OOM, "Out of memory");
    }
    return VALKEY_ERR;
}

int valkeyAppendFormattedCommand(valkeyContext *c, const char *cmd, size_t len) {
    if (!cmd) return appended(c, len == 0 ? 0 : -2);
    return appended(c, vkTextAppend(&c->obuf, cmd, len) ? 0 : -1);
}

int valkeyvAppendCommand(valkeyContext *c, const char *format, va_list ap) {
    return appended(c, vkAppendFormat(&c->obuf, format, ap));
}

int valkeyAppendCommand(valkeyContext *c, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    int result = valkeyvAppendCommand(c, format, ap);
    va_end(ap);
    return result;
}

int valkeyAppendCommandArgv(valkeyContext *c, int argc, const char **argv, const size_t *argvlen) {
    return appended(c, vkAppendArgv(&c->obuf, argc, argv, argvlen));
}

static void *replyIfBlocking(valkeyContext *c) {
    void *reply;
    if (!(c->flags & VALKEY_BLOCK)) return NULL;
    return valkeyGetReply(c, &reply) == VALKEY_OK ? reply : NULL;
}

void *valkeyvCommand(valkeyContext *c, const char *format, va_list ap) {
    return valkeyvAppendCommand(c, format, ap) == VALKEY_OK ? replyIfBlocking(c) : NULL;
}

void *valkeyCommand(valkeyContext *c, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    void *reply = valkeyvCommand(c, format, ap);
    va_end(ap);
    return reply;
}

void *valkeyCommandArgv(valkeyContext *c, int argc, const char **argv, const size_t *argvlen) {
    return valkeyAppendCommandArgv(c, argc, argv, argvlen) == VALKEY_OK ? replyIfBlocking(c) : NULL;
}
