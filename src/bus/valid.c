/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Validates texts that nodes announce. An accepted text contains no byte that ends a word or a line
 * of the configuration file. */
#include "bus/valid.h"

#include <arpa/inet.h>

#include "bus/protocol.h"

static bool isAlphanumeric(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool consistsOf(slice text, const char *others, bool high_bytes) {
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (isAlphanumeric(c) || (high_bytes && (unsigned char)c >= 0x80)) continue;
        if (c == 0 || !strchr(others, c)) return false;
    }
    return true;
}

bool validIsPlain(slice text) { return consistsOf(text, "-./:_`", true); }

bool validIsIp(slice text) { return text.len < NODE_IP_MAX && validIsPlain(text); }

bool validIsHostnameChars(slice text) { return consistsOf(text, "-.", false); }

bool validIsHostname(slice text) {
    return text.len < NODE_HOSTNAME_MAX && validIsHostnameChars(text);
}

bool validIsAddress(int family, slice text) {
    char copy[INET6_ADDRSTRLEN];
    unsigned char address[sizeof(struct in6_addr)];
    if (text.len == 0) return true;
    if (text.len >= sizeof(copy) || memchr(text.ptr, 0, text.len)) return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    return inet_pton(family, copy, address) == 1;
}

bool validIsId(slice text) { return sliceIsHex(text, NODE_ID_LEN); }

bool validIsFileText(slice text) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c <= ' ' || c == 0x7f || c == ',' || c == '=' || c == '@') return false;
    }
    return true;
}
