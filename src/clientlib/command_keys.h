/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the first key of a command is, which determines its slot. The table is generated from the
 * specs of the commands and sorted by name. */
#ifndef CLIENTLIB_COMMAND_KEYS_H
#define CLIENTLIB_COMMAND_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "clientlib/client_priv.h"

typedef struct vkCommandKeys {
    const char *name;    /* "get", "xgroup|create" */
    const char *keyword; /* the key is after this word; NULL: it has a fixed place */
    /* Index of the argument; with a keyword: where its search begins, from the end if negative. */
    int8_t at;
    uint8_t counted; /* at `at` is the number of keys, then the keys */
} vkCommandKeys;

extern const vkCommandKeys vkCommandKeysTable[];
extern const int vkCommandKeysCount;

enum { VK_SLOTS = 16384 };

/* The slot of a key: of the part in braces, if it has one. */
int vkSlotOfKey(const char *key, size_t len);
/* The slot of the first key of an encoded command; -1 if it has none. */
int vkSlotOfCommand(const char *cmd, size_t len);

#endif
