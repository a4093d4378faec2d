/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Length-prefixed strings: 8 bytes length, 8 bytes capacity, the number 4, then the bytes and a
 * NUL. The pointer is that of the bytes, so a text can be printed, and programs that know the
 * layout can read its length. */
#include "clientlib/client_priv.h"

enum {
    LAYOUT = 4,        /* both numbers have 64 bits */
    KEPT_EMPTY = 1024, /* largest capacity that an empty text keeps */
};

static void setCapacity(char *text, size_t capacity) {
    uint64_t value = capacity;
    memcpy(text - VK_TEXT_HEAD + sizeof(value), &value, sizeof(value));
}

char *vkTextNew(void) {
    char *block = vk_malloc(VK_TEXT_HEAD + 1);
    if (!block) return NULL;
    char *text = block + VK_TEXT_HEAD;
    text[-1] = LAYOUT;
    setCapacity(text, 0);
    vkTextSetLen(text, 0);
    return text;
}

void vkTextFree(char *text) {
    if (text) vk_free(text - VK_TEXT_HEAD);
}

bool vkTextReserve(char **text, size_t extra) {
    size_t len = vkTextLen(*text), capacity = vkTextCapacity(*text);
    if (capacity - len >= extra) return true;
    if (extra > SIZE_MAX / 2 - len - VK_TEXT_HEAD - 1) return false;
    size_t want = len + extra;
    if (want < capacity * 2) want = capacity * 2;
    /* A size that allocators serve without rounding up. */
    if (want < 64 - VK_TEXT_HEAD - 1) want = 64 - VK_TEXT_HEAD - 1;
    char *block = vk_realloc(*text - VK_TEXT_HEAD, VK_TEXT_HEAD + want + 1);
    if (!block) return false;
    *text = block + VK_TEXT_HEAD;
    setCapacity(*text, want);
    return true;
}

bool vkTextAppend(char **text, const char *bytes, size_t len) {
    if (!vkTextReserve(text, len)) return false;
    size_t old = vkTextLen(*text);
    memcpy(*text + old, bytes, len);
    vkTextSetLen(*text, old + len);
    return true;
}

void vkTextConsume(char **text, size_t len) {
    size_t rest = vkTextLen(*text) - len;
    if (rest > 0) memmove(*text, *text + len, rest);
    vkTextSetLen(*text, rest);
    if (rest > 0 || vkTextCapacity(*text) <= KEPT_EMPTY) return;
    char *fresh = vkTextNew();
    if (!fresh) return; /* the large buffer serves as well */
    vkTextFree(*text);
    *text = fresh;
}
