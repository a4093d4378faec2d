/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines of CLIENT LIST, and the filters of CLIENT LIST and CLIENT KILL. The order of fields is
 * Valkey's, because tools parse it. The first line of a client costs two system calls for
 * addresses, which are kept in a session slot. Main thread only. */
#include "net/client_list.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/user.h"
#include "engine/block.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "engine/session_report.h"
#include "engine/session_slot.h"
#include "engine/transaction.h"
#include "engine/watch.h"
#include "io/net_addr.h"
#include "net/io_threads.h"
#include "net/net_thread.h"

enum { ADDRESS_MAX = NET_ADDR_TEXT_MAX + 4, FLAGS_MAX = 24 };
/* Space for the names of fields and the numbers of a line, beside its texts. */
enum { LINE_BYTES = 1280 };

typedef enum clientType {
    CLIENT_NORMAL,
    CLIENT_PUBSUB,
    CLIENT_REPLICA,
    CLIENT_PRIMARY,
} clientType;

/* ------------------------------------------------------- properties of a client */

/* Both addresses of a TCP connection, which never change. */
typedef struct knownAddresses {
    uint8_t peer_len, local_len;
    char text[]; /* the peer's, then this server's */
} knownAddresses;

static void freeAddresses(session *s, void *state) {
    (void)s; /* they belong to no other */
    memFree(state);
}

static size_t addressesMemory(const void *state) { return memSizeOf(state); }

static const sessionSlot address_slot = {"addresses", freeAddresses, addressesMemory};

static int addressSlot(void) {
    static int index = -1;
    if (unlikely(index < 0)) index = sessionSlotRegister(&address_slot);
    return index;
}

void clientKeepAddresses(client *cl) {
    hotCheck(threadIsMain());
    session *s = &cl->session;
    if (s->flags & SESSION_UNIX_SOCKET || sessionSlotGet(s, addressSlot())) return;
    char peer[NET_ADDR_TEXT_MAX], local[NET_ADDR_TEXT_MAX];
    if (!netPeerText(cl->conn.fd, peer) || !netLocalText(cl->conn.fd, local)) return;
    size_t peer_len = strlen(peer), local_len = strlen(local);
    knownAddresses *known = memAlloc(sizeof(*known) + peer_len + local_len);
    known->peer_len = (uint8_t)peer_len;
    known->local_len = (uint8_t)local_len;
    memcpy(known->text, peer, peer_len);
    memcpy(known->text + peer_len, local, local_len);
    sessionSlotSet(s, addressSlot(), known);
}

/* "ip:port" of one end. Paths of Unix sockets are in brackets, like every text with a colon. */
static slice addressOf(const client *cl, bool peer, char dst[ADDRESS_MAX]) {
    const knownAddresses *known = sessionSlotGet(&cl->session, addressSlot());
    if (known)
        return peer ? sliceMake(known->text, known->peer_len)
                    : sliceMake(known->text + known->peer_len, known->local_len);
    bool local = cl->session.flags & SESSION_UNIX_SOCKET;
    char path[NET_ADDR_TEXT_MAX], *text = local ? path : dst;
    (void)(peer ? netPeerText(cl->conn.fd, text)
                : netLocalText(cl->conn.fd, text)); /* "?:0" on failure */
    if (local) snprintf(dst, ADDRESS_MAX, "[%s]:0", path);
    return sliceOf(dst);
}

void clientAppendPeer(const client *cl, str *out) {
    char address[ADDRESS_MAX];
    strAppendSlice(out, addressOf(cl, true, address));
}

/* The peer's address without port and brackets; empty if it has none. */
static slice ipOf(const client *cl, char dst[ADDRESS_MAX]) {
    if (cl->session.flags & SESSION_UNIX_SOCKET) return SLICE("");
    slice address = addressOf(cl, true, dst);
    size_t end = address.len;
    while (end > 0 && address.ptr[end - 1] != ':') end--;
    if (end > 0) end--;
    bool bracketed = end >= 2 && address.ptr[0] == '[';
    return bracketed ? sliceMake(address.ptr + 1, end - 2) : sliceMake(address.ptr, end);
}

static slice flagsReported(const session *s, const sessionReport *report, char dst[FLAGS_MAX]) {
    const struct {
        bool set;
        char letter;
    } letters[] = {
        {s->flags & SESSION_REPLICA, 'S'},
        {s->flags & SESSION_MONITOR, 'O'},
        {s->flags & SESSION_PRIMARY, 'M'},
        {s->flags & SESSION_PUBSUB, 'P'},
        {s->flags & SESSION_IN_MULTI, 'x'},
        {s->flags & (SESSION_BLOCKED | SESSION_PAUSED), 'b'},
        {report->tracking, 't'},
        {report->tracking_broken, 'R'},
        {report->tracking_broadcast, 'B'},
        {s->flags & SESSION_WATCH_DIRTY, 'd'},
        {s->flags & SESSION_CLOSE_SOON, 'c'},
        {s->flags & SESSION_CLOSE_NOW, 'A'},
        {s->flags & SESSION_UNIX_SOCKET, 'U'},
        {s->flags & SESSION_NO_EVICT, 'e'},
        {s->flags & SESSION_NO_TOUCH, 'T'},
        {s->flags & SESSION_IMPORT_SOURCE, 'I'},
        {s->flags & SESSION_READONLY, 'r'},
        {s->flags & SESSION_SLOT_EXPORT, 'E'},
        {s->origin == ORIGIN_IMPORT, 'i'},
        {report->output_is_held, 'q'},
        {report->is_throttled, 'h'},
        {report->has_job, 'j'},
    };
    _Static_assert(COUNT_OF(letters) < FLAGS_MAX, "one letter each");
    size_t len = 0;
    for (size_t i = 0; i < COUNT_OF(letters); i++) {
        if (letters[i].set) dst[len++] = letters[i].letter;
    }
    if (!len) dst[len++] = 'N';
    return sliceMake(dst, len);
}

static slice flagsOf(const session *s, char dst[FLAGS_MAX]) {
    hotCheck(threadIsMain());
    sessionReport report;
    sessionReportRead(s, &report);
    return flagsReported(s, &report, dst);
}

static slice capabilitiesOf(const session *s) {
    return s->flags & SESSION_CAPA_REDIRECT ? SLICE("r") : SLICE("");
}

static slice libNameOf(const session *s) {
    const sessionExtra *extra = sessionExtraFind(s);
    return extra ? strSlice(&extra->lib_name) : SLICE("");
}

static slice libVersionOf(const session *s) {
    const sessionExtra *extra = sessionExtraFind(s);
    return extra ? strSlice(&extra->lib_version) : SLICE("");
}

static clientType typeOf(const session *s) {
    if (s->flags & SESSION_PRIMARY) return CLIENT_PRIMARY;
    if (s->flags & SESSION_REPLICA) return CLIENT_REPLICA;
    if (s->flags & SESSION_PUBSUB) return CLIENT_PUBSUB;
    return CLIENT_NORMAL;
}

static int64_t ageOf(const session *s) { return (engineHot.now_ms - s->created_ms) / 1000; }

/* A running command counts as activity. */
static int64_t idleOf(const session *s) {
    return s->flags & SESSION_IN_BATCH ? 0 : (engineHot.now_ms - s->active_ms) / 1000;
}

/* The command that a session is running, as it was sent: EXEC rather than a queued command. NULL if
 * none. */
static const ctx *runningOf(const session *s) {
    const ctx *c = engineHot.current;
    if (!c || c->who != s) return NULL;
    while (c->outer && c->outer->who == s) c = c->outer;
    return c;
}

static slice commandOf(const session *s) {
    const ctx *c = runningOf(s);
    if (c && c->cmd) return c->cmd->name;
    return s->last_command ? s->last_command->name : SLICE("NULL");
}

/* Size of the arguments of the command that is running or blocked. */
static size_t argumentsOf(const session *s) {
    const ctx *c = runningOf(s);
    if (!c) return blockArgumentBytes(s);
    size_t bytes = 0;
    for (int i = 0; i < c->argc; i++) bytes += c->argv[i].len;
    return bytes;
}

/* ------------------------------------------------------------------ the line */

/* Appends to what clientDescribe() has reserved: a name with its '=', and a value. Inline, so that
 * the lengths of names are constants. */
static inline __attribute__((always_inline)) char *addField(char *at, const char *name,
                                                            slice value) {
    size_t len = strlen(name);
    memcpy(at, name, len);
    if (value.len) memcpy(at + len, value.ptr, value.len);
    return at + len + value.len;
}

static inline __attribute__((always_inline)) char *addNumber(char *at, const char *name,
                                                             int64_t value) {
    size_t len = strlen(name);
    memcpy(at, name, len);
    at += len;
    if (value < 0 || value > 9) return at + numberPrintInt(at, value);
    *at = (char)('0' + value);
    return at + 1;
}

/* Input: pending bytes (including large arguments), free buffer space, arguments of the running
 * command, queued transaction. */
static char *addInput(const session *s, const client *cl, char *at) {
    size_t waiting = cl ? cl->in_len + requestParserBytes(&cl->parser) : 0;
    size_t room = cl ? clientInputCap(cl) - cl->in_len : 0;
    at = addNumber(at, " qbuf=", (int64_t)waiting);
    at = addNumber(at, " qbuf-free=", (int64_t)room);
    at = addNumber(at, " argv-mem=", (int64_t)argumentsOf(s));
    return addNumber(at, " multi-mem=", (int64_t)transactionMemory(s));
}

/* Output: the first block is reported as the reply buffer, the others as the reply list; for a
 * replica the list is the part of the replication stream that is kept for it. */
static char *addOutput(const session *s, const sessionReport *report, char *at) {
    enum { STREAM_BLOCK_OVERHEAD = 64 };
    const outbuf *o = &s->out;
    if (report->is_replica) {
        int64_t bytes = (int64_t)report->stream_bytes;
        at = addField(at, " rbs=0 rbp=0 obl=0", SLICE(""));
        at = addNumber(at, " oll=", report->stream_blocks);
        return addNumber(at, " omem=", bytes + report->stream_blocks * STREAM_BLOCK_OVERHEAD);
    }
    size_t blocks = outbufBlocks(o), memory = outbufMemory(o);
    size_t first = sizeMin(memory, OUTBLOCK_SIZE);
    struct iovec head = {NULL, 0};
    (void)outbufIovecs(o, &head, 1); /* none if nothing is pending */
    at = addNumber(at, " rbs=", (int64_t)first);
    at = addNumber(at, " rbp=0 obl=", (int64_t)head.iov_len);
    at = addNumber(at, " oll=", blocks > 1 ? (int64_t)blocks - 1 : 0);
    return addNumber(at, " omem=", blocks > 1 ? (int64_t)(memory - first) : 0);
}

static slice eventsOf(const client *cl) {
    bool reads = cl->conn.on_read || cl->conn.thread, writes = cl->conn.on_write;
    return reads ? (writes ? SLICE("rw") : SLICE("r")) : (writes ? SLICE("w") : SLICE(""));
}

/* The fields that describe the session alone, from "age" to "watch". */
static char *addState(const session *s, const sessionReport *report, char *at) {
    char flags[FLAGS_MAX];
    at = addNumber(at, " age=", ageOf(s));
    at = addNumber(at, " idle=", idleOf(s));
    at = addField(at, " flags=", flagsReported(s, report, flags));
    at = addField(at, " capa=", capabilitiesOf(s));
    at = addNumber(at, " db=", s->db_id);
    at = addNumber(at, " sub=", (int64_t)report->channels);
    at = addNumber(at, " psub=", (int64_t)report->patterns);
    at = addNumber(at, " ssub=", (int64_t)report->shard_channels);
    at = addNumber(at, " multi=", transactionCount(s));
    return addNumber(at, " watch=", (int64_t)watchCount(s));
}

/* For a client whose command runs in slices: elements that it has visited, about how many there
 * are, and the time that its slices took. */
static char *addJob(const jobProgress *job, char *at) {
    at = addNumber(at, " job-visited=", (int64_t)job->visited);
    at = addNumber(at, " job-elements=", (int64_t)job->elements);
    return addNumber(at, " job-usec=", job->us);
}

/* A session that no connection belongs to (of a module, of the append only file) has no addresses
 * and no buffers. */
void clientDescribe(const session *s, str *out) {
    hotCheck(threadIsMain());
    const client *cl = s->carrier == &clientCarrier ? (const client *)s : NULL;
    if (cl && clientIsAway(cl)) ioThreadsSettle();
    char peer_text[ADDRESS_MAX], local_text[ADDRESS_MAX];
    slice peer = cl ? addressOf(cl, true, peer_text) : SLICE("");
    slice local = cl ? addressOf(cl, false, local_text) : SLICE("");
    bool is_super = s->flags & (SESSION_PRIMARY | SESSION_SLOT_EXPORT) ||
                    s->origin == ORIGIN_IMPORT || (!cl && !s->user);
    slice name = sessionName(s), command = commandOf(s), lib_name = libNameOf(s),
          lib_version = libVersionOf(s), user = is_super ? SLICE("(superuser)") : userNameOf(s);
    sessionReport report;
    sessionReportRead(s, &report);
    size_t texts =
        peer.len + local.len + name.len + command.len + lib_name.len + lib_version.len + user.len;
    char *start = strReserve(out, LINE_BYTES + texts), *at = start;
    at = addNumber(at, "id=", (int64_t)s->id);
    at = addField(at, " addr=", peer);
    at = addField(at, " laddr=", local);
    at = addNumber(at, " fd=", cl ? cl->conn.fd : -1);
    at = addField(at, " name=", name);
    at = addState(s, &report, at);
    at = addInput(s, cl, at);
    at = addOutput(s, &report, at);
    size_t running = s->blocked ? 0 : argumentsOf(s); /* counted already while blocked */
    at = addNumber(at, " tot-mem=", (int64_t)((cl ? clientLimitedMemory(cl) : 0) + running));
    at = addField(at, " events=", cl ? eventsOf(cl) : SLICE(""));
    at = addField(at, " cmd=", command);
    at = addField(at, " user=", user);
    at = addNumber(at, " redir=", report.redirect);
    at = addNumber(at, " resp=", s->proto);
    at = addField(at, " lib-name=", lib_name);
    at = addField(at, " lib-ver=", lib_version);
    at = addNumber(at, " tot-net-in=", (int64_t)s->bytes_in);
    at = addNumber(at, " tot-net-out=", (int64_t)s->bytes_out);
    at = addNumber(at, " tot-cmds=", (int64_t)s->commands);
    if (report.has_job) at = addJob(&report.job, at);
    check((size_t)(at - start) <= LINE_BYTES + texts);
    strGrow(out, (size_t)(at - start));
}

void clientDescribeShort(const client *cl, bool hides, str *out) {
    hotCheck(threadIsMain());
    const session *s = &cl->session;
    char peer_text[ADDRESS_MAX], local_text[ADDRESS_MAX];
    const slice hidden = SLICE("*redacted*");
    slice peer = addressOf(cl, true, peer_text), local = addressOf(cl, false, local_text);
    slice name = hides ? hidden : sessionName(s), user = hides ? hidden : userNameOf(s);
    slice lib_name = libNameOf(s), lib_version = libVersionOf(s);
    size_t texts = peer.len + local.len + name.len + user.len + lib_name.len + lib_version.len;
    char *start = strReserve(out, LINE_BYTES + texts), *at = start;
    at = addNumber(at, "id=", (int64_t)s->id);
    at = addField(at, " addr=", peer);
    at = addField(at, " laddr=", local);
    at = addNumber(at, " fd=", cl->conn.fd);
    at = addField(at, " name=", name);
    at = addField(at, " user=", user);
    at = addField(at, " lib-name=", lib_name);
    at = addField(at, " lib-ver=", lib_version);
    strGrow(out, (size_t)(at - start));
}

/* ------------------------------------------------------------------ parsing filters */

static bool wantType(ctx *c, slice value, clientCondition *condition) {
    static const struct {
        const char *word;
        clientType type;
    } words[] = {
        {"normal", CLIENT_NORMAL}, {"pubsub", CLIENT_PUBSUB},   {"replica", CLIENT_REPLICA},
        {"slave", CLIENT_REPLICA}, {"primary", CLIENT_PRIMARY}, {"master", CLIENT_PRIMARY},
    };
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!sliceIs(value, words[i].word)) continue;
        condition->number = words[i].type;
        return true;
    }
    replyErrorFormat(c, "ERR Unknown client type '%.*s'", (int)value.len, value.ptr);
    return false;
}

static bool wantUser(ctx *c, slice value) {
    if (userFind(value)) return true;
    replyErrorFormat(c, "ERR No such user '%.*s'", (int)value.len, value.ptr);
    return false;
}

/* All letters must be in `known`. `what` is the name of the filter in errors. */
static bool wantLetters(ctx *c, slice value, slice known, const char *what, const char *not_what) {
    for (size_t i = 0; i < value.len; i++) {
        if (memchr(known.ptr, value.ptr[i], known.len)) continue;
        replyErrorFormat(c, "ERR Unknown %s found in the %s filter: %.*s", what,
                         not_what ? not_what : "provided", (int)value.len, value.ptr);
        return false;
    }
    return true;
}

static bool wantDb(ctx *c, slice value, clientCondition *condition, const char *name) {
    int64_t db;
    int last = engineDatabaseCount() - 1;
    if (!numberParseInt(value, &db) || db < INT32_MIN || db > INT32_MAX) {
        replyErrorFormat(c, "ERR %s is not an integer or out of range", name);
        return false;
    }
    if (db < 0 || db > last) {
        replyErrorFormat(c, "ERR %s number should be between 0 and %d", name, last);
        return false;
    }
    condition->number = db;
    return true;
}

/* Parses all numbers from argv[*at] on; at least one. */
static bool wantIds(ctx *c, int *at, clientCondition *condition) {
    hotCheck(*at > 0);
    int first = *at;
    int64_t id;
    for (; *at < c->argc && numberParseInt(c->argv[*at], &id); (*at)++) {
        if (id >= 1) continue;
        replyError(c, SLICE("ERR client-id should be greater than 0"));
        return false;
    }
    int count = *at - first;
    if (!count) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    condition->ids =
        memRealloc(condition->ids, (size_t)(condition->id_count + count) * sizeof(*condition->ids));
    for (int i = 0; i < count; i++) {
        (void)numberParseInt(c->argv[first + i],
                             &condition->ids[condition->id_count++]); /* validated above */
    }
    condition->given = true;
    return true;
}

/* IDLE and MAXAGE. */
static bool wantSeconds(ctx *c, int i, const char *name, int64_t *seconds) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    if (!numberParseInt(c->argv[i], seconds)) {
        replyErrorFormat(c, "ERR %s is not an integer or out of range", name);
    } else if (*seconds < 1) {
        replyErrorFormat(c, "ERR %s should be greater than 0", name);
    } else {
        return true;
    }
    return false;
}

static bool wantValue(ctx *c, clientField field, slice value, bool negated,
                      clientCondition *condition) {
    condition->given = true;
    condition->text = value;
    switch (field) {
    case FIELD_TYPE: return wantType(c, value, condition);
    case FIELD_USER: return wantUser(c, value);
    case FIELD_FLAGS:
        return wantLetters(c, value, SLICE("ABEIMNOPRSTUbcdeiqrtux"), "flags",
                           negated ? "NOT-FLAGS" : NULL);
    case FIELD_CAPA: return wantLetters(c, value, SLICE("r"), "capa", negated ? "NOT-CAPA" : NULL);
    case FIELD_DB: return wantDb(c, value, condition, negated ? "NOT-DB" : "DB");
    default: return true;
    }
}

/* The field with that name, FIELD_COUNT if unknown; *negated is set for the prefix "not-". */
static clientField fieldNamed(slice word, bool *negated) {
    static const char *const names[FIELD_COUNT] = {
        [FIELD_ID] = "id",       [FIELD_TYPE] = "type",         [FIELD_USER] = "user",
        [FIELD_ADDR] = "addr",   [FIELD_LADDR] = "laddr",       [FIELD_IP] = "ip",
        [FIELD_NAME] = "name",   [FIELD_LIB_NAME] = "lib-name", [FIELD_LIB_VER] = "lib-ver",
        [FIELD_FLAGS] = "flags", [FIELD_CAPA] = "capa",         [FIELD_DB] = "db",
    };
    *negated = word.len > 4 && sliceIs(sliceMake(word.ptr, 4), "not-");
    if (*negated) word = sliceMake(word.ptr + 4, word.len - 4);
    int field = 0;
    while (field < FIELD_COUNT && !sliceIs(word, names[field])) field++;
    return (clientField)field;
}

/* Parses one filter at argv[*at] and advances *at. */
static bool parseOne(ctx *c, int *at, clientFilter *f) {
    hotCheck(*at > 0);
    bool negated;
    clientField field = fieldNamed(c->argv[*at], &negated);
    bool has_value = *at + 1 < c->argc;
    int value = *at + 1;
    if (field == FIELD_ID) {
        *at = value;
        return wantIds(c, at, negated ? &f->is_not[field] : &f->is[field]);
    }
    *at += 2;
    if (has_value && field != FIELD_COUNT) {
        clientCondition *condition = negated ? &f->is_not[field] : &f->is[field];
        return wantValue(c, field, c->argv[value], negated, condition);
    }
    if (has_value && ctxArgIs(c, value - 1, "idle")) {
        return wantSeconds(c, value, "idle", &f->idle_s);
    }
    if (has_value && ctxArgIs(c, value - 1, "maxage")) {
        return wantSeconds(c, value, "maxage", &f->age_s);
    }
    bool yes = has_value && ctxArgIs(c, value, "yes"), no = has_value && ctxArgIs(c, value, "no");
    if (ctxArgIs(c, value - 1, "skipme") && (yes || no)) {
        f->skip_me = yes;
        return true;
    }
    replyError(c, ERR_SYNTAX_TEXT);
    return false;
}

static int compareIds(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void sortIds(clientCondition *condition) {
    hotCheck(condition->id_count >= 0);
    if (condition->id_count > 1)
        qsort(condition->ids, (size_t)condition->id_count, sizeof(*condition->ids), compareIds);
}

bool clientFilterParse(ctx *c, bool skip_me, clientFilter *f) {
    *f = (clientFilter){.skip_me = skip_me};
    for (int at = 2; at < c->argc;) {
        if (parseOne(c, &at, f)) continue;
        clientFilterClear(f);
        return false;
    }
    sortIds(&f->is[FIELD_ID]);
    sortIds(&f->is_not[FIELD_ID]);
    return true;
}

void clientFilterAddress(clientFilter *f, slice address) {
    *f = (clientFilter){.is[FIELD_ADDR] = {.given = true, .text = address}};
}

void clientFilterClear(clientFilter *f) {
    memFree(f->is[FIELD_ID].ids);
    memFree(f->is_not[FIELD_ID].ids);
    *f = (clientFilter){0};
}

/* ------------------------------------------------------------------ matching */

static bool isAmong(const clientCondition *condition, uint64_t id) {
    hotCheck(condition->id_count >= 0);
    int64_t key = (int64_t)id;
    return bsearch(&key, condition->ids, (size_t)condition->id_count, sizeof(key), compareIds) !=
           NULL;
}

static bool hasLetters(slice have, slice wanted) {
    for (size_t i = 0; i < wanted.len; i++) {
        if (!memchr(have.ptr, wanted.ptr[i], have.len)) return false;
    }
    return true;
}

/* A text that was never set equals nothing, not even "". */
static bool isText(slice have, slice wanted) { return have.len && sliceEqual(have, wanted); }

static bool conditionHolds(clientField field, const clientCondition *condition, const client *cl) {
    hotCheck(field < FIELD_COUNT);
    const session *s = &cl->session;
    char text[ADDRESS_MAX];
    switch (field) {
    case FIELD_ID: return isAmong(condition, s->id);
    case FIELD_TYPE: return typeOf(s) == (clientType)condition->number;
    case FIELD_USER: return sliceEqual(userNameOf(s), condition->text);
    case FIELD_ADDR: return isText(addressOf(cl, true, text), condition->text);
    case FIELD_LADDR: return isText(addressOf(cl, false, text), condition->text);
    case FIELD_IP: return isText(ipOf(cl, text), condition->text);
    case FIELD_NAME: return isText(sessionName(s), condition->text);
    case FIELD_LIB_NAME: return isText(libNameOf(s), condition->text);
    case FIELD_LIB_VER: return isText(libVersionOf(s), condition->text);
    case FIELD_FLAGS: return hasLetters(flagsOf(s, text), condition->text);
    case FIELD_CAPA: return hasLetters(capabilitiesOf(s), condition->text);
    case FIELD_DB: return s->db_id == condition->number;
    case FIELD_COUNT: break;
    }
    return false;
}

bool clientFilterMatches(const clientFilter *f, const client *cl, const session *me) {
    const session *s = &cl->session;
    if (s->flags & SESSION_CLOSE_NOW) return false;
    if (f->skip_me && s == me) return false;
    if (f->idle_s && idleOf(s) < f->idle_s) return false;
    if (f->age_s && ageOf(s) < f->age_s) return false;
    for (int field = 0; field < FIELD_COUNT; field++) {
        const clientCondition *is = &f->is[field], *is_not = &f->is_not[field];
        if (is->given && !conditionHolds((clientField)field, is, cl)) return false;
        if (is_not->given && conditionHolds((clientField)field, is_not, cl)) return false;
    }
    return true;
}
