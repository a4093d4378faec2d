/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reports of sessions (session_report.h). */
#include "engine/session_report.h"

#include "base/base.h"
#include "engine/job.h"

enum { PROCS_MAX = 4 };

static void (*procs[PROCS_MAX])(const session *s, sessionReport *out);

void sessionReportAddProc(void (*proc)(const session *s, sessionReport *out)) {
    hotCheck(threadIsMain());
    int i = 0;
    while (procs[i] && procs[i] != proc) {
        i++;
        check(i < PROCS_MAX);
    }
    procs[i] = proc;
}

static session *(*find_session)(uint64_t id);

void sessionSetFindProc(session *(*find)(uint64_t id)) { find_session = find; }

session *sessionFindById(uint64_t id) { return find_session ? find_session(id) : NULL; }

static bool (*append_classes)(str *out);

void sessionSetMemoryClassesProc(bool (*append)(str *out)) { append_classes = append; }

bool sessionAppendMemoryClasses(str *out) { return append_classes && append_classes(out); }

static void (*describe_session)(const session *s, str *out);

void sessionSetDescribeProc(void (*describe)(const session *s, str *out)) {
    describe_session = describe;
}

void sessionDescribe(const session *s, str *out) {
    if (describe_session) describe_session(s, out);
}

static uint64_t (*count_tracking)(void);

void sessionSetTrackingCountProc(uint64_t (*count)(void)) { count_tracking = count; }

uint64_t sessionTrackingCount(void) { return count_tracking ? count_tracking() : 0; }

void sessionReportRead(const session *s, sessionReport *out) {
    *out = (sessionReport){.redirect = -1};
    out->has_job = jobProgressOf(s, &out->job);
    for (int i = 0; i < PROCS_MAX && procs[i]; i++) procs[i](s, out);
}
