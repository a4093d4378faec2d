/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turns of jobs, that is, which job gets the next slice: users take turns by the time that their
 * jobs have used, and the jobs of a user, one of each client, take turns one by one. So fifteen
 * jobs of a user leave half of the time to the only one of another user. Main thread only. */
#ifndef ENGINE_JOB_TURNS_H
#define ENGINE_JOB_TURNS_H

#include <stdint.h>

#include "ds/list.h"

typedef struct jobUser jobUser;

/* Embedded in a job. */
typedef struct jobTurn {
    listNode node; /* in the list of its user, the next one first */
    jobUser *of;
} jobTurn;

/* Adds a job; `user` tells users apart, and is not read. A user without jobs begins with as little
 * time as any other has used: who comes later has no advantage. */
void jobTurnBegin(jobTurn *t, const void *user);
void jobTurnEnd(jobTurn *t);
/* The job whose turn it is; it is the last one of its user from now on. NULL: there is none. */
jobTurn *jobTurnNext(void);
/* A slice of it took this long. */
void jobTurnUsed(const jobTurn *t, uint64_t ticks);

#endif
