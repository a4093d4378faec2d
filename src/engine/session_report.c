/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reports of sessions (session_report.h). */
#include "engine/session_report.h"

#include "base/base.h"

static void (*fill)(const session *s, sessionReport *out);

void sessionReportSetProc(void (*proc)(const session *s, sessionReport *out)) { fill = proc; }

void sessionReportRead(const session *s, sessionReport *out) {
    *out = (sessionReport){.redirect = -1};
    if (fill) fill(s, out);
}
