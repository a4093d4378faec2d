/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: memory that is counted as the server's. ANY_THREAD, except for PoolAlloc()
 * and AutoMemory(), which only the thread that uses the context may call. */
#include "base/base.h"
#include "engine/memory.h"
#include "module/context.h"
#include "module/generated/api.h"

void *apiAlloc(size_t bytes) { return memAlloc(bytes ? bytes : 1); }
void *apiTryAlloc(size_t bytes) { return memTryAlloc(bytes ? bytes : 1); }
void *apiCalloc(size_t nmemb, size_t size) {
    return nmemb && size ? memCalloc(nmemb, size) : memCalloc(1, 1);
}

void *apiTryCalloc(size_t nmemb, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(nmemb, size, &bytes)) return NULL;
    void *block = memTryAlloc(bytes ? bytes : 1);
    if (block) memset(block, 0, bytes);
    return block;
}

void *apiRealloc(void *ptr, size_t bytes) {
    if (bytes) return memRealloc(ptr, bytes);
    memFree(ptr);
    return NULL;
}

void *apiTryRealloc(void *ptr, size_t bytes) {
    if (bytes) return memTryRealloc(ptr, bytes);
    memFree(ptr);
    return NULL;
}

void apiFree(void *ptr) { memFree(ptr); }
char *apiStrdup(const char *str) { return memDup(str, strlen(str)); }

void *apiPoolAlloc(ValkeyModuleCtx *ctx, size_t bytes) { return poolAlloc(&ctx->pool, bytes); }

size_t apiMallocSize(void *ptr) { return ptr ? memSizeOf(ptr) : 0; }
size_t apiMallocUsableSize(void *ptr) { return ptr ? memSizeOf(ptr) : 0; }

size_t apiMallocSizeString(ValkeyModuleString *str) {
    size_t own = str->bytes.ptr && !str->borrowed ? memSizeOf(str->bytes.ptr) : str->bytes.len;
    return own + (str->array ? sizeof(*str) : memSizeOf(str));
}

float apiGetUsedMemoryRatio(void) {
    uint64_t limit = memoryLimit();
    return limit ? (float)((double)memoryCounted() / (double)limit) : 0;
}

void apiAutoMemory(ValkeyModuleCtx *ctx) { ctx->flags |= CONTEXT_AUTO_MEMORY; }
