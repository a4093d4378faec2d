/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frees the commands that a context has queued for a pipeline. */
#include "clientlib/cluster_priv.h"

void vkClusterFreePipeline(valkeyClusterContext *cc) {
    struct valkeyClusterPipeline *p = cc->requests;
    if (!p) return;
    for (size_t i = p->taken; i < p->count; i++) freeReplyObject(p->commands[i].reply);
    vkTextFree(p->text);
    vk_free(p->commands);
    vk_free(p);
    cc->requests = NULL;
}
