/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Distance of names (similar.h): optimal string alignment. */
#include "tools/similar.h"

#include <ctype.h>
#include <stdlib.h>

enum { NAME_MAX_LEN = 63 };

static int min(int a, int b) { return a < b ? a : b; }

static int distance(slice a, slice b) {
    int rows[3][NAME_MAX_LEN + 2];
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= (int)b.len; j++) last[j] = j;
    for (int i = 1; i <= (int)a.len; i++) {
        now[0] = i;
        for (int j = 1; j <= (int)b.len; j++) {
            int cost = toupper((unsigned char)a.ptr[i - 1]) != toupper((unsigned char)b.ptr[j - 1]);
            now[j] = min(min(last[j] + 1, now[j - 1] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && cost &&
                toupper((unsigned char)a.ptr[i - 2]) == toupper((unsigned char)b.ptr[j - 1]) &&
                toupper((unsigned char)a.ptr[i - 1]) == toupper((unsigned char)b.ptr[j - 2]))
                now[j] = min(now[j], before[j - 2] + 1);
        }
        int *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[b.len];
}

int similarDistance(slice typed, slice name) {
    if (typed.len == 0 || typed.len > NAME_MAX_LEN || name.len > NAME_MAX_LEN) return SIMILAR_NEVER;
    int limit = typed.len < 3 ? 1 : typed.len < 6 ? 2 : 3;
    if (abs((int)typed.len - (int)name.len) > limit) return SIMILAR_NEVER;
    int found = distance(typed, name);
    return found > limit ? SIMILAR_NEVER : found;
}
