/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients on socket pairs, served by real turns of the loop: how bytes become requests, who waits,
 * who is closed, and what an idle one owns. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "engine/engine.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "engine/reply.h"
#include "engine/stream.h"
#include "engine/transaction.h"
#include "net/client.h"
#include "net/io_threads.h"
#include "net/io_threads_priv.h"
#include "net/net.h"
#include "net/net_priv.h"
#include "net/net_thread.h"
#include "net/reader_hostile.h"
#include "store/store.h"
#include "../io/xor_conn.h"

static loop *test_loop;

/* More turns than any exchange here takes, in the hostile build too, which reads a few bytes at a
 * time. */
enum { SETTLED = 100 };

static void sayCommand(ctx *c) { replyBulk(c, c->argv[1]); }

static void pauseCommand(ctx *c) {
    replyOk(c);
    c->who->flags |= SESSION_BLOCKED;
}

static void leaveCommand(ctx *c) {
    replyOk(c);
    sessionCloseSoon(c->who);
}

/* Takes as long as executeIsDue() tells of. */
static void slowCommand(ctx *c) {
    int64_t end_us = clockMonoUs() + 500;
    while (clockMonoUs() < end_us) continue;
    replyBulk(c, c->argv[1]);
}

static void killCommand(ctx *c) {
    list *all = clientAll();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        client *cl = LIST_OWNER(n, client, all);
        if (&cl->session != c->who) sessionCloseNow(&cl->session);
    }
    replyOk(c);
}

/* The received bytes, with a NUL; the length, or -1 at the end of the stream. A peer closed with
 * unread bytes (hostile builds read a few at a time) gets a reset. */
static ssize_t receive(int fd, char *dst, size_t cap) {
    ssize_t n = read(fd, dst, cap - 1);
    if (n == 0 || (n < 0 && errno == ECONNRESET)) return -1;
    if (n < 0) n = 0;
    dst[n] = 0;
    return n;
}

static void beginCommand(ctx *c) {
    transactionBegin(c->who);
    replyOk(c);
}

static void endCommand(ctx *c) { transactionRun(c); }

/* Checks in a nested turn what has been sent to the client whose command started it. */
static int nest_fd;
static char seen_while_nested[64];

/* Serves the others from inside, with half a reply built, as a long script does. */
static void nestCommand(ctx *c) {
    respDeferred head = respDeferBegin(c->out);
    replyStatus(c, SLICE("one"));
    sessionWantWrite(c->who);
    while (loopTurn(test_loop, false)) continue;
    (void)receive(nest_fd, seen_while_nested, sizeof(seen_while_nested));
    replyStatus(c, SLICE("two"));
    respDeferEnd(c->out, head, '*', c->proto, 2);
}

/* The same with input of two streams. */
static const int *stream_fds;
static client *streams[2];
static bool close_first;
static uint64_t streams_read_while_nested;

static void streamCommand(ctx *c) {
    for (int i = 0; i < 2; i++)
        assert_int_equal(write(stream_fds[i], "*2\r\n$3\r\nsay\r\n$1\r\nb\r\n", 20), 20);
    while (loopTurn(test_loop, false)) continue;
    streams_read_while_nested = streams[0]->session.bytes_in + streams[1]->session.bytes_in;
    if (close_first) sessionCloseNow(&streams[0]->session);
    replyOk(c);
}

#define SPEC(name_, proc_, arity_, flags_) \
    { \
        .name = (name_), .proc = (proc_), .arity = (arity_), .flags = (flags_), .group = "t", \
        .summary = "", .since = "1" \
    }

static const commandSpec specs[] = {
    SPEC("say", sayCommand, 2, CMD_QUICK | CMD_FAST),
    SPEC("pause", pauseCommand, 1, 0),
    SPEC("leave", leaveCommand, 1, 0),
    SPEC("slow", slowCommand, 2, 0),
    SPEC("kill", killCommand, 1, 0),
    SPEC("nest", nestCommand, 1, 0),
    SPEC("stream", streamCommand, 1, 0),
    SPEC("begin", beginCommand, 1, CMD_AT_ONCE),
    SPEC("end", endCommand, 1, CMD_AT_ONCE | CMD_RUNS_QUEUE),
};

static void beforeSleep(loop *l, void *arg) {
    (void)l, (void)arg;
    stagesRun(STAGE_EXECUTE, STAGE_FREE);
}

static int setup(void **state) {
    (void)state;
    static const feature *const features[] = {&engineFeature, &keyspaceFeature, &netFeature};
    static const configOption *tables[3];
    clockInit();
    static const gate *const gates[] = {&noMultiGate, &queueGate};
    hooksInstall(features, 3, gates, COUNT_OF(gates));
    tables[0] = engineFeature.options;
    tables[1] = netFeature.options;
    configInstall(tables, 2);
    storeInit(1, false);
    if (keyspaceFeature.init(NULL) != OK) return 1;
    commandInstall(specs, (int)COUNT_OF(specs), false);
    executeNewTurn();
    test_loop = loopNew("poll", NULL);
    loopSetBeforeSleep(test_loop, beforeSleep, NULL);
    netSetLoop(test_loop);
    return test_loop == NULL;
}

static int teardown(void **state) {
    (void)state;
    hostileShortReads(true);
    netCloseAll();
    loopFree(test_loop);
    commandUninstall();
    configUninstall();
    hooksUninstall();
    storeShutdown();
    return 0;
}

/* A client whose other end is the result. */
static int newClient(client **cl) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    *cl = clientNew(pair[0], &connUnix, SESSION_LOCAL);
    assert_non_null(*cl);
    return pair[1];
}

static void turns(int count) {
    while (count--) loopTurn(test_loop, false);
}

static void sendText(int fd, const char *text) {
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void expectReply(int fd, const char *want) {
    char got[4096] = "";
    (void)receive(fd, got, sizeof(got));
    assert_string_equal(got, want);
}

static void a_request_in_pieces_is_executed_when_complete(void **state) {
    (void)state;
    client *cl;
    int fd = newClient(&cl);
    const char *text = "*2\r\n$3\r\nsay\r\n$5\r\nhello\r\n";
    for (size_t i = 0; i < strlen(text); i++) {
        assert_int_equal(write(fd, text + i, 1), 1);
        turns(SETTLED);
        if (i + 1 < strlen(text)) assert_int_equal(outbufPending(&cl->session.out), 0);
    }
    expectReply(fd, "$5\r\nhello\r\n");
    assert_int_equal(cl->session.commands, 1);
    close(fd);
    turns(SETTLED);
}

static void an_idle_client_owns_no_buffers(void **state) {
    (void)state;
    client *cl;
    int fd = newClient(&cl);
    sendText(fd, "*2\r\n$3\r\nsay\r\n$2\r\nhi\r\n*2\r\n$3\r\nsa");
    turns(SETTLED);
    assert_int_equal(cl->in_len, 10);
    sendText(fd, "y\r\n$2\r\nho\r\n");
    turns(SETTLED);
    expectReply(fd, "$2\r\nhi\r\n$2\r\nho\r\n");
    assert_null(cl->in);
    assert_null(cl->parser.partial);
    assert_null(cl->session.out.first);
    assert_int_equal(clientMemory(cl), sizeof(client));
    close(fd);
    turns(SETTLED);
}

static void requests_after_a_blocking_command_run_later(void **state) {
    (void)state;
    client *cl;
    int fd = newClient(&cl);
    sendText(fd, "*1\r\n$5\r\npause\r\n*2\r\n$3\r\nsay\r\n$1\r\na\r\n*2\r\n$3\r\nsay\r\n$1\r");
    turns(SETTLED);
    expectReply(fd, "+OK\r\n");
    sendText(fd, "\nb\r\n");
    turns(SETTLED);
    expectReply(fd, "");
    cl->session.flags &= ~SESSION_BLOCKED;
    readerResume(cl);
    turns(SETTLED);
    expectReply(fd, "$1\r\na\r\n$1\r\nb\r\n");
    close(fd);
    turns(SETTLED);
}

enum { SLOW = 40 };

/* Sends a pipeline of SLOW slow requests; returns after the turn that has executed the first. */
static void sendSlow(int fd, const client *cl) {
    for (int i = 0; i < SLOW; i++) sendText(fd, "*2\r\n$4\r\nslow\r\n$1\r\na\r\n");
    while (!cl->session.commands) turns(1);
}

static void a_long_pipeline_lets_others_be_served(void **state) {
    (void)state;
    hostileShortReads(false);
    executeYield();
    client *cl, *second, *other;
    int fd = newClient(&cl), second_fd = newClient(&second), other_fd = newClient(&other);
    sendSlow(fd, cl);
    sendSlow(second_fd, second);
    assert_in_range(cl->session.commands, 1, SLOW - 1);
    sendText(other_fd, "*2\r\n$3\r\nsay\r\n$1\r\nb\r\n");
    turns(2); /* reads, executes */
    expectReply(other_fd, "$1\r\nb\r\n");
    assert_in_range(second->session.commands, 1, SLOW - 1);
    /* In each turn the one or the other goes on, and neither reads more before it is done. */
    sendText(fd, "*2\r\n$3\r\nsay\r\n$1\r\nz\r\n");
    int steps = 0;
    for (; cl->session.commands < SLOW || second->session.commands < SLOW; steps++) {
        assert_in_range(steps, 0, 10 * SLOW);
        turns(1);
    }
    assert_in_range(steps, 5, 10 * SLOW);
    turns(SETTLED);
    char want[SLOW * 16] = "";
    for (int i = 0; i < SLOW; i++) strcat(want, "$1\r\na\r\n");
    expectReply(second_fd, want);
    expectReply(fd, strcat(want, "$1\r\nz\r\n"));
    assert_null(cl->in);
    close(fd);
    close(second_fd);
    close(other_fd);
    turns(SETTLED);
}

static void a_client_ends_while_its_pipeline_is_postponed(void **state) {
    (void)state;
    hostileShortReads(false);
    executeYield();
    client *cl, *other;
    int fd = newClient(&cl), other_fd = newClient(&other);
    sendSlow(fd, cl);
    sendText(other_fd, "*1\r\n$4\r\nkill\r\n");
    turns(SETTLED);
    expectReply(other_fd, "+OK\r\n");
    assert_int_equal(clientAll()->count, 1);
    assert_int_equal(netMainThread()->postponed_count, 0);
    close(fd);
    close(other_fd);
    turns(SETTLED);
}

static void many_clients_are_freed_in_several_turns(void **state) {
    (void)state;
    hostileShortReads(false);
    enum { MANY = 150 };
    client *cl, *killer;
    int fds[MANY], fd = newClient(&killer), steps = 0;
    for (int i = 0; i < MANY; i++) fds[i] = newClient(&cl);
    sendText(fd, "*1\r\n$4\r\nkill\r\n");
    while (!killer->session.commands) turns(1);
    for (size_t count; (count = clientAll()->count) > 1; steps++) {
        turns(1);
        assert_in_range(count - clientAll()->count, 1, 64);
        assert_int_equal(netClientCount(), 1); /* the others count no more */
    }
    assert_int_equal(steps, 2); /* and the turn of the command */
    expectReply(fd, "+OK\r\n");
    for (int i = 0; i < MANY; i++) close(fds[i]);
    close(fd);
    turns(SETTLED);
}

static void a_nested_turn_never_writes_a_reply_that_is_being_built(void **state) {
    (void)state;
    hostileShortReads(false);
    client *cl, *other;
    nest_fd = newClient(&cl);
    int fd = newClient(&other);
    sendText(nest_fd, "*2\r\n$3\r\nsay\r\n$1\r\na\r\n*1\r\n$4\r\nnest\r\n");
    loopTurn(test_loop, false); /* reads; the next turn executes */
    sendText(fd, "*2\r\n$3\r\nsay\r\n$1\r\nb\r\n");
    stagesRun(STAGE_EXECUTE, STAGE_EXECUTE);
    assert_string_equal(seen_while_nested, "");
    expectReply(fd, "$1\r\nb\r\n");
    turns(SETTLED);
    expectReply(nest_fd, "$1\r\na\r\n*2\r\n+one\r\n+two\r\n");
    close(nest_fd);
    close(fd);
    turns(SETTLED);
}

/* The other client's request is in the same batch, after the command that starts the nested
 * turn. */
static void a_nested_turn_serves_clients_of_the_same_batch(void **state) {
    (void)state;
    hostileShortReads(false);
    client *cl, *whole, *part;
    int fd = newClient(&cl), whole_fd = newClient(&whole), part_fd = newClient(&part);
    nest_fd = whole_fd;
    sendText(fd, "*1\r\n$4\r\nnest\r\n*2\r\n$3\r\nsay\r\n$1\r\nc\r\n");
    sendText(whole_fd,
             "*2\r\n$3\r\nsay\r\n$1\r\na\r\n*2\r\n$3\r\nsay\r\n$1\r\nb\r\n*2\r\n$3\r\nsa");
    sendText(part_fd, "*2\r\n$3\r\nsay\r\n$1");
    turns(SETTLED);
    sendText(whole_fd, "y\r\n$1\r\nd\r\n");
    sendText(part_fd, "\r\ne\r\n");
    turns(SETTLED);
    assert_string_equal(seen_while_nested, "$1\r\na\r\n$1\r\nb\r\n");
    expectReply(fd, "*2\r\n+one\r\n+two\r\n$1\r\nc\r\n");
    expectReply(whole_fd, "$1\r\nd\r\n");
    expectReply(part_fd, "$1\r\ne\r\n");
    close(fd);
    close(whole_fd);
    close(part_fd);
    turns(SETTLED);
}

static void applied(client *cl, int fd, const char *bytes, uint64_t want) {
    sendText(fd, bytes);
    turns(SETTLED);
    assert_int_equal(streamApplied(&cl->session), want);
}

#define SAY_B "*2\r\n$3\r\nsay\r\n$1\r\nb\r\n"

static void the_stream_of_a_primary_is_counted_as_it_is_applied(void **state) {
    (void)state;
    client *cl;
    int fd = newClient(&cl);
    sessionSetOrigin(&cl->session, ORIGIN_PRIMARY);
    applied(cl, fd, "*2\r\n$3\r\nsay\r\n$1\r\na\r\n", 20);
    applied(cl, fd, "*2\r\n$3\r\nsay\r\n$1", 20); /* half a request is not applied */
    applied(cl, fd, "\r\na\r\n" SAY_B "\r\n" SAY_B, 20 + 20 + 20 + 2 + 20);
    applied(cl, fd, SAY_B "\r\n", 82 + 20); /* the blank line counts with what follows it */
    applied(cl, fd, "\r\n", 102);
    applied(cl, fd, SAY_B, 102 + 4 + 20);
    const uint64_t before = 126;
    applied(cl, fd, "*1\r\n$5\r\nbegin\r\n*2\r\n$3\r\nsay\r\n$1\r\na\r\n", before);
    applied(cl, fd, "*1\r\n$3\r\nend\r\n", before + 15 + 20 + 13);
    str large = STR_EMPTY; /* read into a block of its own */
    strAppendText(&large, "*2\r\n$3\r\nsay\r\n$100000\r\n");
    memset(strReserve(&large, 100000), 'x', 100000);
    strGrow(&large, 100000);
    strAppendText(&large, "\r\n");
    for (size_t at = 0; at < large.len; at += 10000) {
        size_t n = sizeMin(10000, large.len - at);
        assert_int_equal(write(fd, large.ptr + at, n), (ssize_t)n);
        turns(SETTLED);
    }
    assert_int_equal(streamApplied(&cl->session), before + 48 + large.len);
    strFree(&large);
    close(fd);
    turns(SETTLED);
}

static str taken;

/* Each of two streams has its bytes recorded with its number. */
static void takeNumbered(session *s, int db_id, const slice *spans, int count) {
    strAppendFormat(&taken, "%d", s == &streams[1]->session);
    if (db_id >= 0) strAppendFormat(&taken, "@%d", db_id);
    for (int i = 0; i < count; i++) strAppendFormat(&taken, " %zu", spans[i].len);
    strAppendText(&taken, ";");
}

static void noteFailed(ctx *c, slice error) {
    strAppendFormat(&taken, "%d %.*s;", c->who == &streams[1]->session, (int)error.len, error.ptr);
}

static void expectTaken(const char *want) {
    assert_string_equal(strText(&taken), want);
    strClear(&taken);
}

static void several_streams_are_told_apart(void **state) {
    (void)state;
    static const streamOwner first = {.applied = takeNumbered};
    static const streamOwner second = {.applied = takeNumbered, .failed = noteFailed};
    int fd[2];
    for (int i = 0; i < 2; i++) fd[i] = newClient(&streams[i]);
    streamOpen(&streams[0]->session, ORIGIN_PRIMARY, &first);
    streamOpen(&streams[1]->session, ORIGIN_IMPORT, &second);
    assert_int_equal(streams[1]->session.targets, PROPAGATE_AOF);
    assert_int_equal(streams[1]->session.flags & (SESSION_PRIMARY | SESSION_REPLAY),
                     SESSION_REPLAY);
    hostileShortReads(false);
    sendText(fd[0], SAY_B);
    sendText(fd[1], SAY_B SAY_B);
    turns(SETTLED);
    /* Their order is that of the loop's events. */
    if (taken.len && taken.ptr[0] == '1') {
        expectTaken("1@0 40;0@0 20;");
    } else {
        expectTaken("0@0 20;1@0 40;");
    }
    /* What is held because of a transaction of one does not hold the other back. */
    sendText(fd[0], "*1\r\n$5\r\nbegin\r\n" SAY_B);
    turns(SETTLED);
    sendText(fd[1], SAY_B "*1\r\n$5\r\nnosuc\r\n");
    turns(SETTLED);
    expectTaken("1 ERR unknown command 'nosuc', with args beginning with: ;1@0 35;");
    sendText(fd[0], "*1\r\n$3\r\nend\r\n");
    turns(SETTLED);
    expectTaken("0@0 35 13;");
    /* Nothing was replied, but what is sent arrives. */
    char got[64];
    assert_int_equal(receive(fd[1], got, sizeof(got)), 0);
    streamSend(&streams[1]->session, SLICE("*1\r\n"));
    turns(SETTLED);
    expectReply(fd[1], "*1\r\n");
    hostileShortReads(true);
    for (int i = 0; i < 2; i++) close(fd[i]);
    turns(SETTLED);
    strFree(&taken);
}

static void streams_wait_for_the_end_of_a_command_that_serves_others(void **state) {
    (void)state;
    static const streamOwner owner = {.applied = takeNumbered};
    client *other;
    int fd[2], other_fd = newClient(&other);
    for (int i = 0; i < 2; i++) {
        fd[i] = newClient(&streams[i]);
        streamOpen(&streams[i]->session, ORIGIN_IMPORT, &owner);
    }
    /* Both have input before the nested turns begin, and are read after them. */
    hostileShortReads(false);
    nest_fd = other_fd;
    stream_fds = fd;
    sendText(other_fd, "*1\r\n$6\r\nstream\r\n");
    turns(SETTLED);
    assert_int_equal(streams_read_while_nested, 0);
    assert_int_equal(streamApplied(&streams[0]->session), 20);
    assert_int_equal(streamApplied(&streams[1]->session), 20);
    /* One that is closed meanwhile is forgotten. */
    sendText(other_fd, "*1\r\n$6\r\nstream\r\n");
    close_first = true;
    turns(SETTLED);
    assert_int_equal(streamApplied(&streams[1]->session), 40);
    assert_int_equal(netClientCount(), 2);
    hostileShortReads(true);
    for (int i = 0; i < 2; i++) close(fd[i]);
    close(other_fd);
    turns(SETTLED);
    strFree(&taken);
}

/* What the owner of the stream is told. */
static int broken;

static void takeApplied(session *s, int db_id, const slice *spans, int count) {
    (void)s, (void)db_id;
    for (int i = 0; i < count; i++) strAppendSlice(&taken, spans[i]);
}

static void takeBroken(session *s, slice error) {
    (void)s, (void)error;
    broken++;
}

static void the_bytes_of_a_stream_are_passed_on_when_they_are_applied(void **state) {
    (void)state;
    static const streamOwner owner = {.applied = takeApplied, .broken = takeBroken};
    client *cl;
    int fd = newClient(&cl);
    streamOpen(&cl->session, ORIGIN_PRIMARY, &owner);
    str want = STR_EMPTY;
    strAppendText(&want, SAY_B "*1\r\n$5\r\nbegin\r\n*2\r\n$3\r\nsay\r\n$100000\r\n");
    memset(strReserve(&want, 100000), 'x', 100000);
    strGrow(&want, 100000);
    strAppendText(&want, "\r\n" SAY_B "*1\r\n$3\r\nend\r\n\r\n" SAY_B);
    size_t end = want.len - strlen(SAY_B "*1\r\n$3\r\nend\r\n\r\n" SAY_B);
    for (size_t at = 0; at < want.len;) {
        size_t n = at < end ? sizeMin(10000, end - at) : 1;
        assert_int_equal(write(fd, want.ptr + at, n), (ssize_t)n);
        turns(SETTLED);
        at += n;
        if (at == end) assert_int_equal(taken.len, strlen(SAY_B)); /* the rest is in MULTI */
    }
    assert_int_equal(taken.len, want.len);
    assert_memory_equal(taken.ptr, want.ptr, want.len);
    sendText(fd, "say b\r\n" SAY_B); /* inline */
    turns(SETTLED);
    assert_int_equal(broken, 1);
    assert_int_equal(taken.len, want.len);
    assert_int_equal(netClientCount(), 0);
    strFree(&taken);
    strFree(&want);
    close(fd);
}

static void quit_replies_and_nothing_more_runs(void **state) {
    (void)state;
    client *cl;
    int fd = newClient(&cl);
    sendText(fd, "*1\r\n$5\r\nleave\r\n*2\r\n$3\r\nsay\r\n$1\r\na\r\n");
    turns(SETTLED);
    expectReply(fd, "+OK\r\n");
    char end[8];
    assert_int_equal(receive(fd, end, sizeof(end)), -1);
    assert_int_equal(netClientCount(), 0);
    close(fd);
}

static void a_client_killed_by_another_of_the_same_batch_runs_nothing(void **state) {
    (void)state;
    hostileShortReads(false);
    client *killer, *victim;
    int killer_fd = newClient(&killer), victim_fd = newClient(&victim);
    sendText(killer_fd, "*1\r\n$4\r\nkill\r\n");
    sendText(victim_fd, "*2\r\n$3\r\nsay\r\n$1\r\na\r\n");
    turns(SETTLED);
    expectReply(killer_fd, "+OK\r\n");
    char end[8];
    assert_int_equal(receive(victim_fd, end, sizeof(end)), -1);
    assert_int_equal(netClientCount(), 1);
    close(killer_fd);
    close(victim_fd);
    turns(SETTLED);
}

static void a_protocol_error_comes_after_the_replies_before_it(void **state) {
    (void)state;
    client *cl;
    int fd = newClient(&cl);
    sendText(fd, "*2\r\n$3\r\nsay\r\n$1\r\na\r\n*x\r\n");
    turns(SETTLED);
    expectReply(fd, "$1\r\na\r\n-ERR Protocol error: invalid multibulk length\r\n");
    char end[8];
    assert_int_equal(receive(fd, end, sizeof(end)), -1);
    close(fd);
    turns(SETTLED);
    assert_int_equal(netClientCount(), 0);
}

static void output_over_the_hard_limit_closes(void **state) {
    (void)state;
    client *cl;
    int fd = newClient(&cl);
    netConf.output_limits[OUTPUT_NORMAL].hard_bytes = 100000;
    char big[2000];
    memset(big, 'x', sizeof(big));
    sessionWantWrite(&cl->session);
    for (int i = 0; i < 400; i++) respBulk(&cl->session.out, sliceMake(big, sizeof(big)));
    turns(SETTLED);
    assert_int_equal(netClientCount(), 0);
    assert_int_equal(netStats()->output_limit_closed, 1);
    netConf.output_limits[OUTPUT_NORMAL].hard_bytes = 0;
    close(fd);
}

static void bytes_announced_are_not_charged(void **state) {
    (void)state;
    client *cl;
    int fd = newClient(&cl);
    sendText(fd, "*2\r\n$3\r\nsay\r\n$500000000\r\nabc");
    turns(SETTLED);
    assert_true(clientMemory(cl) < 40000);
    close(fd);
    turns(SETTLED);
    assert_int_equal(netClientCount(), 0);
}

/* A type with a handshake serves requests like any other; reader and writer know nothing of it. */
static void a_connection_with_a_handshake_is_served(void **state) {
    (void)state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    client *cl = clientNew(pair[0], &xorType, SESSION_LOCAL);
    assert_non_null(cl);
    turns(SETTLED);
    assert_int_equal(cl->conn.state, CONN_HANDSHAKING);
    assert_true(xorGreet(pair[1]));
    /* More than one block of the type: what is decoded and not yet read must not wait for more to
     * come. */
    enum { SAYS = 6 };
    static const char say[] = "*2\r\n$3\r\nsay\r\n$5\r\nhello\r\n", said[] = "$5\r\nhello\r\n";
    for (int i = 0; i < SAYS; i++) assert_true(xorSend(pair[1], say, strlen(say)));
    turns(SETTLED);
    char ready, got[SAYS * sizeof(said)];
    assert_int_equal(recv(pair[1], &ready, 1, MSG_DONTWAIT), 1);
    assert_int_equal(ready, XOR_READY);
    assert_int_equal(xorReceive(pair[1], got, sizeof(got)), SAYS * (sizeof(said) - 1));
    for (size_t i = 0; i < SAYS; i++)
        assert_memory_equal(got + i * (sizeof(said) - 1), said, sizeof(said) - 1);
    assert_int_equal(cl->session.commands, SAYS);
    close(pair[1]);
    turns(SETTLED);
    assert_int_equal(netClientCount(), 0);
}

/* A client that fails its handshake is closed, and its session has run nothing. */
static void a_failed_handshake_closes_the_client(void **state) {
    (void)state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    assert_non_null(clientNew(pair[0], &xorType, SESSION_LOCAL));
    sendText(pair[1], "*2\r\n$3\r\nsay\r\n$2\r\nhi\r\n");
    turns(SETTLED);
    assert_int_equal(netClientCount(), 0);
    close(pair[1]);
}

static void *askOwner(void *client_of_main) {
    client *cl = client_of_main;
    return netThreadIsCurrent(cl->owner) ? cl : NULL;
}

/* What reader and writer keep belongs to the client's thread object: limits, counters; the sums
 * follow by folding. */
static void reader_and_writer_work_on_the_thread_that_owns_the_client(void **state) {
    (void)state;
    client *cl;
    int fd = newClient(&cl);
    pthread_t other;
    void *owns;
    assert_int_equal(pthread_create(&other, NULL, askOwner, cl), 0);
    assert_int_equal(pthread_join(other, &owns), 0);
    assert_null(owns);
    assert_ptr_equal(askOwner(cl), cl);

    static const char request[] = "*2\r\n$3\r\nsay\r\n$5\r\nhello\r\n";
    netStatistics before = *netStats();
    netThread second = {.read_bytes_max = 4, .write_bytes_max = 3};
    netThreadEnter(&second);
    cl->owner = &second;
    sendText(fd, request);
    for (int i = 0; i < SETTLED; i++) {
        turns(1);
        readerExecuteOf(&second);
    }
    char got[64];
    size_t len = 0;
    for (ssize_t n; (n = receive(fd, got + len, sizeof(got) - len)) > 0;) len += (size_t)n;
    assert_string_equal(got, "$5\r\nhello\r\n");
    assert_int_equal(second.counted.bytes_in, strlen(request));
    assert_true(second.counted.reads >= (strlen(request) + 3) / 4);
    assert_int_equal(second.counted.bytes_out, len);
    assert_int_equal(netStats()->bytes_in, before.bytes_in);
    netThreadFold(&second);
    assert_int_equal(second.counted.bytes_in, 0);
    assert_int_equal(netStats()->bytes_in, before.bytes_in + strlen(request));
    assert_int_equal(netStats()->bytes_out, before.bytes_out + len);
    assert_ptr_not_equal(second.batch, netMainThread()->batch);
    readerFree(&second);
    netThreadEnter(netMainThread());
    cl->owner = netMainThread();
    close(fd);
    turns(SETTLED);
}

static void *actForMain(void *arg) {
    bool *seen = arg;
    seen[0] = netThreadIsCurrent(netMainThread());
    netActAsMain(true);
    seen[1] = netThreadIsCurrent(netMainThread());
    netActAsMain(false);
    seen[2] = netThreadIsCurrent(netMainThread());
    return NULL;
}

/* A thread of a module, while the main thread waits for it. */
static void another_thread_may_act_for_the_main_one(void **state) {
    (void)state;
    pthread_t thread;
    bool seen[3];
    assert_int_equal(pthread_create(&thread, NULL, actForMain, seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(seen[0]);
    assert_true(seen[1]);
    assert_false(seen[2]);
    assert_true(netThreadIsCurrent(netMainThread()));
}

/* As when the last bytes go to replicas before the end: the thread has nothing more to tell. */
static void threads_end_when_their_last_results_were_taken(void **state) {
    (void)state;
    enum { YIELDS = 20000 };
    reason why;
    client *cl;
    int fd = newClient(&cl);
    netConf.io_threads = 2;
    netConf.io_threads_always_active = true;
    netConf.port = 0;
    assert_int_equal(netListen(&why), ERR_IO); /* nowhere, but the threads have begun */
    sendText(fd, "say x\r\n");
    for (int i = 0; i < SETTLED && !cl->conn.thread; i++) loopTurn(test_loop, false);
    assert_int_equal(cl->conn.thread, 1);
    ioThreadsClose(cl);
    ioThreadsSettle();
    ioThreadsBeforeSleep(); /* the thread goes on, and to sleep: it finds nothing to do */
    for (int i = 0; i < YIELDS; i++) sched_yield();
    netConf.io_threads = 1;
    netConf.io_threads_always_active = false;
    netCloseAll();
    assert_false(ioThreadsInUse());
    close(fd);
}

static void clients_move_from_a_busy_thread_to_an_idle_one(void **state) {
    (void)state;
    assert_int_equal(ioThreadsToMove(10, 90, 30, 100), 3);
    assert_int_equal(ioThreadsToMove(2, 100, 0, 100), 1);
    assert_int_equal(ioThreadsToMove(1, 100, 0, 100), 0);   /* it would only change its place */
    assert_int_equal(ioThreadsToMove(10, 70, 0, 100), 0);   /* it has time left */
    assert_int_equal(ioThreadsToMove(10, 100, 75, 100), 0); /* both are busy */
}

int test_client(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reader_and_writer_work_on_the_thread_that_owns_the_client,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_connection_with_a_handshake_is_served, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_handshake_closes_the_client, setup, teardown),
        cmocka_unit_test_setup_teardown(a_request_in_pieces_is_executed_when_complete, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_idle_client_owns_no_buffers, setup, teardown),
        cmocka_unit_test_setup_teardown(requests_after_a_blocking_command_run_later, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_long_pipeline_lets_others_be_served, setup, teardown),
        cmocka_unit_test_setup_teardown(a_client_ends_while_its_pipeline_is_postponed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(many_clients_are_freed_in_several_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(the_stream_of_a_primary_is_counted_as_it_is_applied, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(several_streams_are_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(streams_wait_for_the_end_of_a_command_that_serves_others,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_bytes_of_a_stream_are_passed_on_when_they_are_applied,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_nested_turn_serves_clients_of_the_same_batch, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_nested_turn_never_writes_a_reply_that_is_being_built,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(quit_replies_and_nothing_more_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(a_client_killed_by_another_of_the_same_batch_runs_nothing,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_protocol_error_comes_after_the_replies_before_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(output_over_the_hard_limit_closes, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_announced_are_not_charged, setup, teardown),
        cmocka_unit_test(clients_move_from_a_busy_thread_to_an_idle_one),
        cmocka_unit_test_setup_teardown(another_thread_may_act_for_the_main_one, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_end_when_their_last_results_were_taken, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("net/client", tests, NULL, NULL);
}
