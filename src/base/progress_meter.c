/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Progress of a long operation (progress_meter.h). */
#include "base/progress_meter.h"

#include "base/base.h"
#include "base/number.h"

enum { REPORT_MS = 5000 };

void progressMeterBegin(progressMeter *m, int64_t now_ms) { m->began_ms = m->reported_ms = now_ms; }

bool progressMeterIsDue(progressMeter *m, int64_t now_ms) {
    hotCheck(now_ms >= m->reported_ms || m->reported_ms == 0);
    if (now_ms - m->reported_ms < REPORT_MS) return false;
    m->reported_ms = now_ms;
    return true;
}

int64_t progressMeterPerSecond(const progressMeter *m, int64_t done, int64_t now_ms) {
    int64_t took_ms = now_ms - m->began_ms;
    return took_ms > 0 ? (int64_t)((double)done * 1000 / (double)took_ms) : 0;
}

int64_t progressMeterSecondsLeft(const progressMeter *m, int64_t done, int64_t total,
                                 int64_t now_ms) {
    int64_t per_s = progressMeterPerSecond(m, done, now_ms);
    if (total <= 0 || per_s <= 0) return -1;
    return done < total ? (total - done - 1) / per_s + 1 : 0;
}

static void appendBytes(str *out, int64_t bytes) {
    char human[NUMBER_TEXT_MAX];
    numberPrintHuman(human, (uint64_t)bytes);
    strAppendText(out, human);
}

void progressMeterDescribe(const progressMeter *m, int64_t done, int64_t total, int64_t now_ms,
                           str *out) {
    appendBytes(out, done);
    if (total > 0) {
        strAppendText(out, " of ");
        appendBytes(out, total);
        strAppendFormat(out, " (%d %%)", (int)(100.0 * (double)done / (double)total));
    }
    strAppendText(out, ", ");
    appendBytes(out, progressMeterPerSecond(m, done, now_ms));
    strAppendText(out, "/s");
    int64_t left_s = progressMeterSecondsLeft(m, done, total, now_ms);
    if (left_s >= 0) strAppendFormat(out, ", about %lld seconds left", (long long)left_s);
}
