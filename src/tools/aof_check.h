/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks one file of an append only file and, if asked, cuts off what follows its last complete
 * record or a point in time. Prints what it finds on standard output in the form of Valkey's tool.
 * One thread. */
#ifndef TOOLS_AOF_CHECK_H
#define TOOLS_AOF_CHECK_H

#include <stdbool.h>
#include <stdint.h>

typedef enum aofCheckAction {
    AOF_CHECK_ONLY,
    AOF_CHECK_FIX,     /* cut an incomplete or invalid end off, after the user's confirmation */
    AOF_CHECK_CUT_TIME /* cut what was written after a time */
} aofCheckAction;

typedef struct aofCheckFile {
    const char *kind; /* "BASE ", "INCR " or "" before the file's name in messages */
    const char *name; /* in messages */
    const char *path;
    bool is_last; /* only the end of the last file may be cut off */
} aofCheckFile;

typedef struct aofCheckOptions {
    aofCheckAction action;
    int64_t time_s; /* Unix time of AOF_CHECK_CUT_TIME */
} aofCheckOptions;

/* True if the file is valid, or was made valid. */
bool aofCheck(const aofCheckFile *file, const aofCheckOptions *options);
/* Whether the file begins as an RDB file. False also if it cannot be read. */
bool aofCheckIsRdb(const char *path);

#endif
