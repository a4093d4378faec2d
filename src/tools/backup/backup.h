/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Options and exit codes of `valkey-cli --backup` and `--restore`. */
#ifndef TOOLS_BACKUP_BACKUP_H
#define TOOLS_BACKUP_BACKUP_H

#include <stdbool.h>
#include <stdint.h>

/* Exit codes. */
enum {
    BACKUP_DONE = 0,
    BACKUP_WRONG = 1,  /* wrong options */
    BACKUP_SOURCE = 2, /* the server cannot be reached, refuses, or fails */
    BACKUP_TARGET =
        3, /* what is written to fails: disk, encryption, upload, the server of --into */
    BACKUP_DAMAGED = 4, /* the backup is damaged, or does not have what is asked for */
};

/* Texts are borrowed from the command line. */
typedef struct backupOptions {
    const char *folder; /* of --backup or --restore */
    /* --backup. */
    bool follow, this_server, users;
    const char *compress, *encrypt_to, *upload, *full_every, *keep, *metrics;
    int64_t segment_bytes, segment_seconds, wait_s;
    /* --restore. */
    bool list, verify, replace;
    const char *to_time, *ttl, *into, *keys, *prefix, *decrypt_with, *server_program;
    int64_t to_offset; /* -1: not given */
} backupOptions;

#endif
