/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The least that a server can cost on this kernel: an epoll loop that counts complete requests and
 * answers each with the same bytes. It looks up nothing, allocates nothing per request and keeps no
 * time. What a real server costs above it is what its code can change; `beside.py floor` prints
 * that.
 *
 *     floor PORT REPLY        REPLY are the bytes of one reply, with CR and LF
 *
 * One read() and one write() per connection and turn. A request that has not arrived completely
 * waits in the buffer of its connection. Requests must be arrays; a connection that sends anything
 * else, or more than IN_BYTES at once without a complete request, is closed. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IN_BYTES = 64 * 1024, REPLIES_MAX = 4096, EVENTS_MAX = 256 };

typedef struct connection {
    int fd;
    size_t len; /* bytes of an incomplete request */
    char in[IN_BYTES];
} connection;

static char *replies; /* the reply, REPLIES_MAX times */
static size_t reply_len;
static int epoll_fd;

static void __attribute__((noreturn)) fail(const char *what) {
    perror(what);
    exit(1);
}

/* Reads "<lead>number\r\n"; returns the address after it, NULL if it is incomplete or something
 * else. */
static const char *number(const char *at, const char *end, char lead, size_t *value) {
    if (at == end || *at++ != lead) return NULL;
    for (*value = 0; at < end && *at != '\r'; at++) *value = *value * 10 + (size_t)(*at - '0');
    return end - at >= 2 ? at + 2 : NULL;
}

/* The address after the request at `at`, NULL if it is not complete. */
static const char *requestEnd(const char *at, const char *end) {
    size_t count, len;
    at = number(at, end, '*', &count);
    for (; at && count; count--) {
        at = number(at, end, '$', &len);
        if (!at || (size_t)(end - at) < len + 2) return NULL;
        at += len + 2;
    }
    return at;
}

static void answer(connection *c, size_t count) {
    for (size_t left = count * reply_len; left > 0;) {
        size_t most = REPLIES_MAX * reply_len;
        ssize_t n = write(c->fd, replies, left < most ? left : most); /* the socket blocks */
        if (n < 0) fail("write");
        left -= (size_t)n;
    }
}

static void serve(connection *c) {
    ssize_t n = read(c->fd, c->in + c->len, sizeof(c->in) - c->len);
    if (n > 0) c->len += (size_t)n;
    const char *at = c->in, *end = c->in + c->len;
    size_t count = 0;
    for (const char *next; (next = requestEnd(at, end)) != NULL; at = next) count++;
    if (n <= 0 || c->in[0] != '*' || (count == 0 && c->len == sizeof(c->in))) {
        close(c->fd);
        free(c);
        return;
    }
    c->len = (size_t)(end - at);
    if (c->len > 0 && count > 0) memmove(c->in, at, c->len);
    answer(c, count);
}

static void watch(int fd, void *context) {
    struct epoll_event e = {.events = EPOLLIN, .data = {.ptr = context}};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) != 0) fail("epoll_ctl");
}

static void acceptOne(int listener) {
    int on = 1;
    connection *c = malloc(sizeof(*c));
    if (!c) fail("malloc");
    c->len = 0;
    c->fd = accept(listener, NULL, NULL);
    if (c->fd < 0) fail("accept");
    if (setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) fail("setsockopt");
    watch(c->fd, c);
}

static int listenOn(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) fail("socket");
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) fail("bind");
    if (listen(fd, 511) != 0) fail("listen");
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: floor PORT REPLY\n");
        return 2;
    }
    reply_len = strlen(argv[2]);
    replies = malloc(REPLIES_MAX * reply_len + 1);
    if (!replies || reply_len == 0) fail("reply");
    for (int i = 0; i < REPLIES_MAX; i++)
        memcpy(replies + (size_t)i * reply_len, argv[2], reply_len);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) fail("epoll_create1");
    int listener = listenOn(atoi(argv[1]));
    watch(listener, NULL);
    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(epoll_fd, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr) {
                serve(events[i].data.ptr);
            } else {
                acceptOne(listener);
            }
        }
    }
}
