/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots of keys and commands. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "clientlib/command_keys.h"

enum { NAME_MAX_LEN = 64 };

/* CRC-16/XMODEM, by half bytes. */
static uint16_t crcOf(const char *bytes, size_t len) {
    static const uint16_t table[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5,
                                       0x60c6, 0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b,
                                       0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
    uint16_t crc = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned byte = (unsigned char)bytes[i];
        crc = (uint16_t)(crc << 4 ^ table[crc >> 12 ^ byte >> 4]);
        crc = (uint16_t)(crc << 4 ^ table[crc >> 12 ^ (byte & 15)]);
    }
    return crc;
}

int vkSlotOfKey(const char *key, size_t len) {
    const char *open = memchr(key, '{', len);
    if (open) {
        const char *close = memchr(open, '}', (size_t)(key + len - open));
        if (close && close > open + 1) {
            key = open + 1;
            len = (size_t)(close - key);
        }
    }
    return crcOf(key, len) & (VK_SLOTS - 1);
}

static int compareName(const void *name, const void *row) {
    return strcasecmp(name, ((const vkCommandKeys *)row)->name);
}

static const vkCommandKeys *findRow(const char *name) {
    return bsearch(name, vkCommandKeysTable, (size_t)vkCommandKeysCount,
                   sizeof(*vkCommandKeysTable), compareName);
}

/* The row of a command, or of its subcommand. */
static const vkCommandKeys *rowOf(vkCommandCursor cursor) {
    char name[2 * NAME_MAX_LEN + 2];
    vkArg word, sub;
    if (!vkCommandNext(&cursor, &word) || word.len > NAME_MAX_LEN) return NULL;
    snprintf(name, sizeof(name), "%.*s", (int)word.len, word.ptr);
    const vkCommandKeys *row = findRow(name);
    if (row || !vkCommandNext(&cursor, &sub) || sub.len > NAME_MAX_LEN) return row;
    snprintf(name + word.len, sizeof(name) - word.len, "|%.*s", (int)sub.len, sub.ptr);
    return findRow(name);
}

/* The argument with this index. */
static bool argumentAt(vkCommandCursor cursor, long long index, vkArg *arg) {
    while (index-- >= 0) {
        if (!vkCommandNext(&cursor, arg)) return false;
    }
    return true;
}

/* The index after a keyword; -1 if it is not there. */
static long long afterKeyword(vkCommandCursor cursor, const vkCommandKeys *row) {
    long long argc = cursor.left, found = -1;
    /* A negative start searches backwards from the end. */
    long long first = row->at < 0 ? 0 : row->at, last = row->at < 0 ? argc + row->at : argc - 1;
    vkArg word;
    for (long long i = 0; vkCommandNext(&cursor, &word) && i <= last; i++) {
        if (i < first || !vkArgIs(word, row->keyword)) continue;
        found = i + 1;
        if (row->at >= 0) break;
    }
    return found;
}

int vkSlotOfCommand(const char *cmd, size_t len) {
    vkCommandCursor cursor;
    vkArg key, count;
    if (!vkCommandOpen(&cursor, cmd, len)) return -1;
    const vkCommandKeys *row = rowOf(cursor);
    if (!row) return -1;
    long long at = row->keyword ? afterKeyword(cursor, row) : row->at;
    if (at < 0) return -1;
    if (row->counted) {
        if (!argumentAt(cursor, at, &count) || (count.len == 1 && *count.ptr == '0')) return -1;
        at++;
    }
    if (!argumentAt(cursor, at, &key)) return -1;
    return vkSlotOfKey(key.ptr, key.len);
}
