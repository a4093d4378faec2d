/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A load generator for the benchmarks: one thread, many connections, one request over and over.
 *
 *     load [-c CLIENTS] [-P PIPELINE] [-n REQUESTS] [-r RANGE] [-R RATE] PORT REQUEST
 *
 * REQUEST is one argument, written as request_text.h tells. Without -R each client sends the next pipeline when the last
 * is answered, and the requests per second are printed. With -R (pipeline 1) requests have times of their own, random
 * but of that rate, whether answers come or not: a latency counts from the time at which the request was meant to go
 * out, not from when a client was free to send it. Prints "rate|p50|p90|p99|p99.9|most" in microseconds then. Spins:
 * give it a processor of its own. Ends badly at the first error reply. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "request_text.h"

enum { CLIENTS_MAX = 20000, IN_BYTES = 1 << 18 };

typedef struct connection {
    int fd;
    int waiting;   /* replies still to come */
    int64_t items; /* values still to come of the present reply */
    size_t skip;   /* bytes of a value still to come */
    char line[64]; /* of an incomplete line */
    size_t line_len;
    char *out;
    size_t out_len, out_sent;
    double meant_us; /* open loop */
} connection;

static struct {
    int port, clients, pipeline;
    int64_t requests;
    double rate;
    requestNumbers numbers;
    requestText text;
} options = {.clients = 50, .pipeline = 1, .requests = 100000, .numbers = {1000000, 0, 1}};

static connection *connections;
static int epoll_fd;
static int64_t sent, answered;
static connection **idle; /* open loop: those with nothing to wait for */
static int idle_count;
static double *latencies_us;

static void __attribute__((noreturn)) fail(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double nowUs(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void watch(connection *c, int op, uint32_t events) {
    struct epoll_event e = {.events = events, .data = {.ptr = c}};
    if (epoll_ctl(epoll_fd, op, c->fd, &e) != 0) fail("epoll_ctl");
}

static void connectOne(connection *c) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options.port)};
    int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        fail("connect");
    if (setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) fail("setsockopt");
    if (fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0) fail("fcntl");
    c->out = malloc(options.text.len * (size_t)options.pipeline);
    if (!c->out) fail("malloc");
    watch(c, EPOLL_CTL_ADD, EPOLLIN);
}

static void flush(connection *c) {
    ssize_t n = write(c->fd, c->out + c->out_sent, c->out_len - c->out_sent);
    if (n < 0 && errno != EAGAIN) fail("write");
    bool blocked = c->out_sent > 0; /* the loop watches for room already */
    if (n > 0) c->out_sent += (size_t)n;
    if (c->out_sent < c->out_len) {
        if (!blocked) watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
    } else {
        if (blocked) watch(c, EPOLL_CTL_MOD, EPOLLIN);
        c->out_len = c->out_sent = 0;
    }
}

static void sendNext(connection *c) {
    int count = options.pipeline;
    if (count > options.requests - sent) count = (int)(options.requests - sent);
    for (int i = 0; i < count; i++)
        c->out_len += requestWrite(&options.text, &options.numbers, c->out + c->out_len);
    c->waiting = count;
    sent += count;
    if (count) flush(c);
}

/* A line that begins a value: how many values and bytes are to follow. */
static void takeLine(connection *c, const char *line) {
    long long number = atoll(line + 1);
    c->items--;
    switch (line[0]) {
    case '-': fprintf(stderr, "load: error reply: %s\n", line); exit(1);
    case '$':
    case '=': c->skip = number < 0 ? 0 : (size_t)number + 2; break;
    case '*':
    case '~': c->items += number > 0 ? number : 0; break;
    case '%': c->items += 2 * number; break;
    default: break;
    }
}

static void replyDone(connection *c) {
    answered++;
    if (--c->waiting) return;
    if (options.rate == 0) {
        sendNext(c);
        return;
    }
    latencies_us[answered - 1] = nowUs() - c->meant_us;
    idle[idle_count++] = c;
}

static void take(connection *c, const char *bytes, size_t len) {
    for (size_t at = 0; at < len;) {
        if (c->skip) {
            size_t n = c->skip < len - at ? c->skip : len - at;
            c->skip -= n;
            at += n;
        } else {
            if (!c->items && !c->line_len) c->items = 1; /* a reply begins */
            const char *end = memchr(bytes + at, '\n', len - at);
            size_t n = end ? (size_t)(end - bytes) + 1 - at : len - at;
            size_t room = sizeof(c->line) - 1 - c->line_len;
            memcpy(c->line + c->line_len, bytes + at, n < room ? n : room);
            c->line_len += n < room ? n : room;
            at += n;
            if (!end) return;
            c->line[c->line_len] = 0;
            c->line_len = 0;
            takeLine(c, c->line);
        }
        if (!c->items && !c->skip) replyDone(c);
    }
}

static void turn(int wait_ms) {
    static struct epoll_event events[1024];
    static char in[IN_BYTES];
    int count = epoll_wait(epoll_fd, events, 1024, wait_ms);
    for (int i = 0; i < count; i++) {
        connection *c = events[i].data.ptr;
        if (events[i].events & EPOLLOUT) flush(c);
        if (!(events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))) continue;
        ssize_t n = read(c->fd, in, sizeof(in));
        if (n == 0) {
            fprintf(stderr, "load: the server closed a connection\n");
            exit(1);
        }
        if (n < 0 && errno != EAGAIN) fail("read");
        if (n > 0) take(c, in, (size_t)n);
    }
}

static void runClosed(void) {
    double began = nowUs();
    for (int i = 0; i < options.clients; i++) sendNext(&connections[i]);
    while (answered < options.requests) turn(1000);
    printf("%.0f\n", (double)options.requests / (nowUs() - began) * 1e6);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Times to the next request are exponential, as when many strangers ask. */
static double gapUs(void) {
    static uint64_t state = 42;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    double uniform = ((double)(state >> 11) + 1) / 9007199254740993.0;
    return -log(uniform) / options.rate * 1e6;
}

static void runOpen(void) {
    latencies_us = malloc(sizeof(double) * (size_t)options.requests);
    idle = malloc(sizeof(*idle) * (size_t)options.clients);
    if (!latencies_us || !idle) fail("malloc");
    for (int i = 0; i < options.clients; i++) idle[idle_count++] = &connections[i];
    double began = nowUs(), due = began + gapUs();
    while (answered < options.requests) {
        for (double now = nowUs(); sent < options.requests && due <= now && idle_count;) {
            connection *c = idle[--idle_count];
            c->meant_us = due;
            sendNext(c);
            due += gapUs();
        }
        turn(0);
    }
    double rate = (double)options.requests / (nowUs() - began) * 1e6;
    qsort(latencies_us, (size_t)options.requests, sizeof(double), compare);
    static const double parts[] = {0.5, 0.9, 0.99, 0.999, 1};
    printf("%.0f", rate);
    for (int i = 0; i < 5; i++) {
        int64_t at = (int64_t)(parts[i] * (double)options.requests);
        printf("|%.0f", latencies_us[at < options.requests ? at : options.requests - 1]);
    }
    printf("\n");
}

static void readOptions(int argc, char **argv) {
    int option;
    while ((option = getopt(argc, argv, "c:P:n:r:R:")) != -1) {
        switch (option) {
        case 'c': options.clients = atoi(optarg); break;
        case 'P': options.pipeline = atoi(optarg); break;
        case 'n': options.requests = atoll(optarg); break;
        case 'r': options.numbers.range = strtoull(optarg, NULL, 10); break;
        case 'R': options.rate = atof(optarg); break;
        default: exit(2);
        }
    }
    bool good = optind + 2 == argc && options.clients > 0 && options.clients <= CLIENTS_MAX &&
                options.pipeline > 0 && options.requests > 0 && options.numbers.range > 0 &&
                (options.rate == 0 || options.pipeline == 1);
    if (!good) {
        fprintf(stderr, "usage: load [-c CLIENTS] [-P PIPELINE] [-n REQUESTS] [-r RANGE] [-R RATE] "
                        "PORT REQUEST\n");
        exit(2);
    }
    options.port = atoi(argv[optind]);
    requestTextInit(&options.text, argv[optind + 1]);
}

int main(int argc, char **argv) {
    readOptions(argc, argv);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    connections = calloc((size_t)options.clients, sizeof(*connections));
    if (epoll_fd < 0 || !connections) fail("start");
    for (int i = 0; i < options.clients; i++) connectOne(&connections[i]);
    if (options.rate > 0) {
        runOpen();
    } else {
        runClosed();
    }
    return 0;
}
