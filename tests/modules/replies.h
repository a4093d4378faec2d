/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For test modules: replies that name the errno of what has failed. */
#ifndef TEST_MODULE_REPLIES_H
#define TEST_MODULE_REPLIES_H

#include <errno.h>

#include "valkeymodule.h"

static inline int replyErrno(ValkeyModuleCtx *ctx) {
    static const struct {
        int number;
        const char *name;
    } names[] = {{EINVAL, "EINVAL"}, {ENOTSUP, "ENOTSUP"}, {EBADF, "EBADF"},
                 {EDOM, "EDOM"},     {ENOENT, "ENOENT"},   {EIO, "EIO"},
                 {EBUSY, "EBUSY"},   {ENOMEM, "ENOMEM"},   {0, "none"}};
    size_t i = 0;
    while (names[i].number && names[i].number != errno) i++;
    return ValkeyModule_ReplyWithSimpleString(ctx, names[i].name);
}

/* OK, or the name of errno. */
static inline int replyResult(ValkeyModuleCtx *ctx, int result) {
    if (result == VALKEYMODULE_OK) return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
    return replyErrno(ctx);
}

#endif
