/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parser for the header of an HTTP/1.x request: the request line and the header fields in use.
 * Request bodies are not read: a client that sends one gets its response and is disconnected. Reads
 * nothing beyond `bytes`; allocates nothing. */
#include "base/base.h"
#include "metrics/metrics_priv.h"

/* Removes the part before `end` from `text`; false if `end` is not found. */
static bool takeUpTo(slice *text, char end, slice *out) {
    const char *at = text->len ? memchr(text->ptr, end, text->len) : NULL;
    if (!at) return false;
    *out = sliceMake(text->ptr, (size_t)(at - text->ptr));
    *text = sliceMake(at + 1, text->len - out->len - 1);
    return true;
}

static bool hasControls(slice s) {
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f) return true;
    }
    return false;
}

/* "GET /path?query HTTP/1.1" */
static bool parseLine(slice line, httpRequest *out) {
    slice target, version;
    if (!takeUpTo(&line, ' ', &out->method) || !takeUpTo(&line, ' ', &target)) return false;
    version = line;
    if (out->method.len == 0 || target.len == 0 || target.ptr[0] != '/') return false;
    if (hasControls(out->method) || hasControls(target)) return false;
    if (!sliceIs(version, "HTTP/1.1") && !sliceIs(version, "HTTP/1.0")) return false;
    out->keep_alive = sliceIs(version, "HTTP/1.1");
    slice rest = target;
    if (!takeUpTo(&rest, '?', &out->path)) out->path = target;
    return true;
}

static bool parseHeader(slice line, httpRequest *out) {
    slice name;
    if (!takeUpTo(&line, ':', &name) || name.len == 0 || hasControls(name)) return false;
    slice value = sliceTrim(line);
    if (sliceIs(name, "accept")) out->accept = value;
    if (sliceIs(name, "authorization")) out->authorization = value;
    if (sliceIs(name, "connection") && sliceIs(value, "close")) out->keep_alive = false;
    if (sliceIs(name, "content-length") && !sliceIs(value, "0")) out->has_body = true;
    if (sliceIs(name, "transfer-encoding")) out->has_body = true;
    return true;
}

int64_t httpParse(slice bytes, httpRequest *out) {
    hotCheck(threadIsMain());
    *out = (httpRequest){0};
    slice rest = bytes, line;
    bool first = true;
    while (takeUpTo(&rest, '\n', &line)) {
        line = sliceTrim(line);
        if (first && line.len == 0) continue; /* an empty line between requests */
        if (line.len == 0) return (int64_t)(bytes.len - rest.len);
        if (first ? !parseLine(line, out) : !parseHeader(line, out)) return -1;
        first = false;
    }
    return 0;
}
