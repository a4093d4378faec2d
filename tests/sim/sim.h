/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the scenarios share: a run is one seed of one scenario. */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>

#include "base/random.h"

typedef struct simScenario {
    const char *name;
    /* Runs once, from the state of the random generator; fails by simFail(). */
    void (*run)(void);
    /* Prints a line of what happened in all runs. */
    void (*report)(void);
    bool by_name_only; /* it takes long */
} simScenario;

extern const simScenario clusterScenario;               /* cluster.c */
extern const simScenario halfScenario;                  /* cluster_large.c */
extern const simScenario largeScenario;                 /* cluster_large.c */
extern const simScenario quorumScenario;                /* cluster_quorum.c */
extern const simScenario replicationScenario;           /* replication.c */
extern const simScenario sentinelScenario;              /* sentinel.c */
extern const simScenario slotsScenario, claimsScenario; /* slots.c */
extern const simScenario votersScenario;                /* cluster_voters.c */

/* Saves of the maps of nodes of a cluster take time (cluster_node.c). */
extern bool sim_slow_saves;

/* The fault that is switched on, 0: none. Only the program of faults.py has any. */
extern int sim_fault;

/* Fails the simulation: prints what is wrong with the seed, and ends the process. */
void simFail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static inline bool oneIn(unsigned n) { return randomUniform(n) == 0; }

#endif
