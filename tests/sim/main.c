/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Deterministic simulation: the state machines of several servers run in one process over a
 * simulated network (network.h), with virtual time. A seed reproduces a run exactly. See
 * tests/README.md.
 *
 *   sim [--scenario NAME] [--seeds N] [--first SEED] [--jobs N] [--fault N] [--verbose]
 *
 * Without a name all scenarios run but those that take long, each with N seeds, divided among the
 * jobs. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/log.h"
#include "network.h"
#include "sim.h"

static const simScenario *const scenarios[] = {
    &replicationScenario, &clusterScenario, &quorumScenario, &sentinelScenario, &slotsScenario,
    &claimsScenario,      &votersScenario,  &halfScenario,   &largeScenario};

int sim_fault;

static uint64_t seed;
static const simScenario *running;

void simFail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    printf("FAILED %s seed %llu at %lld ms: ", running->name, (unsigned long long)seed,
           (long long)sim_now_ms);
    vprintf(format, args);
    printf("\n0 passed, 1 failed\n");
    va_end(args);
    exit(1);
}

/* An assertion of the code has failed. */
static void aborted(int number) {
    printf("FAILED %s seed %llu at %lld ms: a check\n0 passed, 1 failed\n", running->name,
           (unsigned long long)seed, (long long)sim_now_ms);
    fflush(stdout);
    signal(number, SIG_DFL);
    raise(number);
}

/* Ids are part of a run, too. */
static void seededSecret(void *dst, size_t len) {
    uint8_t *to = dst;
    for (size_t i = 0; i < len; i++) to[i] = (uint8_t)randomNext();
}

static uint64_t runSeeds(const simScenario *s, uint64_t first, uint64_t seeds) {
    running = s;
    for (seed = first; seed < first + seeds; seed++) {
        randomSeed(seed);
        sim_slow_saves = seed % 2 && !s->by_name_only;
        s->run();
    }
    printf("%s: ", s->name);
    s->report();
    return seeds;
}

/* The same by several processes. */
static uint64_t runJobs(const simScenario *s, uint64_t first, uint64_t seeds, uint64_t jobs) {
    bool failed = false;
    int code;
    if (jobs < 2) return runSeeds(s, first, seeds);
    fflush(stdout);
    for (uint64_t job = 0; job < jobs; job++) {
        uint64_t begin = seeds * job / jobs, end = seeds * (job + 1) / jobs;
        pid_t child = fork();
        if (child < 0) {
            perror("fork");
            exit(2);
        }
        if (child == 0) {
            (void)runSeeds(s, first + begin, end - begin);
            exit(0);
        }
    }
    while (wait(&code) > 0) failed |= code != 0;
    if (failed) {
        printf("0 passed, 1 failed\n");
        exit(1);
    }
    return seeds;
}

int main(int argc, char **argv) {
    uint64_t seeds = 1000, first = 1, jobs = 1, passed = 0;
    const char *name = NULL;
    logSetLevel(LOG_NOTHING);
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (!strcmp(argv[i], "--seeds") && has_value) {
            seeds = strtoull(argv[++i], NULL, 10);
        } else if (!strcmp(argv[i], "--first") && has_value) {
            first = strtoull(argv[++i], NULL, 10);
        } else if (!strcmp(argv[i], "--jobs") && has_value) {
            jobs = strtoull(argv[++i], NULL, 10);
        } else if (!strcmp(argv[i], "--scenario") && has_value) {
            name = argv[++i];
        } else if (!strcmp(argv[i], "--fault") && has_value) {
            sim_fault = (int)strtol(argv[++i], NULL, 10);
        } else if (!strcmp(argv[i], "--verbose")) {
            logSetLevel(LOG_DEBUG);
        } else {
            fprintf(stderr, "usage: sim [--scenario NAME] [--seeds N] [--first SEED] [--jobs N] "
                            "[--verbose]\n");
            return 2;
        }
    }
    signal(SIGABRT, aborted);
    randomSetSecretSource(seededSecret);
    for (size_t i = 0; i < COUNT_OF(scenarios); i++)
        if (name ? !strcmp(name, scenarios[i]->name) : !scenarios[i]->by_name_only)
            passed += runJobs(scenarios[i], first, seeds, jobs);
    printf("%llu passed, 0 failed\n", (unsigned long long)passed);
    return passed ? 0 : 2;
}
