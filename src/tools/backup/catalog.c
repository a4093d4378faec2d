/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The content of a backup (catalog.h). Invariant: a chain in the catalog has a description that
 * agrees with its checksum; the files that it names are read and verified when they are needed. */
#define _GNU_SOURCE /* timegm(), strptime() */
#include "tools/backup/catalog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "io/append_file.h"
#include "io/file.h"
#include "tools/backup/record.h"

enum { OPEN_MARKS_BYTES_MAX = 64 << 20, CLOCK_STEP_MS = 2000 };

/* ------------------------------------------------------------------ marks */

void marksAdd(backupMarks *marks, backupMark mark) {
    if (marks->count == marks->cap) {
        marks->cap = marks->cap ? marks->cap * 2 : 64;
        marks->list = memRealloc(marks->list, sizeof(*marks->list) * (size_t)marks->cap);
    }
    marks->list[marks->count++] = mark;
}

void marksClear(backupMarks *marks) {
    memFree(marks->list);
    *marks = (backupMarks){0};
}

int64_t marksClockStep(backupMark before, int64_t before_mono_ms, backupMark now,
                       int64_t now_mono_ms) {
    int64_t step_ms = now.time_ms - before.time_ms - (now_mono_ms - before_mono_ms);
    return step_ms > CLOCK_STEP_MS || step_ms < -CLOCK_STEP_MS ? step_ms : 0;
}

void marksPrint(const backupMarks *marks, str *out) {
    strAppendByte(out, '[');
    for (int i = 0; i < marks->count; i++)
        strAppendFormat(out, "%s[%" PRId64 ",%" PRId64 "]", i ? "," : "", marks->list[i].time_ms,
                        marks->list[i].offset);
    strAppendByte(out, ']');
}

void marksParse(slice text, backupMarks *out) {
    str copy = strNew(text); /* strtoll() needs its end */
    const char *at = strText(&copy);
    while ((at = strpbrk(at, "-0123456789"))) {
        char *end;
        backupMark mark;
        mark.time_ms = strtoll(at, &end, 10);
        if (*end != ',') break;
        mark.offset = strtoll(end + 1, &end, 10);
        marksAdd(out, mark);
        at = end;
    }
    strFree(&copy);
}

/* ------------------------------------------------------------------ full copies */

void fullClear(backupFull *full) {
    str *texts[] = {&full->server, &full->version, &full->source, &full->slots, &full->shard};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) strFree(texts[i]);
    partInfoClear(&full->part);
}

status fullSave(const backupFull *full, const char *folder, reason *why) {
    str record = STR_EMPTY, path = STR_EMPTY;
    char text[TIME_TEXT_MAX];
    recordBegin(&record, "full");
    recordText(&record, "server", strSlice(&full->server));
    recordText(&record, "version", strSlice(&full->version));
    recordText(&record, "source", strSlice(&full->source));
    recordText(&record, "replication_id", sliceOf(full->repl_id));
    recordNumber(&record, "offset", full->offset);
    recordNumber(&record, "time_ms", full->time_ms);
    recordText(&record, "time", sliceOf(timePrint(full->time_ms, text)));
    recordText(&record, "shard", strSlice(&full->shard));
    recordText(&record, "slots", strSlice(&full->slots));
    partInfoWrite(&record, &full->part);
    strAppendFormat(&path, "%s/" FULL_FILE, folder);
    status st = recordSave(&record, path.ptr, why);
    strFree(&record);
    strFree(&path);
    return st;
}

static bool readReplId(const str *record, char out[REPL_ID_LEN + 1]) {
    str id = STR_EMPTY;
    recordReadText(record, "replication_id", &id);
    bool good = id.len == REPL_ID_LEN;
    if (good) memcpy(out, id.ptr, REPL_ID_LEN + 1);
    strFree(&id);
    return good;
}

static status fullLoad(const char *folder, backupFull *out, reason *why) {
    str record = STR_EMPTY, path = STR_EMPTY;
    strAppendFormat(&path, "%s/" FULL_FILE, folder);
    status st = fileSize(path.ptr) < 0
                    ? reasonSet(why, ERR_NOT_FOUND, "%s: an incomplete full copy", folder)
                    : recordLoad(path.ptr, "full", &record, why);
    if (st == OK) st = partInfoRead(&record, &out->part, why);
    if (st == OK) {
        recordReadText(&record, "server", &out->server);
        recordReadText(&record, "version", &out->version);
        recordReadText(&record, "source", &out->source);
        recordReadText(&record, "slots", &out->slots);
        recordReadText(&record, "shard", &out->shard);
        out->offset = recordReadNumber(&record, "offset");
        out->time_ms = recordReadNumber(&record, "time_ms");
        if (!readReplId(&record, out->repl_id) || out->offset < 0 || out->time_ms < 0)
            st = reasonSet(why, ERR_SYNTAX, "%s: incomplete", path.ptr);
    }
    strFree(&record);
    strFree(&path);
    return st;
}

/* ------------------------------------------------------------------ segments */

void segmentInfoClear(backupSegment *segment) {
    marksClear(&segment->marks);
    partInfoClear(&segment->part);
}

status segmentInfoSave(const backupSegment *segment, const char *folder, reason *why) {
    check(segment->last >= segment->first);
    str record = STR_EMPTY, path = STR_EMPTY;
    recordBegin(&record, "segment");
    recordText(&record, "replication_id", sliceOf(segment->repl_id));
    recordNumber(&record, "first_offset", segment->first);
    recordNumber(&record, "last_offset", segment->last);
    partInfoWrite(&record, &segment->part);
    recordMember(&record, "marks");
    marksPrint(&segment->marks, &record);
    strAppendFormat(&path, "%s/segment-%020" PRId64 ".json", folder, segment->first);
    status st = recordSave(&record, path.ptr, why);
    strFree(&record);
    strFree(&path);
    return st;
}

static status segmentLoad(const char *path, backupSegment *out, reason *why) {
    str record = STR_EMPTY;
    status st = recordLoad(path, "segment", &record, why);
    if (st == OK) st = partInfoRead(&record, &out->part, why);
    if (st == OK) {
        out->first = recordReadNumber(&record, "first_offset");
        out->last = recordReadNumber(&record, "last_offset");
        marksParse(recordRaw(&record, "marks"), &out->marks);
        if (!readReplId(&record, out->repl_id) || out->first < 0 || out->last < out->first)
            st = reasonSet(why, ERR_SYNTAX, "%s: incomplete", path);
    }
    strFree(&record);
    return st;
}

void openSegmentPath(str *out, const char *folder, int64_t first, const char *ending) {
    strClear(out);
    strAppendFormat(out, "%s/open-%020" PRId64 ".%s", folder, first, ending);
}

status openSegmentRead(const char *folder, int64_t first, backupSegment *out, reason *why) {
    *out = (backupSegment){.first = first, .last = first, .is_open = true};
    str path = STR_EMPTY, text = STR_EMPTY;
    openSegmentPath(&path, folder, first, "aof");
    strAppendText(&out->part.file, strrchr(path.ptr, '/') + 1);
    int64_t size = fileSize(path.ptr);
    openSegmentPath(&path, folder, first, "marks");
    status st = size < 0 ? reasonSetErrno(why, "%s", path.ptr)
                         : fileReadAll(path.ptr, OPEN_MARKS_BYTES_MAX, &text, why);
    if (st == OK && text.len <= REPL_ID_LEN) st = reasonSet(why, ERR_SYNTAX, "%s: empty", path.ptr);
    if (st == OK) {
        memcpy(out->repl_id, text.ptr, REPL_ID_LEN);
        char *line = text.ptr + REPL_ID_LEN + 1, *end;
        for (; (end = strchr(line, '\n')); line = end + 1) { /* a last line without end is torn */
            backupMark mark;
            if (sscanf(line, "%" SCNd64 " %" SCNd64, &mark.time_ms, &mark.offset) != 2) break;
            if (mark.offset < out->last || mark.offset > first + size) break;
            marksAdd(&out->marks, mark);
            out->last = mark.offset;
        }
        out->part.bytes = out->part.plain_bytes = (uint64_t)(out->last - first);
    }
    strFree(&path);
    strFree(&text);
    return st;
}

/* ------------------------------------------------------------------ the folder */

/* What is being read. */
typedef struct catalogLoading {
    backupCatalog *catalog;
    backupChain *chain;
    const char *folder;
} catalogLoading;

static void addProblem(backupCatalog *c, const char *text) {
    c->problems = memRealloc(c->problems, sizeof(*c->problems) * (size_t)(c->problem_count + 1));
    c->problems[c->problem_count++] = strNew(sliceOf(text));
}

static void visitChainFile(const char *name, void *arg) {
    catalogLoading *l = arg;
    backupChain *chain = l->chain;
    backupSegment segment = {0};
    reason why;
    status st;
    size_t len = strlen(name);
    if (!strncmp(name, "segment-", 8) && len > 5 && !strcmp(name + len - 5, ".json")) {
        str path = STR_EMPTY;
        strAppendFormat(&path, "%s/%s", strText(&chain->folder), name);
        st = segmentLoad(path.ptr, &segment, &why);
        strFree(&path);
    } else if (!strncmp(name, "open-", 5) && len > 4 && !strcmp(name + len - 4, ".aof")) {
        st = openSegmentRead(strText(&chain->folder), strtoll(name + 5, NULL, 10), &segment, &why);
    } else {
        return;
    }
    if (st != OK) {
        addProblem(l->catalog, why.text);
        segmentInfoClear(&segment);
        return;
    }
    chain->segments =
        memRealloc(chain->segments, sizeof(*chain->segments) * (size_t)(chain->count + 1));
    chain->segments[chain->count++] = segment;
}

/* A described segment precedes an open one with the same bytes: it is removed later. */
static int compareSegments(const void *a, const void *b) {
    const backupSegment *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->is_open - y->is_open;
}

static int compareChains(const void *a, const void *b) {
    const backupChain *x = a, *y = b;
    return (x->full.time_ms > y->full.time_ms) - (x->full.time_ms < y->full.time_ms);
}

static void chainClear(backupChain *chain) {
    for (int i = 0; i < chain->count; i++) segmentInfoClear(&chain->segments[i]);
    memFree(chain->segments);
    fullClear(&chain->full);
    strFree(&chain->folder);
}

static void visitFolder(const char *name, void *arg) {
    catalogLoading *l = arg;
    backupCatalog *c = l->catalog;
    reason why;
    if (strncmp(name, "full-", 5) != 0) return;
    backupChain chain = {0};
    strAppendFormat(&chain.folder, "%s/%s", l->folder, name);
    status st = fullLoad(chain.folder.ptr, &chain.full, &why);
    if (st == OK) {
        l->chain = &chain;
        st = folderEach(chain.folder.ptr, visitChainFile, l, &why);
    }
    if (st != OK) {
        addProblem(c, why.text);
        chainClear(&chain);
        return;
    }
    if (chain.count)
        qsort(chain.segments, (size_t)chain.count, sizeof(*chain.segments), compareSegments);
    c->chains = memRealloc(c->chains, sizeof(*c->chains) * (size_t)(c->count + 1));
    c->chains[c->count++] = chain;
}

status catalogLoad(const char *folder, backupCatalog *out, reason *why) {
    *out = (backupCatalog){0};
    struct stat info;
    if (stat(folder, &info) < 0) return reasonSetErrno(why, "%s", folder);
    catalogLoading loading = {.catalog = out, .folder = folder};
    status st = folderEach(folder, visitFolder, &loading, why);
    if (out->count) qsort(out->chains, (size_t)out->count, sizeof(*out->chains), compareChains);
    return st;
}

void catalogClear(backupCatalog *c) {
    for (int i = 0; i < c->count; i++) chainClear(&c->chains[i]);
    for (int i = 0; i < c->problem_count; i++) strFree(&c->problems[i]);
    memFree(c->chains);
    memFree(c->problems);
    *c = (backupCatalog){0};
}

int64_t chainEnd(const backupChain *chain) {
    int64_t end = chain->full.offset;
    for (int i = 0; i < chain->count; i++) {
        if (chain->segments[i].first > end) break;
        if (chain->segments[i].last > end) end = chain->segments[i].last;
    }
    return end;
}

static void removeFile(const char *name, void *folder) {
    str path = STR_EMPTY;
    strAppendFormat(&path, "%s/%s", (const char *)folder, name);
    if (name[0] != '.') (void)unlink(path.ptr); /* if it stays, rmdir() fails */
    strFree(&path);
}

status chainRemove(const char *folder, reason *why) {
    removeFile(FULL_FILE, (void *)folder);
    status st = folderEach(folder, removeFile, (void *)folder, why);
    if (st == OK && rmdir(folder) < 0) st = reasonSetErrno(why, "cannot remove %s", folder);
    return st;
}

/* ------------------------------------------------------------------ what is to be restored */

/* Looks for the last mark of a chain with a time up to `time_ms`. */
static bool findMark(const backupChain *chain, int64_t time_ms, backupPlan *out) {
    const int64_t end = chainEnd(chain);
    bool later = false, found = false; /* a mark after the asked time precedes */
    int64_t at = chain->full.offset;
    if (chain->full.time_ms <= time_ms) {
        *out = (backupPlan){.chain = chain, .offset = at, .time_ms = chain->full.time_ms};
        found = true;
    }
    for (int i = 0; i < chain->count; i++) {
        const backupMarks *marks = &chain->segments[i].marks;
        for (int k = 0; k < marks->count; k++) {
            backupMark mark = marks->list[k];
            if (mark.offset < at || mark.offset > end) continue;
            at = mark.offset;
            if (mark.time_ms > time_ms) {
                later = true;
                continue;
            }
            *out = (backupPlan){.chain = chain,
                                .offset = mark.offset,
                                .time_ms = mark.time_ms,
                                .is_ambiguous = found && later};
            found = true;
        }
    }
    return found;
}

int64_t chainEndTime(const backupChain *chain) {
    backupPlan last;
    int64_t time_ms = chain->full.time_ms;
    if (findMark(chain, INT64_MAX, &last)) time_ms = last.time_ms;
    return time_ms;
}

/* The chains are tried from the last one on: of two states from the same time the one with less of
 * the stream to be applied is taken. */
static bool planTime(const backupCatalog *c, int64_t time_ms, backupPlan *out) {
    bool found = false;
    for (int i = c->count - 1; i >= 0; i--) {
        backupPlan plan;
        if (!findMark(&c->chains[i], time_ms, &plan)) continue;
        if (!found || plan.time_ms > out->time_ms) *out = plan;
        found = true;
    }
    return found;
}

/* Time of the last mark up to an offset. */
static int64_t timeAt(const backupChain *chain, int64_t offset) {
    int64_t time_ms = offset >= chain->full.offset ? chain->full.time_ms : -1;
    for (int i = 0; i < chain->count; i++) {
        const backupMarks *marks = &chain->segments[i].marks;
        for (int k = 0; k < marks->count && marks->list[k].offset <= offset; k++)
            time_ms = marks->list[k].time_ms;
    }
    return time_ms;
}

static bool planOffset(const backupCatalog *c, int64_t offset, backupPlan *out) {
    for (int i = c->count - 1; i >= 0; i--) {
        const backupChain *chain = &c->chains[i];
        if (offset < chain->full.offset || offset > chainEnd(chain)) continue;
        *out = (backupPlan){.chain = chain, .offset = offset, .time_ms = timeAt(chain, offset)};
        return true;
    }
    return false;
}

status catalogPlan(const backupCatalog *c, planGoal goal, int64_t value, backupPlan *out,
                   reason *why) {
    char text[TIME_TEXT_MAX];
    if (!c->count)
        return reasonSet(why, ERR_NOT_FOUND, "the folder has no complete full copy%s%s",
                         c->problem_count ? ": " : "",
                         c->problem_count ? strText(&c->problems[0]) : "");
    if (goal == PLAN_LATEST) {
        const backupChain *last = &c->chains[c->count - 1];
        *out = (backupPlan){
            .chain = last, .offset = chainEnd(last), .time_ms = timeAt(last, chainEnd(last))};
        return OK;
    }
    if (goal == PLAN_OFFSET) {
        if (planOffset(c, value, out)) return OK;
        return reasonSet(why, ERR_NOT_FOUND, "the backup does not have offset %" PRId64, value);
    }
    if (planTime(c, value, out)) return OK;
    return reasonSet(why, ERR_NOT_FOUND, "the backup begins later, at %s",
                     timePrint(c->chains[0].full.time_ms, text));
}

/* ------------------------------------------------------------------ shards */

typedef struct shardNames {
    str *list;
    int count;
} shardNames;

static void visitShard(const char *name, void *arg) {
    shardNames *names = arg;
    if (strncmp(name, "shard-", 6) != 0) return;
    names->list = memRealloc(names->list, sizeof(*names->list) * (size_t)(names->count + 1));
    names->list[names->count++] = strNew(sliceOf(name));
}

static int compareNames(const void *a, const void *b) {
    return sliceCompare(strSlice(a), strSlice(b));
}

status catalogEachShard(const char *target, shardVisit *visit, void *arg, reason *why) {
    shardNames names = {0};
    status st = folderEach(target, visitShard, &names, why);
    if (st == OK && !names.count) st = visit(target, "", arg, why);
    if (names.count) qsort(names.list, (size_t)names.count, sizeof(*names.list), compareNames);
    for (int i = 0; i < names.count; i++) {
        str folder = STR_EMPTY;
        strAppendFormat(&folder, "%s/%s", target, strText(&names.list[i]));
        if (st == OK) st = visit(folder.ptr, strText(&names.list[i]), arg, why);
        strFree(&folder);
        strFree(&names.list[i]);
    }
    memFree(names.list);
    return st;
}

/* ------------------------------------------------------------------ times */

const char *timePrint(int64_t time_ms, char out[TIME_TEXT_MAX]) {
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    size_t len = strftime(out, TIME_TEXT_MAX, "%Y-%m-%d %H:%M:%S", &parts);
    snprintf(out + len, TIME_TEXT_MAX - len, ".%03d", (int)(time_ms % 1000));
    return out;
}

static bool readFraction(const char **at, int64_t *ms) {
    int64_t unit = 100;
    *ms = 0;
    if (**at != '.') return true;
    for ((*at)++; **at >= '0' && **at <= '9'; (*at)++, unit /= 10) *ms += (**at - '0') * unit;
    return (*at)[-1] != '.';
}

bool timeParse(const char *text, int64_t *time_ms) {
    static const char *const forms[] = {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"};
    const char *end = NULL;
    int64_t seconds = 0, ms;
    for (int i = 0; i < 2 && !end; i++) {
        struct tm parts = {0};
        end = strptime(text, forms[i], &parts);
        if (end) seconds = timegm(&parts);
    }
    if (!end) {
        char *rest;
        errno = 0;
        seconds = strtoll(text, &rest, 10);
        if (rest == text || errno || seconds < 0 || seconds > INT64_MAX / 1000 - 1) return false;
        end = rest;
    }
    if (!readFraction(&end, &ms)) return false;
    if (*end == 'Z') end++;
    *time_ms = seconds * 1000 + ms;
    return !*end;
}

bool durationParse(const char *text, int64_t *seconds) {
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'\0', 1}, {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end;
    errno = 0;
    int64_t number = strtoll(text, &end, 10);
    if (end == text || errno || number < 0 || (*end && end[1])) return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        if (units[i].unit == *end) return numberMul(number, units[i].seconds, seconds);
    }
    return false;
}
