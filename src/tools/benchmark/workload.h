/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is sent: commands compiled to bytes of the protocol, with the places that change from
 * request to request. */
#ifndef TOOLS_BENCHMARK_WORKLOAD_H
#define TOOLS_BENCHMARK_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/benchmark/options.h"

/* The replies that a command can have, besides errors. */
typedef enum replyClass {
    CLASS_ANY,
    CLASS_STATUS,
    CLASS_INTEGER,
    CLASS_BULK,
    CLASS_AGGREGATE
} replyClass;

/* Kinds of places: 0 a new number, 1 to 9 the same number within a command, or the characters of a
 * hash tag. */
enum { HOLE_NUMBER, HOLE_TAG = 10, HOLE_TAG_SIZE = 3 };

typedef struct hole {
    size_t offset;
    uint8_t kind;
    bool first; /* the first one of its command */
} hole;

/* A command, or a sequence of commands that is always sent as a whole. */
typedef struct operation {
    const char *name;
    unsigned weight; /* of a mix */
    char *bytes;
    size_t len;
    hole *holes;
    int hole_count;
    uint8_t *classes; /* replyClass per command */
    int commands;
} operation;

typedef struct workload {
    const char *title;
    int64_t payload;
    operation *operations;
    int count;
    unsigned weights; /* sum over all operations */
    bool has_tags;
} workload;

/* Compiles one command, or several separated by ";", with repetitions. NULL with a message in
 * `*error` if one has no words. */
operation *operationCompile(const benchOptions *o, int argc, const char **argv, const char **error);
/* The inline command of test ping_inline. */
operation *operationCompileInline(const char *text);
/* A workload of one operation, which it takes. */
void workloadInit(workload *w, const char *title, int64_t payload, operation *take);
/* Adds an operation of a mix. */
void workloadAdd(workload *w, operation *take, const char *name, unsigned weight);
void workloadClear(workload *w);

/* The data of __data__: `len` bytes, always the same, followed by a NUL. The caller frees it with
 * memFree(). */
char *dataMake(size_t len);

#endif
