/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small house for the tests of the engine: a table of commands, gates, a sink, an observer and a commandObserver that
 * write down what they are told, and a reader that feeds requests from a buffer it destroys afterwards. */
#ifndef TESTS_C_ENGINE_ENGINE_TEST_H
#define TESTS_C_ENGINE_ENGINE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/hooks.h"

/* cmocka's setup and teardown: everything new, two databases, nothing armed, time stands at START_MS. */
int engineTestSetUp(void **state);
int engineTestTearDown(void **state);

enum { START_MS = 1000000 };
/* Moves the wall clock. */
void setTestTime(int64_t now_ms);

/* The commands, beside those of transactions:
 *
 *   put key value [until]   a write; `until` is its time of death in ms
 *   take key                a read: the value or null
 *   drop key                a write
 *   say word ...            replies the first word; not quick, and no write
 *   fail                    replies an error
 *   stop flag               sets a SESSION_ flag, given by number, and replies OK
 *   again                   has the flag stops_batch
 *   enter                   no_auth: logs the session in
 *   later ms                moves the wall clock on
 *   twice key               propagates two other commands in its place
 *   publish text            changes nothing and goes to the replicas alone
 *   quiet key               a write that propagates nothing
 *   box open x, box shut    a container and its subcommands
 *   await key ... seconds   takes the value of the first key that is there and drops it, or waits for one
 *   flush, swap             empty all databases; exchange the contents of 0 and 1
 *   newer key than seconds  the key's number when it is greater than `than`, or waits for that; `$` is the number at
 *                           present; an error when the key is or gets missing
 *   offset n seconds        waits until `ack n` has told at least that; replies what was told
 *   kinds                   replies null, a boolean and a map with a double
 *   inner word ...          runs the command `word ...` through executeInner(), as `inner_params` says; replies OK
 *                           itself when that sends the reply elsewhere */

/* How `inner` runs its command: as a script's, at first. */
typedef struct innerParams {
    ctxOrigin origin;
    uint32_t gates_exempt;
    int proto;   /* 0: of who asks */
    outbuf *out; /* NULL: of who asks */
} innerParams;
extern innerParams inner_params;
/* Whom `deliver text` sends the status `text`. */
extern session *deliver_to;

/* Runs requests of a session: words separated by blanks, requests by '|'. Returns how many ran. */
int ask(session *s, const char *requests);
/* The same with the bytes of a connection: pieces are parsed one after the other, as if read so. */
int askBytes(session *s, const char *const *pieces, int count);
/* What has been replied and not looked at yet, its lines joined by blanks; borrowed until the next call. */
const char *replies(session *s);
/* What gates, sink, observer, commandObserver, carrier and events have noted since the last call; likewise. Entries end
 * with ';'. */
const char *noted(void);
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define assert_replies(s, want) assert_string_equal(replies(s), want)
#define assert_noted(want) assert_string_equal(noted(), want)

/* A session with a carrier that notes what it is told. */
void sessionOpen(session *s);

/* Gates, in their order: the engine's no-multi, writes, all, again, the engine's queue. They note that they
 * are asked, then do what `verdict` says (and reply "-REFUSED by <name>" for GATE_REFUSED). */
extern const gate writesGate, allGate, againGate;
extern gateVerdict verdict;
extern const char *verdict_for; /* NULL, or the one command it is meant for: others pass */
extern const sink noteSink, aofSink, replicaSink; /* of everything, or of what is for one target */
extern bool with_slots;                           /* for engineTestSetUp(): databases with slots */
extern const keyObserver noteObserver;
extern const commandObserver noteCommandObserver;
/* What the sink got as bytes, shown as replies are; forgotten by the call. */
const char *propagatedBytes(void);

#endif
