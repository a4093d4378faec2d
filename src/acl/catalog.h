/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What rules and checks need to know of the commands: lookup by the names of the specs (whatever
 * rename-command says), the commands of each category as bits, and per command where its keys,
 * channels and databases are. Built on first use, and again when commands were loaded or unloaded.
 * Main thread only. */
#ifndef ACL_CATALOG_H
#define ACL_CATALOG_H

#include "engine/command.h"

enum aclAccess { ACL_READ = 1, ACL_WRITE = 2, ACL_READ_WRITE = 3 };

/* Where a command has keys. KEYS_PREFIX: all that begin with argument 1. */
enum { KEYS_NONE, KEYS_FIRST, KEYS_FIND, KEYS_PREFIX };
/* How its channels are compared with the patterns of a user. CHANNELS_FIND: the command reports
 * them, and how. */
enum { CHANNELS_NONE, CHANNELS_GLOB, CHANNELS_LITERAL, CHANNELS_FIND };
/* The databases it accesses; the named ones are arguments. */
enum { DBS_NONE, DBS_CURRENT, DBS_SELECT, DBS_SWAP, DBS_MOVE, DBS_COPY, DBS_EXEC, DBS_ALL };

/* Commands that also need the right to read because they reply data, though their key
 * specifications do not say so. */
enum { RETURNS_NOTHING, RETURNS_CLAIMED, RETURNS_SCORE };

typedef struct aclNeeds {
    uint8_t keys;          /* KEYS_FIRST: one key, argument 1 */
    uint8_t access;        /* of that key, or of those with the prefix: enum aclAccess; 0: any */
    uint8_t channels;      /* how they are compared */
    uint8_t channel_first; /* index of the first one */
    bool channel_list;     /* all arguments from there on */
    uint8_t databases;
    uint8_t returns; /* its keys are KEYS_FIND then */
} aclNeeds;

/* Number of 64-bit words of a set of commands, one bit per command id. */
int aclCommandWords(void);
/* The bits of a category in aclCommandWords() words; NULL if there is no such category. Ignores
 * case. */
const uint64_t *aclCategoryBits(slice name);
/* Finds "get" or "config|get" by the names of the specs, ignoring case; NULL if there is none. */
const command *aclCommandFind(slice name);
/* The properties of a command. */
const aclNeeds *aclNeedsOf(const command *cmd);
/* The same by the flags of a key: enum aclAccess, 0 for any. */
uint32_t aclAccessOf(uint32_t key_flags);
/* Without commands installed, for gates that select by the specification alone. */
bool aclSpecHasChannels(const commandSpec *spec);
void aclCatalogFree(void);

#endif
