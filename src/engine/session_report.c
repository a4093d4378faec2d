/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reports of sessions (session_report.h). */
#include "engine/session_report.h"

#include "base/base.h"

static void (*fill)(const session *s, sessionReport *out);

void sessionReportSetProc(void (*proc)(const session *s, sessionReport *out)) { fill = proc; }

static session *(*find_session)(uint64_t id);

void sessionSetFindProc(session *(*find)(uint64_t id)) { find_session = find; }

session *sessionFindById(uint64_t id) { return find_session ? find_session(id) : NULL; }

void sessionReportRead(const session *s, sessionReport *out) {
    *out = (sessionReport){.redirect = -1};
    if (fill) fill(s, out);
}
