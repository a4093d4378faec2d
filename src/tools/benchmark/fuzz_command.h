/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random commands for --fuzz. */
#ifndef TOOLS_BENCHMARK_FUZZ_COMMAND_H
#define TOOLS_BENCHMARK_FUZZ_COMMAND_H

#include <stddef.h>

#include <valkey/valkey.h>

#include "tools/benchmark/options.h"

enum { FUZZ_WORDS_MAX = 64, FUZZ_WORD_SIZE = 1024 };

/* The commands of a server that may be sent; constant, so threads may share it. */
typedef struct fuzzCatalog fuzzCatalog;

/* A command being composed. */
typedef struct fuzzCommand {
    int argc;
    size_t lens[FUZZ_WORDS_MAX];
    char words[FUZZ_WORDS_MAX][FUZZ_WORD_SIZE];
} fuzzCommand;

/* From the reply of COMMAND DOCS, which it takes. NULL if there is nothing in it. */
fuzzCatalog *fuzzCatalogNew(valkeyReply *take_docs, const fuzzOptions *o);
void fuzzCatalogFree(fuzzCatalog *c);
/* Composes a random command, with this thread's generator. */
void fuzzCompose(const fuzzCatalog *c, fuzzCommand *out);

#endif
