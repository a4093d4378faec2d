/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses and prints the words of cluster-seeds, and computes when a host is looked up again.
 *
 * Invariant: each pause between two look-ups of a host is twice the last one, up to a maximum. */
#define _GNU_SOURCE /* memrchr() */
#include "bus/seeds.h"

#include "base/base.h"
#include "base/number.h"
#include "bus/protocol.h"

enum { PORT_MAX = 65535, FIRST_PAUSE_MS = 250 };

/* ------------------------------------------------------------------ when */

bool seekIsDue(const seekTimer *t, int64_t now_ms) { return now_ms >= t->due_ms; }

void seekBegun(seekTimer *t, int64_t pause_max_ms, int64_t now_ms) {
    check(seekIsDue(t, now_ms));
    check(pause_max_ms > 0);
    int64_t pause_ms = t->pause_ms ? 2 * t->pause_ms : FIRST_PAUSE_MS;
    t->pause_ms = pause_ms < pause_max_ms ? pause_ms : pause_max_ms;
    t->due_ms = now_ms + t->pause_ms;
}

/* ------------------------------------------------------------------ words */

static bool parsePort(slice text, int *out) {
    int64_t port;
    if (!numberParseInt(text, &port) || port < 1 || port > PORT_MAX) return false;
    *out = (int)port;
    return true;
}

/* Splits at the last `c`; false: there is none. */
static bool splitAt(slice text, char c, slice *before, slice *after) {
    const char *at = text.len ? memrchr(text.ptr, c, text.len) : NULL;
    if (!at) return false;
    *before = sliceMake(text.ptr, (size_t)(at - text.ptr));
    *after = sliceMake(at + 1, text.len - before->len - 1);
    return true;
}

static bool parseHost(slice text, slice *out) {
    bool brackets = text.len > 2 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']';
    if (brackets) text = sliceMake(text.ptr + 1, text.len - 2);
    if (!text.len || text.len >= NODE_HOSTNAME_MAX) return false;
    for (size_t i = 0; i < text.len; i++)
        if ((uint8_t)text.ptr[i] <= ' ' || memchr("[]@\"'\\", text.ptr[i], 6)) return false;
    *out = text;
    return true;
}

static bool parseSeed(slice word, clusterSeed *out) {
    slice host, port, bus_port;
    slice address = word;
    *out = (clusterSeed){.host = STR_EMPTY};
    out->has_bus_port = splitAt(word, '@', &address, &bus_port);
    if (!splitAt(address, ':', &host, &port) || !parsePort(port, &out->port)) return false;
    out->bus_port = out->port + CLUSTER_BUS_PORT_OFFSET;
    if (out->has_bus_port && !parsePort(bus_port, &out->bus_port)) return false;
    if (out->bus_port > PORT_MAX || !parseHost(host, &host)) return false;
    strAppendSlice(&out->host, host);
    return true;
}

status seedsAdd(clusterSeeds *s, const slice *words, int count, reason *why) {
    int before = s->count;
    check(count >= 0);
    if (count > SEEDS_MAX - before)
        return reasonSet(why, ERR_LIMIT, "There can be at most %d cluster seeds", SEEDS_MAX);
    if (count == 0) return OK;
    s->items = memRealloc(s->items, (size_t)(before + count) * sizeof(*s->items));
    for (int i = 0; i < count; i++) {
        if (!parseSeed(words[i], &s->items[s->count])) {
            while (s->count > before) strFree(&s->items[--s->count].host);
            return reasonSet(why, ERR_SYNTAX,
                             "Invalid cluster seed '%.*s': it must be HOST:PORT or "
                             "HOST:PORT@BUSPORT",
                             (int)sizeMin(words[i].len, NODE_HOSTNAME_MAX), words[i].ptr);
        }
        s->count++;
    }
    check(s->count == before + count);
    return OK;
}

void seedsPrint(const clusterSeeds *s, str *out) {
    check(s->count <= SEEDS_MAX);
    for (int i = 0; i < s->count; i++) {
        const clusterSeed *seed = &s->items[i];
        bool ip6 = memchr(seed->host.ptr, ':', seed->host.len);
        check(seed->host.len > 0);
        strAppendFormat(out, ip6 ? "%s[%s]:%d" : "%s%s:%d", i ? " " : "", strText(&seed->host),
                        seed->port);
        if (seed->has_bus_port) strAppendFormat(out, "@%d", seed->bus_port);
    }
}

void seedsClear(clusterSeeds *s) {
    check(s->count >= 0);
    for (int i = 0; i < s->count; i++) strFree(&s->items[i].host);
    memFree(s->items);
    *s = (clusterSeeds){.items = NULL};
}
