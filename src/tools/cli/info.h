/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields of the reply of INFO. */
#ifndef TOOLS_CLI_INFO_H
#define TOOLS_CLI_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of a field, 0 if it is missing. */
int64_t infoNumber(const char *info, const char *field);
/* Copies the text of a field, "" if it is missing, as far as there is room; returns `out`. */
const char *infoText(const char *info, const char *field, char *out, size_t size);

/* A line of section keyspace. */
typedef struct infoDatabase {
    int id;
    int64_t keys;
    int64_t volatile_items; /* hashes of which fields expire, as Valkey or Redis names them */
} infoDatabase;

/* Takes the next database after `*at`, which begins as the whole text; false: there is none. */
bool infoNextDatabase(const char **at, infoDatabase *out);
/* Number of keys in all databases. */
int64_t infoKeys(const char *info);

#endif
