/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Heads of HTTP requests: for any input, the parts found are within the bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "metrics/metrics_priv.h"

static void lieInside(slice part, slice whole) {
    if (part.len == 0) return;
    check(part.ptr >= whole.ptr);
    check(part.ptr + part.len <= whole.ptr + whole.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *copy = malloc(size ? size : 1); /* its own block, so that an overrun is detected */
    if (!copy) return 0;
    memcpy(copy, data, size);
    slice bytes = sliceMake(copy, size);
    httpRequest r;
    int64_t taken = httpParse(bytes, &r);
    check(taken >= -1);
    check(taken <= (int64_t)size);
    lieInside(r.method, bytes);
    lieInside(r.path, bytes);
    lieInside(r.accept, bytes);
    if (taken > 0) check(r.path.len > 0);
    free(copy);
    return 0;
}
