/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bars (bars.h). */
#include "tools/cli/bars.h"

#include <langinfo.h>
#include <string.h>

#include "base/assert.h"

enum { STEPS = 8 }; /* of a column */

bool barsAreBlocks(void) { return strcmp(nl_langinfo(CODESET), "UTF-8") == 0; }

void barsAppend(str *out, double share, int width, bool blocks) {
    static const char *const parts[STEPS] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    check(width > 0);
    if (!(share > 0)) return;
    int steps = share < 1 ? (int)(share * width * STEPS + 0.5) : width * STEPS;
    if (steps == 0) steps = 1;
    if (!blocks) steps = (steps + STEPS / 2) / STEPS * STEPS;
    if (steps == 0) steps = STEPS;
    for (int i = 0; i < steps / STEPS; i++) strAppendText(out, blocks ? "█" : "#");
    strAppendText(out, parts[steps % STEPS]);
}

void barsAppendLatency(str *out, uint64_t us, bool blocks) {
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char ascii[] = "_.-:=+*#";
    int level = 0;
    for (us >>= 5; us && level < 7; us >>= 1) level++;
    if (blocks) {
        strAppendText(out, bars[level]);
    } else {
        strAppendByte(out, ascii[level]);
    }
}
