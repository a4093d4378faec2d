/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Failure reports: for each node, which other nodes have reported it as failing, and when. A node
 * has at most one report from each other node. */
#include "base/base.h"
#include "bus/map.h"

static int findReport(const clusterNode *about, const clusterNode *from) {
    int i = 0;
    while (i < about->report_count && about->reports[i].from != from) i++;
    return i;
}

static void removeReport(clusterNode *about, int index) {
    check(index >= 0);
    check(index < about->report_count);
    about->reports[index] = about->reports[--about->report_count];
}

bool clusterNodeReport(clusterNode *about, const clusterNode *from, int64_t now_ms) {
    check(about != from);
    int i = findReport(about, from);
    bool is_new = i == about->report_count;
    if (is_new) {
        size_t count = (size_t)about->report_count + 1;
        about->reports = memRealloc(about->reports, count * sizeof(*about->reports));
        about->report_count++;
    }
    check(i < about->report_count);
    about->reports[i] = (failReport){from, now_ms};
    return is_new;
}

bool clusterNodeUnreport(clusterNode *about, const clusterNode *from) {
    int i = findReport(about, from);
    if (i == about->report_count) return false;
    removeReport(about, i);
    return true;
}

bool clusterNodeHasReport(const clusterNode *about, const clusterNode *from) {
    return findReport(about, from) < about->report_count;
}

int clusterNodeCountReports(clusterNode *about, int64_t now_ms, int64_t max_age_ms) {
    check(max_age_ms >= 0);
    for (int i = about->report_count - 1; i >= 0; i--) {
        if (now_ms - about->reports[i].at_ms > max_age_ms) removeReport(about, i);
    }
    return about->report_count;
}
