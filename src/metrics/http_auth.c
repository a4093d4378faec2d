/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Basic authentication of the metrics port: the name and password of an ACL user that may run INFO.
 * Nothing of the header is kept. */
#include "acl/acl.h"
#include "base/base.h"
#include "metrics/metrics_priv.h"

enum { CREDENTIALS_MAX = 4096 };

static int digitOf(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int64_t httpDecodeBase64(slice text, char *dst, size_t cap) {
    hotCheck(threadIsMain());
    while (text.len && text.ptr[text.len - 1] == '=') text.len--;
    uint32_t bits = 0;
    size_t len = 0;
    int pending = 0;
    for (size_t i = 0; i < text.len; i++) {
        int digit = digitOf(text.ptr[i]);
        if (digit < 0) return -1;
        bits = bits << 6 | (uint32_t)digit;
        pending += 6;
        if (pending < 8) continue;
        pending -= 8;
        if (len == cap) return -1;
        dst[len++] = (char)(bits >> pending);
    }
    return (int64_t)len;
}

bool httpIsAuthorized(slice authorization) {
    hotCheck(threadIsMain());
    static const char scheme[] = "basic ";
    size_t skip = sizeof(scheme) - 1;
    char text[CREDENTIALS_MAX];
    if (authorization.len < skip || !sliceIs(sliceMake(authorization.ptr, skip), scheme))
        return false;
    slice encoded = sliceMake(authorization.ptr + skip, authorization.len - skip);
    int64_t len = httpDecodeBase64(encoded, text, sizeof(text));
    if (len <= 0) return false;
    const char *colon = memchr(text, ':', (size_t)len);
    bool allowed = false;
    if (colon) {
        size_t name_len = (size_t)(colon - text);
        allowed =
            aclPasswordAllows(sliceMake(text, name_len),
                              sliceMake(colon + 1, (size_t)len - name_len - 1), SLICE("info"));
    }
    aclWipe(sliceMake(text, (size_t)len));
    return allowed;
}
