/* SPDX-License-Identifier: BSD-3-Clause
 *
 * URIs of servers (server_uri.h). */
#include "tools/server_uri.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/bytes.h"

/* Copies the text up to `end` with %XX decoded. Returns what is wrong. */
static const char *decode(const char *text, const char *end, char **out) {
    char *to = *out = memAlloc((size_t)(end - text) + 1);
    for (; text < end; text++) {
        if (*text != '%') {
            *to++ = *text;
            continue;
        }
        *to = '\0';
        if (text + 1 == end) return "Incomplete URI encoding";
        int high = hexDigit(text[1]), low = text + 2 < end ? hexDigit(text[2]) : -1;
        if (high < 0 || low < 0) return "Illegal character in URI encoding";
        *to++ = (char)(high * 16 + low);
        text += 2;
    }
    *to = '\0';
    return NULL;
}

/* The text after the scheme; NULL if it is unknown. */
static const char *skipScheme(const char *uri, bool *tls) {
    static const struct {
        const char *text;
        bool tls;
    } schemes[] = {
        {"valkey://", false}, {"redis://", false}, {"valkeys://", true}, {"rediss://", true}};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
        size_t len = strlen(schemes[i].text);
        if (strncasecmp(uri, schemes[i].text, len) != 0) continue;
        *tls = schemes[i].tls;
        return uri + len;
    }
    return NULL;
}

/* host, host:port, [address] or [address]:port up to `end`. */
static void takeAddress(const char *text, const char *end, serverUri *out) {
    const char *host_end = memchr(text, ':', (size_t)(end - text)), *port = host_end;
    const char *bracket = *text == '[' ? memchr(text, ']', (size_t)(end - text)) : NULL;
    if (bracket) {
        text++;
        host_end = bracket;
        port = bracket[1] == ':' ? bracket + 1 : NULL;
    } else if (!host_end) {
        host_end = end;
    }
    if (host_end > text) out->host = memDup(text, (size_t)(host_end - text));
    if (port) out->port = atoi(port + 1);
}

const char *serverUriParse(const char *uri, serverUri *out) {
    *out = (serverUri){.port = -1, .db = -1};
    const char *at = skipScheme(uri, &out->tls), *wrong = NULL;
    if (!at) return "Invalid URI scheme";
    const char *login_end = strchr(at, '@');
    if (login_end) {
        const char *colon = memchr(at, ':', (size_t)(login_end - at));
        if (colon && colon > at) wrong = decode(at, colon, &out->user); /* ":password": no user */
        if (!wrong) wrong = decode(colon ? colon + 1 : at, login_end, &out->password);
        if (wrong) return wrong;
        at = login_end + 1;
    }
    const char *path = strchr(at, '/'), *end = path ? path : at + strlen(at);
    if (end > at) takeAddress(at, end, out);
    if (path && path[1]) out->db = atoi(path + 1);
    return NULL;
}

slice serverHostBare(slice host) {
    bool is_bracketed = host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';
    return is_bracketed ? sliceMake(host.ptr + 1, host.len - 2) : host;
}

void serverUriClear(serverUri *uri) {
    memFree(uri->user);
    memFree(uri->password);
    memFree(uri->host);
    *uri = (serverUri){0};
}
