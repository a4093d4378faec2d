/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: saving the dataset to a file, and replacing it by that of a file. Main
 * thread, or a thread that has the lock. */
#include <errno.h>

#include "base/base.h"
#include "engine/hot.h"
#include "module/generated/api.h"
#include "module/key.h"
#include "persist/persist.h"
#include "repl/role.h"

struct ValkeyModuleRdbStream {
    char *path;
};

ValkeyModuleRdbStream *apiRdbStreamCreateFromFile(const char *filename) {
    if (!filename) return NULL;
    ValkeyModuleRdbStream *stream = memNew(ValkeyModuleRdbStream);
    stream->path = memDup(filename, strlen(filename));
    return stream;
}

void apiRdbStreamFree(ValkeyModuleRdbStream *stream) {
    if (!stream) return;
    memFree(stream->path);
    memFree(stream);
}

static int failWith(int error) {
    hotCheck(error);
    errno = error;
    return VALKEYMODULE_ERR;
}

/* The file is good, and its dataset is about to take the place of this one. */
static void empty(void) {
    hotCheck(threadIsMain());
    replRestartStream();
    apiResetDataset(0, 0);
}

int apiRdbLoad(ValkeyModuleCtx *ctx, ValkeyModuleRdbStream *stream, int flags) {
    (void)ctx; /* the dataset is the same for all */
    if (!stream || flags) return failWith(EINVAL);
    if (replIsReplica()) return failWith(ENOTSUP);
    if (engineHot.loading) return failWith(EBUSY);
    reason why;
    status st = persistLoadInstead(stream->path, empty, &why);
    keysMayHaveChanged();
    if (st != OK) return failWith(st == ERR_NOT_FOUND ? ENOENT : EIO);
    errno = 0;
    return VALKEYMODULE_OK;
}

int apiRdbSave(ValkeyModuleCtx *ctx, ValkeyModuleRdbStream *stream, int flags) {
    (void)ctx; /* see above */
    if (!stream || flags) return failWith(EINVAL);
    reason why;
    errno = 0;
    if (persistSaveTo(stream->path, &why) == OK) return VALKEYMODULE_OK;
    return errno ? VALKEYMODULE_ERR : failWith(EIO);
}
