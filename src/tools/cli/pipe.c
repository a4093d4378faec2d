/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --pipe (modes.h): sends standard input to the server while replies are read. The end is an ECHO
 * with a random text, which is sent after all input. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "tools/cli/job_progress.h"
#include "tools/cli/modes.h"

enum { MARK_LEN = 20, BUFFER_BYTES = 64 * 1024 };

typedef struct pipeJob {
    valkeyContext *context;
    const cliOptions *options;
    jobProgress progress;
    char buffer[BUFFER_BYTES];
    size_t len, sent; /* bytes of `buffer`, and those of them that were written */
    char mark[MARK_LEN + 1];
    bool input_ended, finished;
    long long errors, replies;
    uint64_t total_sent;
    int64_t last_received_ms;
} pipeJob;

static void takeReply(pipeJob *p, valkeyReply *reply) {
    if (reply->type == VALKEY_REPLY_ERROR) {
        fprintf(stderr, "%s\n", reply->str);
        p->errors++;
    } else if (p->input_ended && reply->type == VALKEY_REPLY_STRING && reply->len == MARK_LEN &&
               !memcmp(reply->str, p->mark, MARK_LEN)) {
        puts("Last reply received from server.");
        p->finished = true;
        p->replies--;
    }
    p->replies++;
}

/* False if the connection failed. */
static bool receive(pipeJob *p) {
    if (valkeyBufferRead(p->context) != VALKEY_OK) {
        if (p->context->err != VALKEY_ERR_EOF)
            fprintf(stderr, "Error reading from server: %s\n", p->context->errstr);
        return false;
    }
    p->last_received_ms = clockMonoMs();
    for (;;) {
        void *reply = NULL;
        if (valkeyGetReplyFromReader(p->context, &reply) != VALKEY_OK) {
            fprintf(stderr, "Error reading replies from server: %s\n", p->context->errstr);
            return false;
        }
        if (!reply) return true;
        takeReply(p, reply);
        freeReplyObject(reply);
    }
}

/* Queues the end mark: a line break first, because the input may end within an inline command. */
static void queueMark(pipeJob *p) {
    randomHex(p->mark, MARK_LEN);
    p->len = (size_t)snprintf(p->buffer, sizeof(p->buffer), "\r\n*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n",
                              MARK_LEN, p->mark);
    p->sent = 0;
    p->input_ended = true;
    puts("All data transferred. Waiting for the last reply...");
    fflush(stdout);
}

/* Sends what the socket takes now. False if the connection failed. */
static bool sendSome(pipeJob *p) {
    while (p->sent < p->len || !p->input_ended) {
        if (p->sent == p->len) {
            ssize_t count = read(STDIN_FILENO, p->buffer, sizeof(p->buffer));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) {
                fprintf(stderr, "Error reading from stdin: %s\n", strerror(errno));
                return false;
            }
            p->len = (size_t)count;
            p->sent = 0;
            if (count == 0) queueMark(p);
        }
        ssize_t count = valkeyWriteBytes(p->context, p->buffer + p->sent, p->len - p->sent);
        if (count < 0) {
            fprintf(stderr, "Error writing to the server: %s\n", p->context->errstr);
            return false;
        }
        if (count == 0) return true;
        p->sent += (size_t)count;
        p->total_sent += (uint64_t)count;
        jobProgressAt(&p->progress, p->total_sent);
    }
    return true;
}

static bool runJob(pipeJob *p) {
    int64_t timeout_ms = p->options->pipe_timeout_s * 1000;
    p->last_received_ms = clockMonoMs();
    while (!p->finished) {
        struct pollfd fd = {.fd = p->context->fd, .events = POLLIN};
        if (p->sent < p->len || !p->input_ended) fd.events |= POLLOUT;
        int ready = poll(&fd, 1, 1000);
        if (ready > 0 && fd.revents & (POLLIN | POLLHUP | POLLERR) && !receive(p)) return false;
        if (ready > 0 && fd.revents & POLLOUT && !sendSome(p)) return false;
        if (!p->input_ended) p->last_received_ms = clockMonoMs();
        if (timeout_ms > 0 && clockMonoMs() - p->last_received_ms > timeout_ms) {
            fprintf(stderr, "No replies for %d seconds: exiting.\n", (int)(timeout_ms / 1000));
            p->errors++;
            return true;
        }
    }
    return true;
}

int modePipe(connection *c) {
    if (!connectionConnect(c)) return 1;
    static pipeJob job;
    job.context = c->context;
    job.options = c->options;
    jobProgressBegin(&job.progress, c->options->progress, "pipe", "bytes", 0);
    int flags = fcntl(c->context->fd, F_GETFL);
    fcntl(c->context->fd, F_SETFL, flags | O_NONBLOCK);
    c->context->flags &= ~VALKEY_BLOCK;
    if (!runJob(&job)) return 1;
    jobProgressEnd(&job.progress, job.total_sent);
    printf("errors: %lld, replies: %lld\n", job.errors, job.replies);
    return job.errors ? 1 : 0;
}
