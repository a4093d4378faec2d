/* SPDX-License-Identifier: BSD-3-Clause */
#include "resp_words.h"

#include "base/base.h"
#include "sim.h"

bool wordsRead(str *bytes, words *out) {
    static requestBatch batch;
    requestParser parser = {0};
    requestError error;
    const requestLimits limits = {
        .bulk_max = 1 << 20, .multibulk_max = 1024, .authenticated = true};
    size_t len = bytes->len, pos = 0;
    strAppend(bytes, "                                ", REQUEST_READ_SLACK);
    strCut(bytes, len);
    requestBatchInit(&batch);
    if (requestParse(&parser, bytes->ptr, &len, &pos, &limits, &batch, 1, &error) == REQUEST_BAD)
        simFail("invalid request: %.*s", (int)error.len, error.text);
    bool found = batch.count == 1;
    *out = (words){.len = pos};
    if (found) {
        const request *r = &batch.items[0];
        check(r->argc <= (int)COUNT_OF(out->argv));
        out->argc = r->argc;
        for (int i = 0; i < r->argc; i++) out->argv[i] = r->argv[i];
    }
    requestBatchClear(&batch);
    requestParserClear(&parser);
    return found;
}
