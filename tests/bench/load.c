/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A load generator for the benchmarks: one thread, many connections, one request over and over.
 *
 *     load [-c CLIENTS] [-P PIPELINE] [-n REQUESTS] [-r RANGE] PORT REQUEST
 *     load -R RATE [-S SLICES] [-K] [-W] [-c CLIENTS] [-n REQUESTS] [-r RANGE] PORT[,PORT...]
 *     REQUEST
 *
 * REQUEST is one argument, written as request_text.h tells. Without -R each client sends the next
 * pipeline when the last is answered, and the requests per second are printed.
 *
 * With -R requests have times of their own, random but of that rate, whether answers come or not: a
 * latency counts from the time at which the request was meant to go out, not from when a client was
 * free to send it. Servers take turns, a slice each, so that what disturbs this machine disturbs
 * them all alike: -n requests in SLICES slices to each. A round of slices in which a hypervisor
 * took the processors away is done again, but no more than STOLEN_MAX are, and none with -K. For
 * each server it prints "rate|p50|p90|p99|p99.9|most" in microseconds, after them "p50|p99|p99.9"
 * once more, of the slice in the middle, and last how many rounds were done again. Spins: give it a
 * processor of its own; with -W it sleeps until the next request is due, which costs some accuracy.
 * A load of one slice ends early at SIGTERM: no further request is sent, and the figures are those
 * of the requests so far, so that a load can last as long as something else.
 * Ends badly at the first error reply. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "request_text.h"

enum { CLIENTS_MAX = 20000, IN_BYTES = 1 << 18, TARGETS_MAX = 8, PARTS_MAX = 8, STOLEN_MAX = 1000 };

typedef struct target target;

typedef struct connection {
    target *target;
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

/* A server. */
struct target {
    int port;
    connection *connections;
    int64_t sent, answered;
    connection **idle; /* open loop: those with nothing to wait for */
    int idle_count;
    double *latencies_us;
    double spent_us;           /* in its slices */
    int64_t done;              /* requests in them, with those done again */
    double *slices[PARTS_MAX]; /* parts of each slice */
};

static struct {
    int clients, pipeline, slices;
    bool keeps; /* slices that a hypervisor has disturbed */
    bool sleeps;
    int64_t requests;
    double rate;
    requestNumbers numbers;
    requestText text;
} options = {
    .clients = 50, .pipeline = 1, .slices = 1, .requests = 100000, .numbers = {1000000, 0, 1}};

static target targets[TARGETS_MAX];
static int target_count;
static int epoll_fd;
static volatile sig_atomic_t terminated; /* SIGTERM has come */

/* Latencies to print: of all requests, and of the median slice. */
static const double all_parts[] = {0.5, 0.9, 0.99, 0.999, 1}, slice_parts[] = {0.5, 0.99, 0.999};
enum {
    ALL_PARTS = sizeof(all_parts) / sizeof(double),
    SLICE_PARTS = sizeof(slice_parts) / sizeof(double)
};

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
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)c->target->port)};
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
    target *t = c->target;
    int count = options.pipeline;
    if (count > options.requests - t->sent) count = (int)(options.requests - t->sent);
    for (int i = 0; i < count; i++)
        c->out_len += requestWrite(&options.text, &options.numbers, c->out + c->out_len);
    c->waiting = count;
    t->sent += count;
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
    target *t = c->target;
    t->answered++;
    if (--c->waiting) return;
    if (options.rate == 0) {
        sendNext(c);
        return;
    }
    t->latencies_us[t->answered - 1] = nowUs() - c->meant_us;
    t->idle[t->idle_count++] = c;
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

/* Waits for `wait_us` at most. */
static void turn(double wait_us) {
    static struct epoll_event events[1024];
    static char in[IN_BYTES];
    int64_t ns = wait_us > 0 ? (int64_t)(wait_us * 1000) : 0;
    struct timespec wait = {ns / 1000000000, ns % 1000000000};
    int count = epoll_pwait2(epoll_fd, events, 1024, &wait, NULL);
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

static void runClosed(target *t) {
    double began = nowUs();
    for (int i = 0; i < options.clients; i++) sendNext(&t->connections[i]);
    while (t->answered < options.requests) turn(1e6);
    printf("%.0f\n", (double)options.requests / (nowUs() - began) * 1e6);
}

/* Times to the next request are exponential, as with many independent clients. */
static double gapUs(void) {
    static uint64_t state = 42;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    double uniform = ((double)(state >> 11) + 1) / 9007199254740993.0;
    return -log(uniform) / options.rate * 1e6;
}

/* Sends the requests up to number `end`, or until SIGTERM, and waits for their answers. */
static void runSlice(target *t, int64_t end) {
    int64_t first = t->answered;
    double began = nowUs(), due = began + gapUs();
    while (t->answered < end) {
        if (terminated) end = t->sent;
        if (t->answered == end) break;
        for (double now = nowUs(); t->sent < end && due <= now && t->idle_count;) {
            connection *c = t->idle[--t->idle_count];
            c->meant_us = due;
            sendNext(c);
            due += gapUs();
        }
        bool may_send = t->sent < end && t->idle_count;
        turn(!options.sleeps ? 0 : may_send ? due - nowUs() : 1e6);
    }
    t->spent_us += nowUs() - began;
    t->done += end - first;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(double *figures, int64_t count) {
    qsort(figures, (size_t)count, sizeof(double), compare);
}

/* Of sorted figures. */
static double part(const double *figures, int64_t count, double share) {
    int64_t at = (int64_t)(share * (double)count);
    return figures[at < count ? at : count - 1];
}

/* Time that a hypervisor took from this machine so far, in ticks; 0 where it is not reported. */
static long stolen(void) {
    long ticks = 0;
    FILE *file = fopen("/proc/stat", "r");
    if (!file) return 0;
    if (fscanf(file, "cpu %*d %*d %*d %*d %*d %*d %*d %ld", &ticks) != 1) ticks = 0;
    fclose(file);
    return ticks;
}

/* One slice to each server, number `slice`; every other time in the other order. */
static void runRound(int slice) {
    for (int i = 0; i < target_count; i++) {
        target *t = &targets[slice % 2 ? target_count - 1 - i : i];
        int64_t first = options.requests * slice / options.slices,
                end = options.requests * (slice + 1) / options.slices;
        t->sent = t->answered = first;
        runSlice(t, end);
        if (t->answered == first) exit(1); /* terminated before the first answer */
        sort(t->latencies_us + first, t->answered - first);
        for (int k = 0; k < SLICE_PARTS; k++)
            t->slices[k][slice] =
                part(t->latencies_us + first, t->answered - first, slice_parts[k]);
    }
}

static void runOpen(void) {
    int again = 0;
    for (int slice = 0; slice < options.slices;) {
        long before = stolen();
        runRound(slice);
        if (options.keeps || stolen() == before || again == STOLEN_MAX) {
            slice++;
        } else {
            again++;
        }
    }
    for (target *t = targets; t < targets + target_count; t++) {
        printf("%.0f", (double)t->done / t->spent_us * 1e6);
        sort(t->latencies_us, t->answered);
        for (int i = 0; i < ALL_PARTS; i++)
            printf("|%.0f", part(t->latencies_us, t->answered, all_parts[i]));
        for (int i = 0; i < SLICE_PARTS; i++) {
            sort(t->slices[i], options.slices);
            printf("|%.0f", part(t->slices[i], options.slices, 0.5));
        }
        printf("|%d\n", again);
    }
}

static void *new (size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory) fail("calloc");
    return memory;
}

static void prepare(target *t) {
    size_t clients = (size_t)options.clients;
    t->connections = new (clients, sizeof(*t->connections));
    for (size_t i = 0; i < clients; i++) {
        t->connections[i].target = t;
        connectOne(&t->connections[i]);
    }
    if (options.rate == 0) return;
    t->latencies_us = new ((size_t)options.requests, sizeof(double));
    t->idle = new (clients, sizeof(*t->idle));
    for (size_t i = 0; i < clients; i++) t->idle[t->idle_count++] = &t->connections[i];
    for (int i = 0; i < SLICE_PARTS; i++)
        t->slices[i] = new ((size_t)options.slices, sizeof(double));
}

static void readPorts(char *ports) {
    for (char *port = strtok(ports, ","); port && target_count < TARGETS_MAX;
         port = strtok(NULL, ","))
        targets[target_count++].port = atoi(port);
}

static void readOptions(int argc, char **argv) {
    int option;
    while ((option = getopt(argc, argv, "c:P:n:r:R:S:KW")) != -1) {
        switch (option) {
        case 'c': options.clients = atoi(optarg); break;
        case 'P': options.pipeline = atoi(optarg); break;
        case 'n': options.requests = atoll(optarg); break;
        case 'r': options.numbers.range = strtoull(optarg, NULL, 10); break;
        case 'R': options.rate = atof(optarg); break;
        case 'S': options.slices = atoi(optarg); break;
        case 'K': options.keeps = true; break;
        case 'W': options.sleeps = true; break;
        default: exit(2);
        }
    }
    if (optind + 2 == argc) readPorts(argv[optind]);
    bool good = target_count > 0 && options.clients > 0 && options.clients <= CLIENTS_MAX &&
                options.pipeline > 0 && options.slices > 0 && options.requests >= options.slices &&
                options.numbers.range > 0;
    bool open = options.rate > 0;
    if (!good || (open ? options.pipeline > 1 : target_count > 1 || options.slices > 1)) {
        fprintf(
            stderr,
            "usage: load [-c CLIENTS] [-P PIPELINE] [-n REQUESTS] [-r RANGE] [-R RATE [-S SLICES]] "
            "PORT[,PORT...] REQUEST\n");
        exit(2);
    }
    requestTextInit(&options.text, argv[optind + 1]);
}

static void terminate(int number) {
    (void)number;
    terminated = 1;
}

int main(int argc, char **argv) {
    readOptions(argc, argv);
    if (options.rate > 0 && options.slices == 1) signal(SIGTERM, terminate);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) fail("epoll_create1");
    for (target *t = targets; t < targets + target_count; t++) prepare(t);
    if (options.rate > 0) {
        runOpen();
    } else {
        runClosed(targets);
    }
    return 0;
}
