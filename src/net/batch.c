/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading and parsing into a batch (batch.h). Nothing here reads flags or output of a session: they
 * belong to the main thread even while an I/O thread owns the client. ANY_THREAD. */
#include "net/batch.h"

#include "base/base.h"
#include "net/reader_hostile.h"

enum { OWN_BUFFER_MIN = 256 };

inputBatch *batchNew(size_t arena_bytes, int request_max) {
    check(request_max <= REQUEST_BATCH_MAX);
    inputBatch *b = memAlloc(sizeof(*b));
    b->request_max = request_max;
    b->outer = b->next = NULL;
    b->thread = NULL;
    b->filled_by = NULL;
    b->running = false;
    b->run_count = 0;
    b->quarters = 0;
    b->arena_used = 0;
    b->output = 0;
    requestBatchInit(&b->requests);
    b->arena_bytes = arena_bytes;
    b->arena = memAlloc(arena_bytes + REQUEST_READ_SLACK);
    return b;
}

void batchFree(inputBatch *b) {
    memFree(b->arena);
    memFree(b);
}

void batchKeep(client *cl, const char *bytes, size_t len) {
    hotCheck(len > 0);
    size_t cap = clientInputCap(cl);
    if (cl->in_len + len > cap) {
        cap = sizeMax(OWN_BUFFER_MIN, sizeMax(cap * 2, cl->in_len + len));
        cl->in = memRealloc(cl->in, cap + REQUEST_READ_SLACK);
    }
    memcpy(cl->in + cl->in_len, bytes, len);
    cl->in_len += len;
}

ssize_t batchReceiveLarge(client *cl, char *tail, size_t cap, char *at, size_t most,
                          receivedInput *in) {
    hotCheck(cap > 0);
    bool ends = cap == requestParserMissing(&cl->parser);
    struct iovec iov[2] = {{tail, cap}, {at, most}};
    ssize_t n = connReadv(&cl->conn, iov, ends ? 2 : 1);
    if (n <= 0) return n;
    size_t taken = sizeMin((size_t)n, cap);
    requestParserCommit(&cl->parser, taken);
    if ((size_t)n > taken) batchKeep(cl, at, (size_t)n - taken);
    *in = (receivedInput){.buf = cl->in,
                          .len = (size_t)n > taken ? cl->in_len : 0,
                          .more = (size_t)n == (ends ? cap + most : cap)};
    return n;
}

inputRun *batchAddRun(inputBatch *b, client *cl, char *buf, size_t len) {
    hotCheck(b->run_count >= 0);
    hotCheck(len > 0);
    inputRun *run = &b->runs[b->run_count++];
    run->cl = cl;
    run->buf = buf;
    run->len = len;
    run->pos = 0;
    return run;
}

void batchParse(inputBatch *b, inputRun *run, const requestLimits *limits) {
    hotCheck(run->pos <= run->len);
    int max = hostileBatchMax(b->request_max);
    if (max > b->request_max || max < b->requests.count) max = b->request_max;
    /* AUTH may lift the limits for the following requests, so parse one at a time. */
    if (!limits->authenticated && max > b->requests.count) max = b->requests.count + 1;
    run->first = b->requests.count;
    run->parsed_from = run->pos;
    run->status = requestParse(&run->cl->parser, run->buf, &run->len, &run->pos, limits,
                               &b->requests, max, &run->error);
    if (run->buf == run->cl->in)
        run->cl->in_len = run->len; /* the end may have moved to a large argument's block */
    run->count = b->requests.count - run->first;
    executeResolveAll(&b->requests.items[run->first], run->count);
}
