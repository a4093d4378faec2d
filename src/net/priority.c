/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Invariant: `subnets` are those of the directive; IPv4 addresses have the form of IPv6 ones. */
#include "net/priority.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "base/number.h"
#include "net/net_priv.h"

enum { SUBNET_TEXT_MAX = 64, IP4_PREFIX = 96, IP6_BITS = 128 };

typedef struct subnet {
    uint8_t address[16];
    int bits; /* that count, from the first one on */
} subnet;

static subnet *subnets;
static int subnet_count;
static int clients;

static void mapIp4(const void *ip4, uint8_t to[16]) {
    memset(to, 0, 10);
    to[10] = to[11] = 0xff;
    memcpy(to + 12, ip4, 4);
}

static bool matches(const subnet *s, const uint8_t address[16]) {
    hotCheck(s->bits >= 0);
    hotCheck(s->bits <= IP6_BITS);
    int whole = s->bits / 8, rest = s->bits % 8;
    if (memcmp(s->address, address, (size_t)whole) != 0) return false;
    if (!rest) return true;
    return (s->address[whole] ^ address[whole]) >> (8 - rest) == 0;
}

/* "10.0.0.0/8", "::1", ... */
static bool parse(slice text, subnet *out) {
    char address[SUBNET_TEXT_MAX];
    const char *slash = memchr(text.ptr, '/', text.len);
    size_t len = slash ? (size_t)(slash - text.ptr) : text.len;
    if (len >= sizeof(address)) return false;
    memcpy(address, text.ptr, len);
    address[len] = '\0';
    uint8_t ip4[4];
    bool is_ip4 = inet_pton(AF_INET, address, ip4) == 1;
    if (is_ip4) mapIp4(ip4, out->address);
    if (!is_ip4 && inet_pton(AF_INET6, address, out->address) != 1) return false;
    int64_t most = is_ip4 ? IP6_BITS - IP4_PREFIX : IP6_BITS, bits = most;
    if (slash && (!numberParseInt(sliceMake(slash + 1, text.len - len - 1), &bits) || bits < 0 ||
                  bits > most))
        return false;
    hotCheck(bits >= 0);
    hotCheck(bits <= most);
    out->bits = (int)bits + (is_ip4 ? IP4_PREFIX : 0);
    return true;
}

static bool isSeparator(char c) { return c == ',' || c == ' ' || c == '\t'; }

status priorityApply(reason *why) {
    const char *at = netConf.priority_subnets;
    subnet *list = NULL;
    int count = 0;
    while (*at) {
        size_t len = 0;
        while (at[len] && !isSeparator(at[len])) len++;
        subnet s;
        if (len && !parse(sliceMake(at, len), &s)) {
            memFree(list);
            return reasonSet(why, ERR_SYNTAX, "Invalid IP address or CIDR subnet");
        }
        if (len) {
            list = memRealloc(list, (size_t)(count + 1) * sizeof(*list));
            list[count++] = s;
        }
        at += len ? len : 1;
    }
    memFree(subnets);
    subnets = list;
    subnet_count = count;
    return OK;
}

bool priorityHas(int fd) {
    struct sockaddr_storage peer;
    socklen_t len = sizeof(peer);
    uint8_t address[16];
    if (likely(!subnet_count) || getpeername(fd, (struct sockaddr *)&peer, &len) != 0) return false;
    if (peer.ss_family == AF_INET) {
        mapIp4(&((struct sockaddr_in *)&peer)->sin_addr, address);
    } else if (peer.ss_family == AF_INET6) {
        memcpy(address, &((struct sockaddr_in6 *)&peer)->sin6_addr, sizeof(address));
    } else {
        return false;
    }
    for (int i = 0; i < subnet_count; i++) {
        if (matches(&subnets[i], address)) return true;
    }
    return false;
}

int64_t priorityNormalMax(void) {
    hotCheck(netConf.maxclients_reserved >= 0);
    if (likely(!subnet_count)) return netConf.maxclients;
    int64_t most = netConf.maxclients - netConf.maxclients_reserved;
    return most > 0 ? most : 0;
}

void priorityCount(int by) {
    clients += by;
    hotCheck(clients >= 0);
}

int priorityClients(void) { return clients; }
