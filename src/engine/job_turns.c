/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turns of jobs (job_turns.h). Invariant: each user in the list has jobs. A choice costs a look at
 * each user that has some. */
#include "engine/job_turns.h"

#include "base/base.h"

struct jobUser {
    listNode node;
    const void *who;
    list jobs;
    uint64_t used; /* ticks, beginning with those of another user */
};

static list users;

static jobUser *leastUsed(void) {
    jobUser *least = NULL;
    for (listNode *n = listFirst(&users); n; n = listNext(&users, n)) {
        jobUser *u = LIST_OWNER(n, jobUser, node);
        if (!least || u->used < least->used) least = u;
    }
    return least;
}

static jobUser *userOf(const void *who) {
    if (!users.head.next) listInit(&users);
    for (listNode *n = listFirst(&users); n; n = listNext(&users, n)) {
        jobUser *u = LIST_OWNER(n, jobUser, node);
        if (u->who == who) return u;
    }
    const jobUser *least = leastUsed();
    jobUser *u = memNew(jobUser);
    *u = (jobUser){.who = who, .used = least ? least->used : 0};
    listInit(&u->jobs);
    listAppend(&users, &u->node);
    return u;
}

void jobTurnBegin(jobTurn *t, const void *user) {
    hotCheck(threadIsMain());
    t->of = userOf(user);
    listAppend(&t->of->jobs, &t->node);
}

void jobTurnEnd(jobTurn *t) {
    jobUser *u = t->of;
    check(u != NULL);
    listRemove(&u->jobs, &t->node);
    t->of = NULL;
    if (u->jobs.count) return;
    listRemove(&users, &u->node);
    memFree(u);
}

jobTurn *jobTurnNext(void) {
    jobUser *u = users.count ? leastUsed() : NULL;
    if (!u) return NULL;
    listNode *first = listFirst(&u->jobs);
    check(first != NULL);
    listRemove(&u->jobs, first);
    listAppend(&u->jobs, first);
    return LIST_OWNER(first, jobTurn, node);
}

void jobTurnUsed(const jobTurn *t, uint64_t ticks) {
    hotCheck(t->of);
    t->of->used += ticks;
}
